/** Primaries owe background for the time in which they alone held it back, and for no other wait. */
import { describe, expect, it } from 'vitest'
import { type PolicyInput, poolPolicy } from '../../../machines/index.ts'
import { engineReadPolicy, modelGatePolicy, workerPoolPolicy } from '../../../src/config/pools.ts'
import { Story } from '../story.ts'

/** A place, quota or token that background may not have belongs to primaries, even while background is owed a quantum. */
describe('a quantum is never owed', () => {
  const pools: ReadonlyArray<[string, PolicyInput, number]> = [
    ['in a worker pool of 8 with 7 taken', workerPoolPolicy({ workers: 8 }), 7],
    ['in a model gate of 8 with 5 taken', modelGatePolicy({ capacity: 8 }), 5],
    ['in a read lane of 8 with 7 taken', engineReadPolicy({ slots: 8 }), 7],
    ['in a provider scope that tolerates, 21 of 32 taken', { inFlight: 'tolerate' }, 21],
    [
      'while background is squeezed to half its places',
      { ...modelGatePolicy({ capacity: 8 }), squeezeMs: 600_000 },
      5,
    ],
  ]

  it.each(pools)('from reserved places: %s, an interactive call lands at once', (_, policy, taken) => {
    const lanes = new Story(policy)
    for (let index = 0; index < taken + 4; index += 1)
      lanes.auxiliary(`a${index}`, { principal: `r${index % 3}` })
    expect(lanes.running.length).toBe(taken)
    // Longer than any deferral: nobody but the background itself held the background.
    for (let minute = 0; minute < 10; minute += 1) {
      lanes.pass(60_000)
      expect(lanes.primary(`p${minute}`)).toEqual([`admit p${minute}: primary`])
      lanes.settle(`p${minute}`)
    }
  })

  it.each<[string, PolicyInput]>([
    ['a quota of its principal', { ...poolPolicy, capacity: 8, quotas: { codebase: 2 } }],
    ['a quota of each principal', { ...poolPolicy, capacity: 8, principalQuota: 2 }],
    ['the cap of a lane', workerPoolPolicy({ workers: 8, laneCaps: { codebase: 2 } })],
  ])('beyond %s: an interactive call lands at once', (_, policy) => {
    const lanes = new Story(policy)
    for (let index = 0; index < 6; index += 1) lanes.auxiliary(`a${index}`, { principal: 'codebase' })
    for (let minute = 0; minute < 5; minute += 1) {
      lanes.pass(180_000)
      expect(lanes.primary(`p${minute}`)).toEqual([`admit p${minute}: primary`])
    }
  })

  it('for the time that only the budget kept background back', () => {
    const lanes = new Story({
      capacity: 4,
      reserve: 0,
      inFlight: 'tolerate',
      hold: 'untilSettled',
      maxDeferralMs: 10_000,
      limits: { inputTokensPerMinute: 600 },
    })
    lanes.primary('p', { inputTokens: 600 })
    lanes.auxiliary('a', { inputTokens: 500 })
    // Fifty seconds until the budget has 500 tokens; only then do primaries hold it.
    lanes.pass(50_000)
    lanes.primary('q', { inputTokens: 10 })
    expect(lanes.running).toEqual(['p', 'q'])
    expect(lanes.pass(10_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['release a: fairness'])
  })

  it('for the time that background itself filled its places', () => {
    const lanes = new Story({ capacity: 2, reserve: 1, inFlight: 'tolerate', maxDeferralMs: 10_000 })
    lanes.auxiliary('a', { principal: 'a' })
    lanes.primary('p')
    lanes.auxiliary('b', { principal: 'b' })
    lanes.pass(60_000)
    lanes.settle('a')
    lanes.primary('q')
    expect(lanes.running).toEqual(['p', 'q'])
    lanes.settle('q')
    expect(lanes.pass(9_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['release b: fairness'])
  })

  it('but is owed for places that primaries fill, one after the other', () => {
    const lanes = new Story({ ...poolPolicy, capacity: 1, maxDeferralMs: 10_000 })
    lanes.primary('p0')
    lanes.auxiliary('a')
    const order: string[] = []
    for (let index = 1; index < 15; index += 1) {
      lanes.primary(`p${index}`)
      lanes.pass(1_000)
      const [id] = lanes.running as [string]
      order.push(id)
      lanes.settle(id)
    }
    expect(order.indexOf('a')).toBe(10)
  })
})
