import { describe, expect, test } from 'vitest'
import type { RuleSpec } from '../../src/emulator/index.ts'
import { contenders } from '../../src/simulation/arena/contenders.ts'
import { pack } from '../../src/simulation/arena/oracle/packing.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { sequenceOf } from '../../src/simulation/arena/size.ts'
import { type Achieved, exhaustive, isBetter, type TinyCall, type TinyCase } from './exhaustive.ts'
import { callsAt, tinyScenario } from './tiny.ts'

type Random = (low: number, high: number, step: number) => number

/** Numbers are small, so that a plan on a grid of 20 s can be the best there is. */
const families: Readonly<Record<string, (random: Random) => ReadonlyArray<RuleSpec>>> = {
  'token-bucket': (random) => [{ rule: 'token-bucket', inputTokensPerMinute: random(60, 120, 12) }],
  'use-growth': (random) => [
    {
      rule: 'use-growth',
      floorTokensPerMinute: random(50, 90, 10),
      growthPerMinute: random(1.25, 2, 0.25),
      tierTokensPerMinute: 300,
    },
  ],
  'time-step': (random) => [
    {
      rule: 'time-step',
      floorTokensPerMinute: random(50, 80, 10),
      stepTokensPerMinute: 20,
      tierTokensPerMinute: 200,
      idleResetMinutes: random(1, 2, 1),
    },
  ],
  'slow-down': (random) => [
    { rule: 'slow-down', steadyTokensPerMinute: random(60, 90, 10), growth: 1.5, windowMs: 60_000 },
  ],
  concurrency: (random) => [{ rule: 'concurrency', maxConcurrent: random(1, 2, 1) }],
  'output-tokens-per-minute': () => [{ rule: 'output-tokens-per-minute', outputTokensPerMinute: 30 }],
  'a ramp under a bucket': () => [
    { rule: 'use-growth', floorTokensPerMinute: 60, growthPerMinute: 1.5, tierTokensPerMinute: 300 },
    { rule: 'token-bucket', inputTokensPerMinute: 120 },
  ],
}

/** One or two primaries and as many auxiliaries as make five calls, all there from the start: nothing is to come. */
const tinyCase = (family: keyof typeof families, seed: number): TinyCase => {
  const next = sequenceOf(seed, 7)
  const random: Random = (low, high, step) => low + Math.floor(next() * ((high - low) / step + 1)) * step
  const primaries = random(1, 2, 1)
  const calls = Array.from({ length: 5 }, (_, index): TinyCall => {
    const primary = index < primaries
    return {
      lane: primary ? 'primary' : 'auxiliary',
      atMs: 0,
      inputTokens: primary ? random(20, 120, 10) : random(20, 60, 10),
      outputTokens: random(0, primary ? 20 : 40, 10),
    }
  })
  const rules = families[family]!(random)
  return { rules, calls, firstTokenMs: 5_000, perOutputTokenMs: 1_000, gridMs: 20_000, horizonMs: 240_000 }
}

const oracleOn = ({ rules, calls, firstTokenMs, perOutputTokenMs, horizonMs }: TinyCase): Achieved => {
  const traffic = calls.map((call, index) =>
    callsAt(call.lane, `p${index}`, [call.atMs], call.inputTokens, call.outputTokens),
  )
  const scenario = tinyScenario(rules, traffic, { durationMs: horizonMs })
  const latency = { firstTokenMs, perOutputTokenMs }
  const run = runPolicy({ ...scenario, provider: { ...scenario.provider, latency } }, contenders.oracle)
  const achieved = { unserved: 0, waitMs: 0, auxiliaryTokens: 0 }
  for (const { call, submittedAtMs, acceptedAtMs } of run.records) {
    const served = acceptedAtMs !== null && acceptedAtMs < horizonMs
    if (call.lane === 'auxiliary') achieved.auxiliaryTokens += served ? call.inputTokens : 0
    else if (served) achieved.waitMs += acceptedAtMs - submittedAtMs
    else achieved.unserved += 1
  }
  return achieved
}

const seeds = Array.from({ length: 40 }, (_, index) => index)

