/**
 * A ramp's bounds on a ceiling after acceptances and refusals, how long a refusal counts, and when a call is
 * tried.
 */
import { describe, expect, it } from 'vitest'
import type { MinuteBounds } from '../../../machines/limits/ceiling.ts'
import {
  acceptedUnder,
  boundsOf,
  changesAt,
  corrected,
  emptyRamp,
  type Ramp,
  type RampPlan,
  refusedUnder,
  refusedUseAt,
  review,
  trailingTokens,
  tryAt,
  use,
  warmth,
} from '../../../machines/limits/ramp.ts'
import { refusalOf } from '../story.ts'
import { atMs, idleMinute, minute, refusal, usedAt } from './moment.ts'

const rowOf = (minutesAgo: number, over: Partial<MinuteBounds> = {}): MinuteBounds => ({
  ...idleMinute(minute - minutesAgo),
  ...over,
})

const planOf = (kind: RampPlan['kind'], over: Partial<RampPlan> = {}): RampPlan => ({
  kind,
  tokens: 180,
  tryAtMs: atMs + 9_000,
  refusals: 1,
  targetTokens: 0,
  quietUntilMs: 0,
  ...over,
})
const rampWith = (over: Partial<Ramp>): Ramp => ({ ...emptyRamp, ...over })

describe('use', () => {
  const ramp = rampWith({ slots: usedAt([10, 50]), accepted: usedAt([10, 40]) })

  it('is added at the time of dispatch, and given back there', () => {
    expect(use(ramp, 5, atMs - 10_000, atMs)).toEqual({ ...ramp, slots: usedAt([10, 55]) })
    expect(use(ramp, -5, atMs - 10_000, atMs)).toEqual({ ...ramp, slots: usedAt([10, 45]) })
    expect(trailingTokens(use(ramp, 5, atMs, atMs), atMs)).toBe(55)
  })

  it('is corrected with what was accepted', () => {
    const expected = { ...ramp, slots: usedAt([10, 53]), accepted: usedAt([10, 43]) }
    expect(corrected(ramp, 3, atMs - 10_000, atMs)).toEqual(expected)
  })

  it('of nothing changes nothing', () => {
    expect(use(ramp, 0, atMs, atMs)).toBe(ramp)
    expect(corrected(ramp, 0, atMs, atMs)).toBe(ramp)
  })
})

