/**
 * The next step of each plan, by the ramp's state: the time of the next try, and the fullness of the minute
 * before it.
 */
import { describe, expect, it } from 'vitest'
import { type Growth, type MinuteBounds, unknownGrowth } from '../../../machines/limits/ceiling.ts'
import { emptyRamp, type Ramp, type RampPlan, type Refusal } from '../../../machines/limits/ramp.ts'
import {
  boundaryAfter,
  factorAt,
  planNextTry,
  type RampBounds,
  statedFitAt,
} from '../../../machines/limits/ramp-plan.ts'
import { atMs, idleMinute, minute, refusal, usedAt } from './moment.ts'

const boundary = (count: number) => (minute + count) * 60_000

const rowOf = (over: Partial<MinuteBounds>, minutesAgo = 0): MinuteBounds => ({
  ...idleMinute(minute - minutesAgo),
  ...over,
})

const planOf = (kind: RampPlan['kind'], over: Partial<RampPlan> = {}): RampPlan => ({
  kind,
  tokens: 180,
  tryAtMs: atMs,
  refusals: 1,
  targetTokens: 0,
  quietUntilMs: 0,
  ...over,
})
const withTime: Growth = { ...unknownGrowth, kind: 'withTime', tokensPerMinute: 20 }
const withUse: Growth = { ...unknownGrowth, kind: 'withUse', factor: 1.5 }

/** A ramp of which all minutes are written down. */
const rampWith = (over: Partial<Ramp>): Ramp => ({ ...emptyRamp, closedMinute: minute, refusal, ...over })

const planned = (strategy: RampBounds['strategy'], over: Partial<Ramp>, quietWindowMs = 65_000) =>
  planNextTry(rampWith(over), { strategy, quietWindowMs }).plan!

/** A refusal with `trailingTokens` used ten seconds ago. */
const afterUse = (trailingTokens: number, over: Partial<Refusal> = {}): Partial<Ramp> => ({
  slots: usedAt([10, trailingTokens]),
  refusal: { ...refusal, trailingTokens, ...over },
})

describe('a ramp that knows of no refusal', () => {
  it('plans nothing', () => {
    const ramp = rampWith({ refusal: null })
    expect(planNextTry(ramp, { strategy: 'adaptive', quietWindowMs: 65_000 })).toBe(ramp)
  })
})

describe('a minute boundary', () => {
  it.each([
    ['after a time is the next', atMs, 1, boundary(1)],
    ['after a boundary is not that one', boundary(0), 1, boundary(1)],
    ['that is asked for as none is the next', atMs, 0, boundary(1)],
    ['may be a later one', atMs, 3, boundary(3)],
  ])('%s', (_, fromMs, count, expected) => {
    expect(boundaryAfter(fromMs, count)).toBe(expected)
  })

  it.each<[string, Refusal | null, number | null]>([
    ['is not named without a refusal', null, null],
    ['is not named where nothing is stated', refusal, null],
    [
      'is not named where the steps do not rise',
      { ...refusal, statedLimit: 100, statedNextLimit: 100 },
      null,
    ],
    [
      'is the one at which steps reach the call',
      { ...refusal, statedLimit: 100, statedNextLimit: 140 },
      boundary(2),
    ],
    [
      'is the next where the ceiling holds it',
      { ...refusal, statedLimit: 200, statedNextLimit: 240 },
      boundary(1),
    ],
  ])('at which a call fits by what is stated %s', (_, told, expected) => {
    expect(statedFitAt(rampWith({ refusal: told }), 180)).toBe(expected)
  })
})

describe('the factor that use is expected to lift a ceiling by', () => {
  /** A floor of 100, and bounds of the factor in the minute after. */
  const between = (low: number, high: number) => [
    rowOf({ acceptedTokens: 90, refusedTokens: 100 }, 1),
    rowOf({
      acceptedTokens: 100 * low,
      acceptedBeforeTokens: 100,
      refusedTokens: 100 * high,
      refusedBeforeTokens: 100,
    }),
  ]
  it.each<[string, Partial<Ramp>, number]>([
    ['is hoped for before anything was seen', {}, 1.3],
    ['is what was seen', { growth: withUse }, 1.5],
    ['is no longer hoped for where it must be more', { minutes: between(1.6, 2) }, 1.6],
    ['is the middle of what is left where the hope is ruled out', { minutes: between(1.1, 1.2) }, 1.15],
    ['is ruled out by just that', { minutes: between(1.1, 1.3) }, 1.2],
    ['is never a fall', { minutes: [rowOf({ refusedTokens: 50, refusedBeforeTokens: 100 })] }, 1],
    [
      'is hoped for where no factor explains what was seen',
      { minutes: [...between(1.1, 1.2), rowOf({ acceptedTokens: 200 })] },
      1.3,
    ],
    ['is not that of a growth with time', { growth: { ...withTime, factor: 9 } }, 1.3],
  ])('%s', (_, over, factor) => {
    expect(factorAt(rampWith(over))).toBeCloseTo(factor, 9)
  })
})

