/** A call that a primary waits for inherits its right of way, in every state and after every refusal. */
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../story.ts'

const story = (policy = {}): Story =>
  new Story({ capacity: 4, reserve: 0, pacingBaseMs: 1_000, pacingMaxMs: 1_000, quietWindowMs: 0, ...policy })

describe('a dependency in flight', () => {
  it.each(['cancel', 'settle'] as const)(
    'that is spared by %s is in the way of nobody: an unrelated interactive call lands at once',
    (inFlight) => {
      const lanes = story({ inFlight })
      lanes.auxiliary('tool')
      lanes.auxiliary('other')
      lanes.primary('p', { dependsOn: ['tool'] })
      lanes.settle('other', inFlight === 'cancel' ? 'cancelled' : 'completed')
      expect(lanes.primary('q')).toEqual(['admit q: primary'])
      expect(lanes.running).toContain('tool')
      expect(lanes.context.counts.auxiliaryInTheWay).toBe(0)
    },
  )

  it('is in the way again when the primary that waited for it is gone', () => {
    const lanes = story({ inFlight: 'settle' })
    lanes.auxiliary('tool')
    lanes.primary('p', { dependsOn: ['tool'] })
    lanes.withdraw('p')
    expect(lanes.context.counts.auxiliaryInTheWay).toBe(1)
    lanes.primary('q')
    expect(lanes.reasonOf('q')).toBe('auxiliaries-in-flight')
  })

  it('is counted the same over a restart', () => {
    const lanes = story({ inFlight: 'settle' })
    lanes.auxiliary('tool')
    lanes.primary('p', { dependsOn: ['tool'] })
    expect(lanes.restarted().context.counts).toEqual(lanes.context.counts)
  })
})

describe('an expected dependency', () => {
  it('is still let through after a refusal of the primary that expects it', () => {
    const lanes = story({ hold: 'untilSettled' })
    lanes.primary('p', { dependsOn: ['tool'], inputTokens: 10 })
    lanes.refuse('p', refusalOf('overloaded'))
    expect(lanes.auxiliary('tool')).toEqual(['admit tool: dependency'])
  })

  it('of one primary is not forgotten because another is refused, or ends', () => {
    const lanes = story({ hold: 'untilSettled' })
    lanes.primary('p', { dependsOn: ['tool'] })
    lanes.primary('q', { dependsOn: ['tool'] })
    lanes.refuse('q', refusalOf('overloaded'))
    lanes.pass(1_000)
    lanes.refuse('q', refusalOf('overloaded'))
    lanes.withdraw('q')
    expect(lanes.auxiliary('tool')).toEqual(['admit tool: dependency'])
  })

  it('is expected no more when the primary has ended', () => {
    const lanes = story({ hold: 'untilSettled' })
    lanes.primary('p', { dependsOn: ['tool'] })
    lanes.settle('p')
    lanes.primary('q')
    lanes.auxiliary('tool')
    expect(lanes.reasonOf('tool')).not.toBeNull()
    expect(lanes.context.expected.toString()).not.toContain('tool')
  })
})

describe('a primary that an interactive one waits for', () => {
  const deep = (): Story => {
    const lanes = story({ capacity: 1, inFlight: 'tolerate' })
    lanes.primary('first')
    for (const id of ['o1', 'o2']) lanes.primary(id, { priorityClass: 'orchestration' })
    return lanes
  }

  const order = (lanes: Story): string[] => {
    const ids: string[] = []
    while (lanes.running.length > 0) {
      const [id] = lanes.running as [string]
      ids.push(id)
      lanes.settle(id)
    }
    return ids
  }

  it('goes with the rank of the one that waits', () => {
    const lanes = deep()
    lanes.primary('other')
    lanes.primary('p', { dependsOn: ['o2'] })
    lanes.primary('later')
    expect(order(lanes)).toEqual(['first', 'o2', 'other', 'p', 'later', 'o1'])
  })

  it('hands it on to what it waits for itself, and keeps it over a refusal and a restart', () => {
    const lanes = deep()
    lanes.primary('o3', { priorityClass: 'orchestration', dependsOn: ['o2'] })
    lanes.primary('other')
    lanes.primary('p', { dependsOn: ['o3'] })
    const later = lanes.restarted()
    expect(order(later)).toEqual(['first', 'o2', 'o3', 'other', 'p', 'o1'])
    lanes.settle('first')
    expect(lanes.running).toEqual(['o2'])
    lanes.refuse('o2', refusalOf('overloaded'))
    lanes.pass(2_000)
    expect(lanes.running).not.toContain('o1')
  })
})
