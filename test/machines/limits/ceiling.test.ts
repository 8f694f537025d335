/** The bounds of a ceiling by minute, and which rule of growth they leave over. */
import { describe, expect, it } from 'vitest'
import {
  ceilingAt,
  factorOf,
  type Growth,
  growthOf,
  keptMinutes,
  type MinuteBounds,
  minuteBounds,
  unknownGrowth,
  withRefusal,
} from '../../../machines/limits/ceiling.ts'
import { idleMinute } from './moment.ts'

const rowOf = (minute: number, over: Partial<MinuteBounds> = {}): MinuteBounds => ({
  ...idleMinute(minute),
  ...over,
})

/** A minute in which `accepted` followed `before`, and a use of `refused` was refused. */
const busy = (minute: number, accepted: number, before: number, refused: number | null = null) =>
  rowOf(minute, {
    acceptedTokens: accepted,
    acceptedBeforeTokens: before,
    refusedTokens: refused,
    refusedBeforeTokens: before,
  })

const slots = (...pairs: ReadonlyArray<readonly [number, number]>) =>
  pairs.map(([second, tokens]) => ({ second, tokens }))

describe('the bounds of minute 10, by what was accepted', () => {
  it.each([
    [
      'hold its first second and its last, none before or after',
      slots([599, 1], [600, 2], [659, 4], [660, 8]),
      6,
      3,
    ],
    [
      'hold of the minute that ended 60 s before its last use a second more at either end',
      slots([509, 1], [510, 2], [571, 4], [572, 8], [600, 16], [630, 32]),
      48,
      6,
    ],
    [
      'take a second of which all was given back for no use',
      slots([510, 2], [580, 8], [630, 32], [650, 0]),
      32,
      2,
    ],
    ['are nothing without use', slots([510, 2], [670, 4]), 0, 0],
  ])('%s', (_, accepted, acceptedTokens, acceptedBeforeTokens) => {
    expect(minuteBounds(accepted, 10)).toEqual(rowOf(10, { acceptedTokens, acceptedBeforeTokens }))
  })

  it('keep what was refused in it', () => {
    const refused = { refusedTokens: 70, refusedBeforeTokens: 30, statedTokens: 60 }
    const before = rowOf(10, { acceptedTokens: 1, acceptedBeforeTokens: 1, ...refused })
    expect(minuteBounds(slots([600, 5]), 10, before)).toEqual(rowOf(10, { acceptedTokens: 5, ...refused }))
  })
})

describe('a refusal', () => {
  const refusal = { tokens: 100, beforeTokens: 40, statedTokens: 90, atMs: 10 * 60_000 + 59_999 }
  const refused = { refusedTokens: 100, refusedBeforeTokens: 40, statedTokens: 90 }

  it.each<[string, ReadonlyArray<MinuteBounds>, ReadonlyArray<MinuteBounds>]>([
    ['begins a minute', [], [rowOf(10, refused)]],
    ['begins a minute after others', [busy(9, 5, 5, 50)], [busy(9, 5, 5, 50), rowOf(10, refused)]],
    [
      'is added to what its minute holds',
      [busy(9, 5, 5), busy(10, 7, 0)],
      [busy(9, 5, 5), { ...busy(10, 7, 0), ...refused }],
    ],
    ['replaces one that bounded less', [busy(10, 7, 0, 101)], [{ ...busy(10, 7, 0), ...refused }]],
    ['is passed over for one that bounds as much', [busy(10, 7, 0, 100)], [busy(10, 7, 0, 100)]],
    ['is passed over for one that bounds more', [busy(10, 7, 0, 99)], [busy(10, 7, 0, 99)]],
  ])('%s', (_, minutes, expected) => {
    expect(withRefusal(minutes, refusal)).toEqual(expected)
  })

  it('takes the place of the oldest minute where all are held', () => {
    const minutes = Array.from({ length: keptMinutes }, (_, index) => busy(index - 10, 1, 1))
    const next = withRefusal(minutes, refusal)
    expect(next).toEqual([...minutes.slice(1), rowOf(10, refused)])
  })
})