describe('a quiet plan', () => {
  const inQuiet = (leftMs: number) => planOf('quiet', { quietUntilMs: atMs + leftMs })
  it.each<[string, Partial<Ramp>, number, number]>([
    ['lasts the whole window, where nothing was sent, and is tried in its first quarter', {}, 16_250, 65_000],
    ['lasts until the trailing minute has emptied', afterUse(100), 16_250, 51_000],
    ['keeps the end it had', { ...afterUse(100), plan: inQuiet(40_000) }, 16_250, 40_000],
    ['begins anew after that', { ...afterUse(100), plan: inQuiet(0) }, 16_250, 51_000],
    [
      'begins anew after another plan',
      { plan: planOf('hold', { quietUntilMs: atMs + 9_000 }) },
      16_250,
      65_000,
    ],
    [
      'is tried at its end, where another try would come too close to it',
      { plan: inQuiet(24_374) },
      24_374,
      24_374,
    ],
    ['is tried before, where it would not', { plan: inQuiet(24_375) }, 16_250, 24_375],
    [
      'is tried when the minute has emptied to the stated ceiling',
      afterUse(100, { statedLimit: 200 }),
      51_000,
      51_000,
    ],
    ['of a ceiling that is the call itself as well', afterUse(100, { statedLimit: 180 }), 51_000, 51_000],
    ['but not of one below it', afterUse(100, { statedLimit: 179 }), 16_250, 51_000],
    ['nor of one under which both would have fitted', afterUse(20, { statedLimit: 200 }), 16_250, 51_000],
    ['of one under which they did not by a token', afterUse(21, { statedLimit: 200 }), 51_000, 51_000],
    [
      'is tried at its end at the latest',
      { ...afterUse(100, { statedLimit: 200 }), plan: inQuiet(30_000) },
      30_000,
      30_000,
    ],
  ])('%s', (_, over, triesMs, lastsMs) => {
    const refusals = (over.plan?.refusals ?? 0) + 1
    expect(planned('quiet', over)).toEqual(
      planOf('quiet', { tryAtMs: atMs + triesMs, refusals, quietUntilMs: atMs + lastsMs }),
    )
  })

  it('is tried a millisecond later at the least', () => {
    expect(planned('quiet', {}, 0)).toMatchObject({ tryAtMs: atMs, quietUntilMs: atMs })
    expect(planned('quiet', { plan: inQuiet(10) }, 0).tryAtMs).toBe(atMs + 1)
  })
})

describe('a backfill', () => {
  const seen = (over: Partial<MinuteBounds>, rate = 20): Partial<Ramp> => ({
    growth: { ...withTime, tokensPerMinute: rate },
    minutes: [rowOf(over)],
  })
  it.each<[string, Partial<Ramp>, number, number]>([
    ['tries at the next boundary, where nothing is known', {}, 65_000, boundary(1)],
    ['tries within the quiet window, where that ends before', {}, 3_000, atMs + 3_000],
    [
      'tries at the boundary that is stated',
      { refusal: { ...refusal, statedLimit: 100, statedNextLimit: 140 } },
      3_000,
      boundary(2),
    ],
    // From the middle of 100 and 140, 60 are missing.
    [
      'tries at the boundary that the growth that was seen needs',
      seen({ acceptedTokens: 100, refusedTokens: 140 }, 30),
      3_000,
      boundary(2),
    ],
    [
      'takes part of a boundary for none',
      seen({ acceptedTokens: 100, refusedTokens: 140 }, 31),
      3_000,
      boundary(1),
    ],
    [
      'tries at the third at the latest',
      seen({ acceptedTokens: 100, refusedTokens: 140 }, 1),
      3_000,
      boundary(3),
    ],
    [
      'tries at the next at the earliest',
      seen({ acceptedTokens: 170, refusedTokens: 175 }),
      3_000,
      boundary(1),
    ],
    // The middle of 100 and the call: 40 are missing.
    [
      'takes the call for the upper bound, where none is lower',
      seen({ acceptedTokens: 100, refusedTokens: 900 }),
      3_000,
      boundary(2),
    ],
    ['or none is known', seen({ acceptedTokens: 100 }), 3_000, boundary(2)],
    ['takes no growth for none', seen({ acceptedTokens: 100 }, 0), 3_000, atMs + 3_000],
    [
      'takes growth with use for none',
      { ...seen({ acceptedTokens: 100 }), growth: { ...withUse, tokensPerMinute: 20 } },
      3_000,
      atMs + 3_000,
    ],
  ])('%s', (_, over, quietWindowMs, tryAtMs) => {
    expect(planned('backfill', over, quietWindowMs)).toEqual(planOf('backfill', { tryAtMs }))
  })
})