describe('the bounds of all minutes', () => {
  it('are as they were written down, and read off what was accepted since', () => {
    const written = rowOf(2, { acceptedTokens: 70 })
    const refused = rowOf(1, { refusedTokens: 90, refusedBeforeTokens: 5, statedTokens: 80 })
    const ramp = rampWith({
      accepted: usedAt([200, 1], [120, 2], [60, 4], [10, 8]),
      minutes: [written, refused],
      closedMinute: minute - 2,
    })
    expect(boundsOf(ramp)).toEqual([
      written,
      { ...refused, acceptedTokens: 4, acceptedBeforeTokens: 2 },
      rowOf(0, { acceptedTokens: 8, acceptedBeforeTokens: 2 }),
    ])
  })

  it('are in order and the last twelve, though a minute of use has no refusal and another no use', () => {
    const refused = Array.from({ length: 12 }, (_, index) => rowOf(13 - index, { refusedTokens: 1 }))
    const bounds = boundsOf(rampWith({ accepted: usedAt([10, 8], [60, 4]), minutes: refused }))
    expect(bounds.map((row) => minute - row.minute)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
  })
})

describe('an acceptance', () => {
  it('writes minutes down when they are two old, once', () => {
    const before = rampWith({ accepted: usedAt([130, 7], [60, 4]) })
    const ramp = acceptedUnder(before, 1, atMs, atMs)
    expect(ramp.closedMinute).toBe(minute - 2)
    expect(ramp.minutes).toEqual([
      rowOf(2, { acceptedTokens: 7 }),
      rowOf(1, { acceptedTokens: 4, acceptedBeforeTokens: 7 }),
    ])
    expect(acceptedUnder(ramp, 1, atMs, atMs).minutes).toBe(ramp.minutes)
    expect(acceptedUnder(ramp, 1, atMs, atMs + 29_999).minutes).toBe(ramp.minutes)
    expect(acceptedUnder(ramp, 1, atMs, atMs + 30_000).minutes).not.toBe(ramp.minutes)
  })

  it('reads the growth off them', () => {
    const row = (ago: number, accepted: number, before: number, refused: number) =>
      rowOf(ago, {
        acceptedTokens: accepted,
        acceptedBeforeTokens: before,
        refusedTokens: refused,
        refusedBeforeTokens: before,
      })
    const minutes = [row(5, 90, 0, 100), row(4, 180, 90, 180), row(3, 360, 180, 360)]
    const ramp = acceptedUnder(rampWith({ minutes, closedMinute: minute - 3 }), 1, atMs, atMs)
    expect(ramp.growth).toMatchObject({ kind: 'withUse' })
  })

  it.each([
    [
      'what its minute took, where that is the most',
      [
        [60, 100],
        [50, 30],
      ] as const,
      20,
      50,
    ],
    ['what was accepted before, where that was more', [[50, 1]] as const, 20, 40],
  ])('shows that the ceiling is at least %s', (_, used, tokens, highest) => {
    const before = rampWith({ accepted: usedAt(...used), highestAccepted: 40 })
    expect(acceptedUnder(before, tokens, atMs, atMs).highestAccepted).toBe(highest)
  })

  it.each([
    ['as large as what was refused ends what is known of it', 180, null, null],
    ['of a token less leaves it', 179, refusal, planOf('build')],
  ])('%s', (_, tokens, expectedRefusal, expectedPlan) => {
    const ramp = acceptedUnder(rampWith({ refusal, plan: planOf('build') }), tokens, atMs, atMs)
    expect([ramp.refusal, ramp.plan]).toEqual([expectedRefusal, expectedPlan])
  })

  it('without a refusal or a plan leaves none', () => {
    expect(acceptedUnder(emptyRamp, 5, atMs, atMs)).toMatchObject({ refusal: null, plan: null })
  })
})

describe('a refusal', () => {
  const refuse = (ramp: Ramp, facts = {}, tokens = 100) =>
    refusedUnder(ramp, { tokens, evidence: refusalOf('acceleration', { facts }), atMs, dispatchedAtMs: atMs })

  it('keeps what was used and stated, and bounds its minute', () => {
    const ramp = refuse(
      rampWith({
        slots: usedAt([10, 50]),
        accepted: usedAt([119, 1], [118, 2], [62, 4], [61, 8], [60, 16], [10, 50]),
      }),
      { currentLimit: 120.9, limit: 7, nextLimit: 130.9 },
    )
    expect(ramp.refusal).toEqual({
      atMs,
      tokens: 100,
      trailingTokens: 50,
      statedLimit: 120,
      statedNextLimit: 130,
    })
    expect(ramp.refusedUse).toEqual({ tokens: 121, atMs })
    expect(ramp.epochMs).toBe(atMs)
    expect(ramp.minutes.at(-1)).toMatchObject({
      refusedTokens: 121,
      refusedBeforeTokens: 14,
      statedTokens: 120,
    })
  })

  it('takes a limit for the ceiling, where no ceiling is stated', () => {
    expect(refuse(emptyRamp, { limit: 90 }).refusal).toMatchObject({ statedLimit: 90, statedNextLimit: null })
  })

  it('takes a ceiling without end for the highest number', () => {
    expect(refuse(emptyRamp, { currentLimit: 1e300 }).refusal?.statedLimit).toBe(Number.MAX_SAFE_INTEGER - 1)
  })

  it.each([
    ['is kept while it bounds more', 99, { tokens: 99, atMs: atMs - 1_000 }],
    ['is kept while it bounds as much', 100, { tokens: 100, atMs: atMs - 1_000 }],
    ['gives way to one that bounds more', 101, { tokens: 100, atMs }],
  ])('of so much use %s', (_, tokens, expected) => {
    const before = rampWith({ refusedUse: { tokens, atMs: atMs - 1_000 } })
    expect(refuse(before).refusedUse).toEqual(expected)
  })

  it('at this use gives way to any other once the ceiling may have changed', () => {
    const before = rampWith({ refusedUse: { tokens: 9, atMs: atMs - 15_000 } })
    expect(refuse(before).refusedUse).toEqual({ tokens: 100, atMs })
  })
})

describe('a ceiling may have changed after a refusal', () => {
  it.each([
    ['fifteen seconds later at the latest', [], atMs, atMs + 15_000],
    ['at the minute boundary', [], atMs + 20_000, atMs + 30_000],
    ['when accepted use leaves the minute', usedAt([58, 1], [5, 1]), atMs, atMs + 3_000],
  ])('%s', (_, accepted, refusedAtMs, expected) => {
    const ramp = rampWith({ accepted, refusedUse: { tokens: 100, atMs: refusedAtMs } })
    expect(changesAt(ramp, refusedAtMs)).toBe(expected)
    expect(refusedUseAt(ramp, expected - 1)).toBe(100)
    expect(refusedUseAt(ramp, expected)).toBeNull()
  })

  it('and nothing is refused before there was one', () => {
    expect(refusedUseAt(emptyRamp, 0)).toBeNull()
  })
})

describe('a look at the plan', () => {
  const used = { slots: usedAt([10, 100]), accepted: usedAt([10, 100]) }
  it.each<[string, RampPlan | null, RampPlan | null]>([
    ['leaves none', null, null],
    ['leaves quiet', planOf('quiet', { targetTokens: 1 }), planOf('quiet', { targetTokens: 1 })],
    ['leaves a backfill', planOf('backfill', { targetTokens: 1 }), planOf('backfill', { targetTokens: 1 })],
    [
      'leaves a minute that is not full yet',
      planOf('build', { targetTokens: 101 }),
      planOf('build', { targetTokens: 101 }),
    ],
    [
      'begins silence after one that is',
      planOf('build', { targetTokens: 100 }),
      planOf('hush', { targetTokens: 100, tryAtMs: atMs + 51_000 }),
    ],
    [
      'begins silence after a level that was held',
      planOf('hold', { targetTokens: 100 }),
      planOf('hush', { targetTokens: 100, tryAtMs: atMs + 51_000 }),
    ],
  ])('%s', (_, plan, expected) => {
    expect(review(rampWith({ ...used, plan }), atMs).plan).toEqual(expected)
  })
})

describe('while a primary waits for its ceiling, auxiliaries', () => {
  it.each<[string, RampPlan | null, number, string | null]>([
    ['have nothing to do without a plan', null, 0, null],
    ['warm up under a build', planOf('build'), 8_999, 'warm-up'],
    ['warm up under a hold', planOf('hold'), 8_999, 'warm-up'],
    ['fill up under a backfill', planOf('backfill'), 8_999, 'backfill'],
    ['keep silent under quiet', planOf('quiet'), 0, null],
    ['keep silent under a hush', planOf('hush'), 0, null],
    ['keep silent once it is tried', planOf('build'), 9_000, null],
  ])('%s', (_, plan, laterMs, expected) => {
    expect(warmth(rampWith({ plan }), atMs + laterMs)).toBe(expected)
  })
})

describe('a call is tried', () => {
  const windowMs = 30_000
  const refused = { refusal: { ...refusal, trailingTokens: 60 }, slots: usedAt([50, 40], [10, 20]) }
  it.each<[string, Partial<Ramp>, number, number]>([
    ['at once, where nothing was refused', {}, 500, 0],
    ['when the plan says so, where it was made for one as large', { plan: planOf('build') }, 180, 9_000],
    ['at once, where that has passed', { plan: planOf('build', { tryAtMs: atMs - 1 }) }, 180, 0],
    [
      'at once, where the plan is for a larger one',
      { ...refused, plan: planOf('build', { tokens: 300 }) },
      220,
      0,
    ],
    [
      'at once, where a larger one was refused, whatever was used since',
      { ...refused, slots: usedAt([5, 500]) },
      179,
      0,
    ],
    ['when that has left, where one as large was', { ...refused, slots: usedAt([35, 500]) }, 180, 26_000],
    // 60 and 180 were refused: 40 must leave for one of 220.
    ['when so much has left that it differs from what was refused', refused, 220, 11_000],
    ['at once, where it differs already', refused, 180, 0],
    ['after a quiet window at the latest', refused, 240, 30_000],
    ['after a quiet window, where it is larger than all that was refused', refused, 241, 30_000],
  ])('%s', (_, over, tokens, laterMs) => {
    expect(tryAt(rampWith(over), tokens, windowMs, atMs) - atMs).toBe(laterMs)
  })

  it('at once after that window', () => {
    expect(tryAt(rampWith(refused), 240, windowMs, atMs + 40_000)).toBe(atMs + 40_000)
  })
})