describe('the factors that growth with use would need', () => {
  const any = Number.POSITIVE_INFINITY
  it.each<[string, ReadonlyArray<MinuteBounds>, number, number]>([
    ['are all, while nothing was refused', [busy(0, 100, 50)], 1, any],
    ['are at least what was accepted above the floor', [busy(0, 90, 0, 100), busy(1, 200, 80)], 2.5, any],
    ['say nothing of what the floor may have taken', [busy(0, 90, 0, 100), busy(1, 103, 10)], 1, any],
    ['reach above the floor by more than the tolerance', [busy(0, 90, 0, 97), busy(1, 100, 10)], 10, any],
    [
      'are at least what the most needs',
      [busy(0, 90, 0, 100), busy(1, 200, 80), busy(2, 200, 100)],
      2.5,
      any,
    ],
    ['are below what was refused', [busy(0, 90, 0, 100), busy(1, 0, 80, 200)], 1, 2.5],
    ['are below the least that was refused', [busy(0, 0, 80, 200), busy(1, 0, 100, 200)], 1, 2],
    ['explain nothing that came of nothing', [busy(0, 90, 0, 100), busy(1, 200, 0)], any, any],
    ['are not bounded by a refused call of no tokens', [busy(0, 0, 0, 0)], 1, any],
    ['are not bounded by one after use', [busy(0, 0, 100, 0)], 1, any],
    [
      'are at least what was stated above the floor',
      [busy(0, 90, 0, 100), rowOf(1, { refusedTokens: 301, refusedBeforeTokens: 100, statedTokens: 300 })],
      3,
      3.01,
    ],
    [
      'say nothing of what was stated within the tolerance',
      [busy(0, 90, 0, 100), rowOf(1, { refusedTokens: 104, refusedBeforeTokens: 20, statedTokens: 103 })],
      1,
      5.2,
    ],
    [
      'reach to what was stated just beyond it',
      [busy(0, 90, 0, 97), rowOf(1, { refusedTokens: 101, refusedBeforeTokens: 20, statedTokens: 100 })],
      5,
      5.05,
    ],
  ])('%s', (_, rows, low, high) => {
    expect(factorOf(rows)).toEqual({ low, high })
  })
})

describe('the ceiling of now', () => {
  const atMs = 10 * 60_000 + 30_000
  it.each<[string, ReadonlyArray<MinuteBounds>, number, number | null]>([
    ['is anything without bounds', [], 0, null],
    ['is at least what was accepted', [busy(10, 50, 0)], 50, null],
    ['is at least what was stated', [rowOf(10, { acceptedTokens: 50, statedTokens: 60 })], 60, null],
    ['is below what was refused', [busy(10, 0, 0, 80)], 0, 80],
    [
      'is by the tightest bounds of three minutes',
      [busy(8, 60, 0, 100), busy(9, 50, 0, 90), busy(10, 10, 0, 95)],
      60,
      90,
    ],
    ['forgets what is older', [busy(7, 70, 0, 80), busy(8, 60, 0, 100)], 60, 100],
    [
      'goes back no further than to a contradiction',
      [busy(8, 60, 0, 90), busy(9, 95, 0), busy(10, 0, 0, 95)],
      0,
      95,
    ],
    ['takes an older bound that just fits', [busy(9, 94, 0), busy(10, 0, 0, 95)], 94, 95],
    [
      'is what it is now, where a minute ago more was refused',
      [busy(9, 10, 0, 40), busy(10, 40, 0)],
      40,
      null,
    ],
  ])('%s', (_, rows, low, high) => {
    expect(ceilingAt(rows, atMs)).toEqual({ low, high })
  })
})

const none: Growth = { ...unknownGrowth, kind: 'none' }
const withTime = (tokensPerMinute: number): Growth => ({
  ...unknownGrowth,
  kind: 'withTime',
  tokensPerMinute,
})
const withUse = (factor: number): Growth => ({ ...unknownGrowth, kind: 'withUse', factor })

