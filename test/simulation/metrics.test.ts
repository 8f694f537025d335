import { describe, expect, test } from 'vitest'
import { contenders } from '../../src/simulation/arena/contenders.ts'
import { jainOfEquals } from '../../src/simulation/arena/equals.ts'
import { jainIndex, maxMinShares } from '../../src/simulation/arena/jain.ts'
import { compare, measure, nearestRank } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { callsAt, tinyScenario, workers } from './tiny.ts'

const bucket = { rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' } as const

describe('metrics, by hand', () => {
  test('nearest rank is a value that was seen', () => {
    const sorted = [1, 2, 3, 4]
    expect([0.5, 0.75, 0.95, 1].map((share) => nearestRank(sorted, share))).toEqual([2, 3, 4, 4])
    expect(nearestRank([], 0.5)).toBeNull()
  })

  test('max-min shares give nobody more than it asks for', () => {
    expect(maxMinShares(90, [10, 100, 100])).toEqual([10, 40, 40])
    expect(maxMinShares(90, [10, 20, 30])).toEqual([10, 20, 30])
    expect(maxMinShares(0, [5, 5])).toEqual([0, 0])
  })

  test("Jain's index goes from 1/n to 1", () => {
    expect(jainIndex([1, 1, 1])).toBe(1)
    expect(jainIndex([1, 0, 0, 0])).toBe(0.25)
    expect(jainIndex([])).toBe(1)
    expect(jainIndex([0, 0])).toBe(1)
  })

  // A bucket of 600 that gives 10 a second: the auxiliary takes 500 at 0, the primary needs 300 at
  // 1 s and finds 110, so it is refused, told 19 s, and accepted at 20 s with 300 left to take.
  const scenario = tinyScenario(
    [bucket],
    [callsAt('auxiliary', 'a', [0], 500), callsAt('primary', 'p', [1_000], 300)],
  )

  test('a primary that waits for a bucket', () => {
    const measured = measure(runPolicy(scenario, contenders['naive-retry']))
    expect(measured).toMatchObject({
      primaryWaitMs: { p50: 19_000, p95: 19_000, max: 19_000 },
      primariesUnserved: 0,
      auxiliaryTokensServed: 500,
      auxiliaryMaxDeferralMs: 0,
      refusals: { primary: 1, auxiliary: 0 },
      jain: 1,
      meanPrimaryWaitMs: 19_000,
    })
    // One more call could have 399.99 tokens at the end of the first minute, and the full bucket after that.
    expect(measured.utilization).toBeCloseTo(800 / (800 + 399 + 600), 3)
  })

  test('a primary that is never accepted waits until the end of the run-off and is unserved', () => {
    const never = tinyScenario([bucket], [callsAt('primary', 'p', [20_000], 601)], { durationMs: 60_000 })
    expect(measure(runPolicy(never, contenders['naive-retry']))).toMatchObject({
      primaryWaitMs: { p50: 100_000, p95: 100_000, max: 100_000 },
      primariesUnserved: 1,
    })
  })

  test('an auxiliary that its client gave up counts as deferred to the end', () => {
    const never = tinyScenario([bucket], [callsAt('auxiliary', 'a', [20_000], 601)], { durationMs: 60_000 })
    expect(measure(runPolicy(never, contenders['naive-retry']))).toMatchObject({
      primaryWaitMs: { p50: null, p95: null, max: null },
      auxiliaryTokensServed: 0,
      auxiliaryMaxDeferralMs: 40_000,
      refusals: { primary: 0, auxiliary: 1 },
    })
  })

  test('places that are busy, as a share', () => {
    // Four calls of 1 s in turn, one at a time, in 8 s of two places.
    const busy = tinyScenario(
      [{ rule: 'concurrency', maxConcurrent: 2 }],
      [callsAt('auxiliary', 'a', [0, 1_000, 2_000, 3_000], 1)],
      { durationMs: 8_000 },
    )
    expect(measure(runPolicy(busy, contenders['naive-retry'])).utilization).toBe(0.25)
  })

  test('fairness is against what a principal asked for', () => {
    const little = tinyScenario(
      [bucket],
      [callsAt('auxiliary', 'little', [0], 10), callsAt('auxiliary', 'much', [0, 1, 2], 100)],
    )
    expect(measure(runPolicy(little, contenders['naive-retry'])).jain).toBe(1)
    const crowded = tinyScenario([bucket], [workers('one', 1, 200), workers('many', 9, 200)])
    expect(measure(runPolicy(crowded, contenders['naive-retry'])).jain).toBeLessThan(0.8)
  })

  test('fairness between equals looks at tokens alone, and only at those who ask for the same', () => {
    const alike = tinyScenario(
      [bucket],
      [workers('one', 1, 200), workers('other', 1, 200), workers('many', 9, 200)],
    )
    const run = runPolicy(alike, contenders['naive-retry'])
    const [one, other] = ['one', 'other'].map((principal) =>
      run.records.reduce(
        (sum, { call, acceptedAtMs }) =>
          call.principal === principal && (acceptedAtMs ?? Infinity) < 120_000 ? sum + call.inputTokens : sum,
        0,
      ),
    )
    expect(jainOfEquals(run)).toBe(jainIndex([one!, other!]))
    const nobody = runPolicy(scenario, contenders['naive-retry'])
    expect(jainOfEquals(nobody)).toBeNull()
  })

  test('ratios survive an oracle that waits for nothing and a rival that is never refused', () => {
    const own = measure(runPolicy(scenario, contenders['naive-retry']))
    const idle = {
      ...own,
      meanPrimaryWaitMs: 0,
      auxiliaryTokensServed: 0,
      refusals: { primary: 0, auxiliary: 0 },
    }
    const clairvoyant = {
      meanPrimaryWaitMs: 0,
      primariesUnserved: 0,
      acceptedTokens: 1_300,
      auxiliaryTokens: 1_000,
    }
    expect(compare(own, { oracle: own, naive: own, clairvoyant })).toEqual({
      primaryWaitVsOracle: 1,
      auxiliaryTokensVsOracle: 1,
      primaryWaitVsClairvoyant: 20,
      auxiliaryTokensVsClairvoyant: 0.5,
      refusalsVsNaive: 1,
    })
    const boundless = { ...clairvoyant, auxiliaryTokens: Number.POSITIVE_INFINITY }
    expect(compare(own, { oracle: idle, naive: idle, clairvoyant: boundless })).toEqual({
      primaryWaitVsOracle: 20,
      auxiliaryTokensVsOracle: 1,
      primaryWaitVsClairvoyant: 20,
      auxiliaryTokensVsClairvoyant: null,
      refusalsVsNaive: 1,
    })
  })
})