describe('the oracle against every plan on a grid', () => {
  test.each(Object.keys(families))('%s', (family) => {
    const beaten = seeds.filter((seed) => {
      const tiny = tinyCase(family, seed)
      const [best, oracle] = [exhaustive(tiny), oracleOn(tiny)]
      if (!isBetter(best, oracle)) return false
      // The best schedule never waits longer for the same primaries. The oracle may miss a primary that gets
      // in only by a contrived use of the last auxiliaries.
      // spending of the last auxiliaries gets in.
      expect(best.unserved, `seed ${seed}`).toBeLessThan(oracle.unserved)
      return true
    })
    // The oracle misses two things: a small primary held back to warm up for a large one, and windows of a
    // minute that overlap. Both occur only when ceilings follow use, and seldom.
    // overlap. Only where ceilings follow use, and seldom.
    const followsUse = tinyCase(family, 0).rules.some(
      ({ rule }) => rule === 'use-growth' || rule === 'slow-down',
    )
    const mayMiss = followsUse ? seeds.length * 0.08 : 0
    expect(beaten.length, `seeds ${beaten}`).toBeLessThanOrEqual(mayMiss)
  })
})

describe('packing', () => {
  test.each([
    ['nothing fits', [50, 60], 40, []],
    ['two small ones beat one large one', [77, 41, 49], 90, [49, 41]],
    ['the large one beats two small ones', [88, 41, 45], 90, [88]],
    ['all of them', [10, 20, 30], 60, [30, 20, 10]],
    ['no bound', [1, 2], Number.POSITIVE_INFINITY, [2, 1]],
    ['nothing there', [], 10, []],
  ])('%s', (_name, tokens, room, expected) => {
    expect(pack(tokens, room).map((index) => tokens[index])).toEqual(expected)
  })

  test('is short of the best subset by less than it says', () => {
    for (const seed of seeds) {
      const random = sequenceOf(seed, 3)
      const tokens = Array.from({ length: 10 }, () => 1 + Math.floor(random() * 80_000))
      const room = Math.floor(random() * 300_000)
      let best = 0
      for (let mask = 0; mask < 1 << tokens.length; mask += 1) {
        const sum = tokens.reduce((total, size, index) => total + ((mask >> index) & 1) * size, 0)
        if (sum <= room) best = Math.max(best, sum)
      }
      const packed = pack(tokens, room).reduce((sum, index) => sum + tokens[index]!, 0)
      expect(packed).toBeLessThanOrEqual(room)
      expect(packed).toBeGreaterThanOrEqual(best - (tokens.length * room) / 512)
    }
  })
})

describe('what only knowledge can do', () => {
  const growth: RuleSpec = {
    rule: 'use-growth',
    floorTokensPerMinute: 90,
    growthPerMinute: 1.35,
    tierTokensPerMinute: 400,
  }

  test('warms a cold ceiling up in three minutes', () => {
    const scenario = tinyScenario(
      [growth],
      [callsAt('primary', 'p', [0], 181), callsAt('auxiliary', 'a', new Array(40).fill(0), 15)],
      { durationMs: 600_000 },
    )
    const [primary] = runPolicy(scenario, contenders.oracle).records
    expect(primary!.acceptedAtMs).toBe(180_000)
  })

  test('keeps one auxiliary for each minute that a climb must not idle', () => {
    const climb: RuleSpec = {
      rule: 'time-step',
      floorTokensPerMinute: 70,
      stepTokensPerMinute: 20,
      tierTokensPerMinute: 200,
      idleResetMinutes: 1,
    }
    const auxiliaries = [30, 50, 20, 50].map((tokens) => callsAt('auxiliary', 'a', [0], tokens))
    const scenario = tinyScenario([climb], [callsAt('primary', 'p', [0], 120), ...auxiliaries], {
      durationMs: 240_000,
    })
    const [primary] = runPolicy(scenario, contenders.oracle).records
    expect(primary!.acceptedAtMs).toBe(180_000)
  })

  test('is refused by chance alone', () => {
    const scenario = tinyScenario(
      [{ rule: 'overload', probability: 0.5 }, growth],
      [callsAt('auxiliary', 'a', [0, 10, 20, 30], 15)],
    )
    const { log, records } = runPolicy(scenario, contenders.oracle)
    expect(new Set(log.flatMap(({ rule }) => rule ?? []))).toEqual(new Set(['overload']))
    expect(records.every(({ acceptedAtMs }) => acceptedAtMs !== null)).toBe(true)
  })
})