describe('a minute that is built', () => {
  it.each<[string, Partial<Ramp>, number, number]>([
    ['is as full as the growth that is hoped for needs', {}, 139, boundary(1)],
    ['is as full as the growth that was seen needs', { growth: withUse }, 120, boundary(1)],
    [
      'goes on to the boundary after the next',
      { plan: planOf('build', { targetTokens: 150 }) },
      150,
      boundary(2),
    ],
    [
      'is fuller than one after which silence was not enough',
      { plan: planOf('hush', { targetTokens: 130 }) },
      150,
      boundary(1),
    ],
    [
      'is never less full than is hoped for',
      { plan: planOf('hush', { targetTokens: 10 }) },
      139,
      boundary(1),
    ],
    ['is never fuller than the call', { plan: planOf('hush', { targetTokens: 170 }) }, 180, boundary(1)],
  ])('%s', (_, over, targetTokens, tryAtMs) => {
    const refusals = (over.plan?.refusals ?? 0) + 1
    expect(planned('stepUp', over)).toEqual(planOf('build', { tryAtMs, refusals, targetTokens }))
  })

  it('is tried within the quiet window, where that ends before the boundary', () => {
    expect(planned('stepUp', {}, 3_000).tryAtMs).toBe(atMs + 3_000)
  })
})

describe('a level that is held', () => {
  it.each<[string, Partial<Ramp>, number]>([
    [
      'is what the ceiling was at least',
      { minutes: [rowOf({ acceptedTokens: 100, refusedTokens: 140 })] },
      100,
    ],
    ['is the call, where that is less', { minutes: [rowOf({ acceptedTokens: 200 })] }, 180],
    ['is made by the first call, where nothing was accepted', {}, 1],
  ])('%s', (_, over, targetTokens) => {
    expect(planned('holdSteady', over)).toEqual(planOf('hold', { tryAtMs: boundary(2), targetTokens }))
  })
})

describe('an adaptive ramp', () => {
  const rising = { refusal: { ...refusal, statedLimit: 100, statedNextLimit: 140 } }
  /** Used and accepted: 130 in the minute before the last, `last` in the last. */
  const lifted = (last: number, before = 130): Partial<Ramp> => {
    const used = usedAt([50, before], [10, last])
    return {
      slots: used,
      accepted: used,
      growth: withUse,
      refusal: { ...refusal, trailingTokens: before + last },
    }
  }
  it.each<[string, Partial<Ramp>, RampPlan['kind']]>([
    ['takes stated steps', rising, 'backfill'],
    [
      'takes them though it is quiet',
      { ...rising, plan: planOf('quiet', { quietUntilMs: atMs + 1 }) },
      'backfill',
    ],
    [
      'builds after silence, where they hold the call already',
      { refusal: { ...rising.refusal, statedLimit: 180, statedNextLimit: 190 } },
      'build',
    ],
    ['goes on with quiet until its end', { plan: planOf('quiet', { quietUntilMs: atMs + 1 }) }, 'quiet'],
    ['builds at its end', { ...afterUse(100), plan: planOf('quiet', { quietUntilMs: atMs }) }, 'build'],
    ['is quiet first, where others had sent', afterUse(100), 'quiet'],
    ['builds, where next to nobody had', afterUse(9), 'build'],
    ['is quiet, where a little more was sent', afterUse(10), 'quiet'],
    ['builds where silence did not help before', { ...afterUse(100), plan: planOf('hush') }, 'build'],
    ['waits for growth with time that was seen', { growth: withTime }, 'backfill'],
    ['and asks it three times', { growth: withTime, plan: planOf('backfill', { refusals: 2 }) }, 'backfill'],
    ['then builds', { growth: withTime, plan: planOf('backfill', { refusals: 3 }) }, 'build'],
    ['goes on building', { ...lifted(10), plan: planOf('build') }, 'build'],
    ['keeps silent after a minute that lifts the ceiling far enough', lifted(10), 'hush'],
    ['though another silence was not enough', { ...lifted(10), plan: planOf('hush') }, 'hush'],
    ['by just as much', lifted(10, 110), 'hush'],
    ['builds after one that does not', lifted(10, 109), 'build'],
  ])('%s', (_, over, kind) => {
    expect(planned('adaptive', over).kind).toBe(kind)
  })

  it.each<[string, Partial<Ramp>, number]>([
    // At least 140 are taken; the call of 180 needs all of the minute to be empty.
    ['until all has left', lifted(10), 51_000],
    // At least 185: five may be left.
    [
      'until what is left leaves room for the call',
      { ...lifted(5), minutes: [rowOf({ acceptedTokens: 185 })] },
      11_000,
    ],
    [
      'until all has left, where that did not help before',
      { ...lifted(5), minutes: [rowOf({ acceptedTokens: 185 })], plan: planOf('hush') },
      51_000,
    ],
    ['for a millisecond at the least', { ...lifted(5), slots: [], accepted: usedAt([70, 130]) }, 1],
  ])('keeps silent %s', (_, over, triesMs) => {
    expect(planned('adaptive', over).tryAtMs).toBe(atMs + triesMs)
  })
})
