/** Which strategies a rule of the provider defeats. */
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, type Policy } from '../../../src/index.ts'
import { groundOf, minuteMs, runUnder } from './ground.ts'

type Strategy = Policy['strategy']

describe('a rule that defeats a strategy', () => {
  const useGrowth = (floorTokensPerMinute: number) => ({
    rule: 'use-growth',
    floorTokensPerMinute,
    growthPerMinute: 1.35,
    tierTokensPerMinute: 400_000,
  })
  /** Falls back to its floor after a single idle minute. */
  const impatient = {
    rule: 'time-step',
    floorTokensPerMinute: 90_000,
    stepTokensPerMinute: 17_000,
    tierTokensPerMinute: 400_000,
    idleResetMinutes: 1,
  }
  const isServed = (strategy: Strategy, rule: object): boolean =>
    runUnder(groundOf({ rule, start: 'cold', states: 'none' }), {
      ...adaptivePolicy,
      strategy,
      maxDeferralMs: 24 * 60 * minuteMs,
      primaryPendingTimeoutMs: 20 * minuteMs,
    }).isServed

  it.each<[string, object, Readonly<Record<Strategy, boolean>>]>([
    [
      'refills: silence is enough, and nobody delays what has a forecast',
      { rule: 'token-bucket', inputTokensPerMinute: 210_000 },
      { quiet: true, holdSteady: true, stepUp: true, backfill: true, adaptive: true },
    ],
    [
      'follows use: silence lets it fall, and what is surely taken is not enough',
      useGrowth(130_000),
      { quiet: false, holdSteady: false, stepUp: true, backfill: false, adaptive: true },
    ],
    [
      'follows use and has to be raised: holding is not enough',
      useGrowth(90_000),
      { quiet: false, holdSteady: false, stepUp: true, backfill: false, adaptive: true },
    ],
    [
      'climbs with time while it is used: silence sets it back',
      impatient,
      { quiet: false, holdSteady: true, stepUp: true, backfill: true, adaptive: true },
    ],
  ])('%s', (_, rule, served) => {
    for (const strategy of Object.keys(served) as Array<Strategy>)
      expect([strategy, isServed(strategy, rule)]).toEqual([strategy, served[strategy]])
  })
})
