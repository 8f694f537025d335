/**
 * A shared server under a flood: calls that a person waits for are let in at once, and background calls are
 * shed.
 */
import { describe, expect, it } from 'vitest'
import type { PriorityClass } from '../../../machines/index.ts'
import { poolPolicy } from '../../../machines/model/presets.ts'
import { seededRandom } from '../../../src/simulation/random.ts'
import { Story } from '../story.ts'

interface Tally {
  asked: number
  shed: number
  /** From submission to grant, simulated milliseconds. */
  readonly waitsMs: number[]
}

/** A server of 32 places for `seconds`; a call takes 20 to 100 ms. `perMs` is how many of each class come in a millisecond. */
const soak = (seed: number, seconds: number, perMs: Readonly<Partial<Record<PriorityClass, number>>>) => {
  const story = new Story({ ...poolPolicy, capacity: 32, reserve: 0, qos: {} })
  const random = seededRandom(seed)
  const tallies = new Map<string, Tally>()
  const submittedAt = new Map<string, number>()
  const endsAt = new Map<number, string[]>()
  const begun = story.at
  /** Takes note of every grant and every refusal of the newest event. */
  const note = () => {
    for (const { callId, verdict } of story.context.decisions) {
      const tally = tallies.get(callId.split('/')[0]!)!
      if (verdict === 'reject') tally.shed += 1
      if (verdict !== 'admit' && verdict !== 'release') continue
      tally.waitsMs.push(story.at - submittedAt.get(callId)!)
      const end = story.at + 20 + Math.floor(random() * 81)
      endsAt.set(end, [...(endsAt.get(end) ?? []), callId])
    }
  }
  for (let tick = 0; tick < seconds * 1_000; tick += 1) {
    story.at = begun + tick
    for (const id of endsAt.get(story.at) ?? []) {
      story.settle(id)
      note()
    }
    endsAt.delete(story.at)
    for (const [priorityClass, share] of Object.entries(perMs)) {
      const tally = tallies.get(priorityClass) ?? { asked: 0, shed: 0, waitsMs: [] }
      tallies.set(priorityClass, tally)
      if (random() >= share) continue
      const id = `${priorityClass}/${tick}`
      const lane = priorityClass === 'background_ingestion' ? 'auxiliary' : 'primary'
      tally.asked += 1
      submittedAt.set(id, story.at)
      const principal = `${priorityClass}-${Math.floor(random() * 12)}`
      story.submit({ id, lane, priorityClass: priorityClass as PriorityClass, principal })
      note()
    }
  }
  return (priorityClass: PriorityClass) => {
    const { asked, shed, waitsMs } = tallies.get(priorityClass)!
    const sorted = waitsMs.sort((one, other) => one - other)
    return { asked, shed: shed / asked, p99Ms: sorted[Math.floor(sorted.length * 0.99)]! }
  }
}

describe('a soak of 32 places', () => {
  it.each([1, 2, 3])(
    'lets interactive in within 5 ms at p99 and sheds at most 2 in 100 of it, while ingest is shed (seed %i)',
    (seed) => {
      const of = soak(seed, 20, {
        interactive: 0.05,
        orchestration: 0.1,
        hydration: 0.05,
        background_ingestion: 0.9,
      })
      expect(of('interactive').asked).toBeGreaterThan(500)
      expect(of('interactive').p99Ms).toBeLessThan(5)
      expect(of('interactive').shed).toBeLessThanOrEqual(0.02)
      expect(of('background_ingestion').shed).toBeGreaterThan(0.2)
      expect(of('orchestration').shed).toBeLessThan(of('background_ingestion').shed)
    },
  )
})
