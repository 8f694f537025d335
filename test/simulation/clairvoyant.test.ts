import { describe, expect, test } from 'vitest'
import type { RuleSpec } from '../../src/emulator/index.ts'
import { type Bound, clairvoyant } from '../../src/simulation/arena/clairvoyant/clairvoyant.ts'
import { sequenceOf } from '../../src/simulation/arena/size.ts'
import { exhaustive, type TinyCall, type TinyCase } from './exhaustive.ts'
import { callsAt, tinyScenario, workers } from './tiny.ts'

const families: Readonly<Record<string, ReadonlyArray<RuleSpec>>> = {
  'token-bucket': [{ rule: 'token-bucket', inputTokensPerMinute: 90 }],
  'a small burst': [{ rule: 'token-bucket', inputTokensPerMinute: 120, burstInputTokens: 80 }],
  'charged at completion': [{ rule: 'token-bucket', inputTokensPerMinute: 90, chargedAt: 'completion' }],
  'changing-bucket': [
    {
      rule: 'changing-bucket',
      changes: [
        { atMs: 0, inputTokensPerMinute: 120 },
        { atMs: 60_000, inputTokensPerMinute: 60 },
      ],
    },
  ],
  'a fixed window': [{ rule: 'token-window', form: 'fixed', inputTokensPerWindow: 90 }],
  'a sliding window': [{ rule: 'token-window', form: 'sliding', inputTokensPerWindow: 90 }],
  'use-growth': [
    { rule: 'use-growth', floorTokensPerMinute: 70, growthPerMinute: 1.5, tierTokensPerMinute: 300 },
  ],
  'time-step': [
    {
      rule: 'time-step',
      floorTokensPerMinute: 60,
      stepTokensPerMinute: 20,
      tierTokensPerMinute: 200,
      idleResetMinutes: 1,
    },
  ],
  'slow-down': [{ rule: 'slow-down', steadyTokensPerMinute: 70, growth: 1.5, windowMs: 60_000 }],
  concurrency: [{ rule: 'concurrency', maxConcurrent: 1 }],
  outage: [
    { rule: 'outage', periods: [[20_000, 100_000]] },
    { rule: 'token-bucket', inputTokensPerMinute: 120 },
  ],
  'requests-per-minute': [{ rule: 'requests-per-minute', requestsPerMinute: 1 }],
}

/** Three primaries that come over time, and two auxiliaries: a greedy planner does not foresee them. */
const tinyCase = (rules: ReadonlyArray<RuleSpec>, seed: number): TinyCase => {
  const next = sequenceOf(seed, 11)
  const random = (low: number, high: number, step: number): number =>
    low + Math.floor(next() * ((high - low) / step + 1)) * step
  const calls = Array.from({ length: 5 }, (_, index): TinyCall => {
    const lane = index < 3 ? 'primary' : 'auxiliary'
    const inputTokens = random(20, lane === 'primary' ? 80 : 60, 10)
    return { lane, atMs: random(0, 60_000, 20_000), inputTokens, outputTokens: random(0, 20, 10) }
  })
  return { rules, calls, firstTokenMs: 5_000, perOutputTokenMs: 1_000, gridMs: 20_000, horizonMs: 240_000 }
}

const boundOf = ({ rules, calls, horizonMs, firstTokenMs, perOutputTokenMs }: TinyCase): Bound => {
  const traffic = calls.map((call, index) =>
    callsAt(call.lane, `p${index}`, [call.atMs], call.inputTokens, call.outputTokens),
  )
  const scenario = tinyScenario(rules, traffic, { durationMs: horizonMs })
  return clairvoyant({
    ...scenario,
    provider: { ...scenario.provider, latency: { firstTokenMs, perOutputTokenMs } },
  })
}

describe('the clairvoyant bound against every plan on a grid', () => {
  test.each(Object.entries(families))('%s', (_name, rules) => {
    let tight = 0
    let compared = 0
    for (let seed = 0; seed < 25; seed += 1) {
      const tiny = tinyCase(rules, seed)
      const [best, bound] = [exhaustive(tiny), boundOf(tiny)]
      expect(bound.primariesUnserved, `seed ${seed}`).toBeLessThanOrEqual(best.unserved)
      if (best.unserved > 0) continue
      compared += 1
      expect(bound.meanPrimaryWaitMs * 3, `seed ${seed}`).toBeLessThanOrEqual(best.waitMs + 1e-6)
      expect(best.auxiliaryTokens, `seed ${seed}`).toBeLessThanOrEqual(bound.auxiliaryTokens)
      // A plan on the grid is up to a step late for each primary.
      if (best.waitMs - bound.meanPrimaryWaitMs * 3 <= 3 * tiny.gridMs) tight += 1
    }
    // A bound of 0 would also be a bound, so the bound must be near a reachable value.
    expect(compared).toBeGreaterThan(10)
    expect(tight / compared).toBeGreaterThan(0.6)
  })
})

describe('the clairvoyant bound by hand', () => {
  const bucket: RuleSpec = { rule: 'token-bucket', inputTokensPerMinute: 600 }

  test('a primary that comes when the bucket is drained by others waits for nothing: they could have waited', () => {
    const scenario = tinyScenario([bucket], [workers('a', 3, 200), callsAt('primary', 'p', [30_000], 600)])
    expect(clairvoyant(scenario)).toMatchObject({ meanPrimaryWaitMs: 0, primariesUnserved: 0 })
  })

  test('two primaries at once wait for what both take, the smaller first', () => {
    const scenario = tinyScenario([bucket], [callsAt('primary', 'p', [0, 0], 600)])
    const { meanPrimaryWaitMs } = clairvoyant(scenario)
    // The second fits after a minute; looks are half a second apart.
    expect(meanPrimaryWaitMs).toBeLessThanOrEqual(30_000)
    expect(meanPrimaryWaitMs).toBeGreaterThan(29_500)
  })

  test('one above the burst is unserved, and counts to the end of the run-off', () => {
    const scenario = tinyScenario([bucket], [callsAt('primary', 'p', [0], 601)], { durationMs: 60_000 })
    expect(clairvoyant(scenario)).toMatchObject({ meanPrimaryWaitMs: 120_000, primariesUnserved: 1 })
  })

  test('tokens are those of the bucket and what flows in, or what is asked for', () => {
    expect(clairvoyant(tinyScenario([bucket], [workers('a', 3, 200)])).acceptedTokens).toBeCloseTo(1_800, 1)
    expect(clairvoyant(tinyScenario([bucket], [callsAt('auxiliary', 'a', [0], 50)])).acceptedTokens).toBe(50)
  })
})