describe('the growth that minutes tell', () => {
  /** Doubles with use, from a floor of 100. */
  const doubling = [busy(0, 90, 0, 100), busy(1, 180, 90, 180), busy(2, 360, 180, 360)]
  /** Rises by 50 a minute, from 100. */
  const rising = [busy(0, 95, 0, 101), busy(1, 145, 95, 151), busy(2, 195, 145, 201), busy(3, 245, 195, 251)]
  /** Takes 100 a minute. */
  const refilling = [busy(0, 99, 0, 100), busy(1, 99, 99, 100), busy(2, 99, 99, 100)]

  it.each<[string, ReadonlyArray<MinuteBounds>, Growth]>([
    ['is unknown without minutes', [], unknownGrowth],
    ['is unknown while nothing was refused', [busy(0, 90, 0), busy(1, 180, 90)], unknownGrowth],
    ['is with use, where each minute takes twice what was used', doubling, withUse(2)],
    ['is with time, where each takes as much more', rising, withTime(51.255)],
    ['is none, where each takes the same', refilling, none],
  ])('%s', (_, rows, growth) => {
    const told = growthOf(rows)
    expect(told).toMatchObject({ kind: growth.kind })
    if (growth.factor === null) expect(told.factor).toBeNull()
    else expect(told.factor).toBeCloseTo(growth.factor, 3)
    if (growth.tokensPerMinute === null) expect(told.tokensPerMinute).toBeNull()
    else expect(told.tokensPerMinute).toBeCloseTo(growth.tokensPerMinute, 3)
  })

  it.each<[string, ReadonlyArray<MinuteBounds>, Growth['kind']]>([
    [
      'is with time, though it began anew after four minutes without use',
      [...rising, busy(7, 95, 0, 101)],
      'withTime',
    ],
    ['is unknown where it fell after three', [...rising, busy(6, 95, 0, 101)], 'unknown'],
    [
      'is with time where a refused call in between used nothing',
      [...rising, busy(5, 0, 0, 400), busy(7, 95, 0, 101)],
      'withTime',
    ],
    [
      'is unknown where it fell though there was use in between',
      [...rising, busy(5, 5, 0), busy(7, 95, 0, 101)],
      'unknown',
    ],
    [
      'is with time where the use came after four',
      [...rising, busy(8, 5, 0), busy(10, 95, 0, 101)],
      'withTime',
    ],
    ['is unknown where the use came after three', [...rising, busy(6, 5, 0), busy(8, 95, 0, 101)], 'unknown'],
    [
      'is unknown where nothing was used only before',
      [busy(-10, 50, 0), ...rising, busy(4, 95, 0, 101)],
      'unknown',
    ],
    [
      'is unknown where nothing was used only after',
      [...rising, busy(4, 95, 0, 101), busy(9, 50, 0)],
      'unknown',
    ],
    [
      'is with time from the first use, whenever it was refused before',
      [busy(-3, 0, 0, 100), ...rising],
      'withTime',
    ],
    [
      'is with time, where the ceiling that was stated rose',
      [busy(0, 90, 0, 100), rowOf(1, { refusedTokens: 151, statedTokens: 150 })],
      'withTime',
    ],
    [
      'is with time, where it rose by just more than the tolerance',
      [busy(0, 90, 0, 97), rowOf(1, { refusedTokens: 101, statedTokens: 100 })],
      'withTime',
    ],
  ])('%s', (_, rows, kind) => {
    expect(growthOf(rows).kind).toBe(kind)
  })

  it.each<[string, ReadonlyArray<MinuteBounds>]>([
    ['of one minute', [busy(0, 99, 99, 100)]],
    ['of minutes that leave room for growth by a twentieth', [busy(0, 98, 98, 100), busy(1, 98, 98, 100)]],
    [
      'of minutes before which little was used',
      [busy(0, 99, 50, 100), busy(1, 99, 50, 100), busy(2, 99, 50, 100)],
    ],
    ['of a refusal at a twentieth above the minute before', [busy(0, 104, 100, 105), busy(1, 104, 100, 105)]],
    ['that fit a growth with time and one with use', [busy(-1, 90, 0, 100), busy(0, 210, 210)]],
  ])('stays what it was after bounds %s', (_, rows) => {
    const before = withTime(7)
    expect(growthOf(rows, before)).toBe(before)
  })

  /** 90 were accepted and 100 refused, then each minute took so much; a gap where that is null. */
  const took = (...accepted: ReadonlyArray<number | null>): ReadonlyArray<MinuteBounds> => [
    busy(-1, 90, 0, 100),
    ...accepted.flatMap((tokens, index) => (tokens === null ? [] : [busy(index, tokens, tokens)])),
  ]
  it.each<[string, ReadonlyArray<MinuteBounds>, Growth['kind']]>([
    ['goes on, while a limit that refills could have saved up what was used', took(130, 130, 130), 'none'],
    ['is in doubt, where it could not', took(130, 130, 130, 130), 'unknown'],
    [
      'is in doubt by the busiest minutes, after one with little use',
      took(10, 130, 130, 130, 130),
      'unknown',
    ],
    ['goes on, where a minute without use lies between', took(130, 130, null, 130, 130), 'none'],
    ['is in doubt by a minute that took twice the limit', took(207), 'unknown'],
    ['goes on after one that took twice but for the tolerance', took(206), 'none'],
    [
      'is in doubt by it alone, where the minute before took the limit and no more',
      took(100, 207),
      'unknown',
    ],
    ['goes on by both, where that took more', took(102, 206), 'none'],
    ['is in doubt by just as much', [busy(-1, 90, 0, 97), busy(0, 200, 200)], 'unknown'],
  ])('that is none %s', (_, rows, kind) => {
    expect(growthOf(rows, none)).toEqual({ ...unknownGrowth, kind })
  })
})
