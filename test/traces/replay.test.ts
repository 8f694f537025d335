/** Real traffic through the actor and the emulator on virtual time; a small made trace stands in where the real ones are absent. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeProvider } from '../../src/emulator/index.ts'
import { parsePolicy } from '../../src/index.ts'
import { seededRandom } from '../../src/simulation/random.ts'
import { laneScheduler } from '../../src/simulation/schedulers.ts'
import { Timeline } from '../../src/simulation/timeline.ts'
import { Witness } from '../../src/simulation/witness.ts'
import { type SimulatedCall, World } from '../../src/simulation/world.ts'

interface Request {
  readonly atMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** An optional folder with public request traces. */
const folder = process.env['RIGHTOFWAY_TRACES'] ?? ''
const names = ['mooncake-conversation.csv', 'azure-2023-conversation.csv', 'azure-2023-code.csv']
const present = names.filter((name) => existsSync(join(folder, name)))

const readTrace = (name: string): Request[] =>
  readFileSync(join(folder, name), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').map(Number) as [number, number, number])
    .map(([atMs, inputTokens, outputTokens]) => ({ atMs: Math.floor(atMs), inputTokens, outputTokens }))

const madeTrace = (): Request[] => {
  const random = seededRandom(5)
  let atMs = 0
  return Array.from({ length: 400 }, () => {
    atMs += Math.floor(random() * 900)
    const inputTokens =
      random() < 0.03 ? 60_000 + Math.floor(random() * 60_000) : 500 + Math.floor(random() * 12_000)
    return { atMs, inputTokens, outputTokens: Math.floor(random() * 400) }
  })
}

const traces: ReadonlyArray<readonly [string, ReadonlyArray<Request>]> =
  present.length > 0 ? present.map((name) => [name, readTrace(name)]) : [['a made trace', madeTrace()]]

const callOf = ({ inputTokens, outputTokens }: Request, index: number): SimulatedCall => {
  const lane = inputTokens > 30_000 || index % 40 === 0 ? 'primary' : 'auxiliary'
  return {
    id: `call-${index}`,
    lane,
    priorityClass: lane === 'primary' ? 'interactive' : 'background_ingestion',
    principal: `tenant-${index % 7}`,
    inputTokens,
    outputTokens,
  }
}

describe.each(traces)('%s', (_, requests) => {
  it.each(['settle', 'cancel', 'tolerate'] as const)(
    'ends every request in exactly one outcome and keeps the invariants after every event (%s)',
    (inFlight) => {
      const timeline = new Timeline(1_700_000_000_000)
      const provider = makeProvider({
        rules: [
          { rule: 'token-bucket', inputTokensPerMinute: 2_000_000 },
          { rule: 'concurrency', maxConcurrent: 12 },
        ],
        latency: { firstTokenMs: 800, perOutputTokenMs: 10 },
        seed: 1,
      })
      const world = new World(timeline, provider)
      const policy = { inFlight, capacity: 16, drainIntervalMs: 100 }
      const witness = new Witness(parsePolicy(policy))
      const lanes = laneScheduler(world, policy, (event, decisions, after) =>
        witness.observe(event, decisions, after),
      )
      const start = timeline.now()
      requests.forEach((request, index) => {
        timeline.at(start + request.atMs, () => world.submit(lanes, callOf(request, index)))
      })
      timeline.runUntil(start + requests.at(-1)!.atMs + 8 * 60 * 60_000)
      witness.finish()
      const records = [...world.records.values()]
      expect(records).toHaveLength(requests.length)
      expect(records.filter(({ endedAtMs }) => endedAtMs === null)).toEqual([])
    },
    120_000,
  )
})
