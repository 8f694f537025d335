/** The use of the last minutes, by second: which seconds count, and when they stop counting. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  added,
  between,
  fallsTo,
  leavesAt,
  minuteMs,
  mostSlots,
  type Slots,
  trailing,
} from '../../../machines/collections/usage-window.ts'
import { runs } from '../../properties/runs.ts'

/** `[second, tokens]` of each slot. */
const slotsOf = (...pairs: ReadonlyArray<readonly [number, number]>): Slots =>
  pairs.map(([second, tokens]) => ({ second, tokens }))

const used = slotsOf([1_000, 1], [1_001, 20], [1_003, 300])

describe('the tokens between two times', () => {
  it.each([
    ['leave out the second they begin in', 1_000_000, 1_003_000, 320],
    ['leave out all of that second', 1_000_999, 1_003_000, 320],
    ['hold the second before it ends, where they begin in it', 999_999, 1_003_000, 321],
    ['hold the second they end in', 1_000_000, 1_001_000, 20],
    ['end before a second that has not begun', 1_000_000, 1_002_999, 20],
    ['are none after the last', 1_003_000, 1_009_000, 0],
    ['are none before the first', 0, 999_999, 0],
  ])('%s', (_, fromMs, toMs, tokens) => {
    expect(between(used, fromMs, toMs)).toBe(tokens)
  })
})

describe('the trailing minute', () => {
  it.each([
    ['holds all of it', 1_060_000, 321],
    ['holds a second until the whole of it is a minute old', 1_060_999, 321],
    ['loses it then', 1_061_000, 320],
    ['holds what came later too', 1_000_000, 321],
    ['is empty a minute after the last', 1_064_000, 0],
  ])('%s', (_, atMs, tokens) => {
    expect(trailing(used, atMs)).toBe(tokens)
  })

  it.each([
    ['at once, where it has', 321, 1_010_000, 1_010_000],
    ['when the first leaves', 320, 1_010_000, 1_061_000],
    ['when the second leaves, for one token less', 319, 1_010_000, 1_062_000],
    ['when all have left', 0, 1_010_000, 1_064_000],
    ['without what has left before', 300, 1_061_000, 1_062_000],
    ['at once, where what is left is little enough', 20, 1_064_000, 1_064_000],
    ['never for less than nothing', -1, 1_064_000, Number.POSITIVE_INFINITY],
  ])('has fallen to a level %s', (_, tokens, atMs, expected) => {
    expect(fallsTo(used, tokens, atMs)).toBe(expected)
  })

  it.each([
    ['when the whole of its oldest second has', 1_010_000, 1_061_000],
    ['still at that second’s end', 1_060_999, 1_061_000],
    ['next, once that is gone', 1_061_000, 1_062_000],
    ['never, when it is empty', 1_064_000, Number.POSITIVE_INFINITY],
  ])('is left by something %s', (_, atMs, expected) => {
    expect(leavesAt(used, atMs)).toBe(expected)
  })

  it('is not left by a second of which all was given back', () => {
    expect(leavesAt(slotsOf([1_000, 0], [1_005, 7]), 1_010_000)).toBe(1_066_000)
  })
})

describe('adding', () => {
  it.each<[string, number, number, ReadonlyArray<readonly [number, number]>]>([
    [
      'counts on in a second that has some',
      5,
      1_001_999,
      [
        [1_000, 1],
        [1_001, 25],
        [1_003, 300],
      ],
    ],
    [
      'begins a second at the end',
      5,
      1_004_000,
      [
        [1_000, 1],
        [1_001, 20],
        [1_003, 300],
        [1_004, 5],
      ],
    ],
    [
      'puts a late one where it belongs',
      5,
      1_002_000,
      [
        [1_000, 1],
        [1_001, 20],
        [1_002, 5],
        [1_003, 300],
      ],
    ],
    [
      'puts the oldest first',
      5,
      999_000,
      [
        [999, 5],
        [1_000, 1],
        [1_001, 20],
        [1_003, 300],
      ],
    ],
    [
      'takes away what is negative',
      -5,
      1_001_000,
      [
        [1_000, 1],
        [1_001, 15],
        [1_003, 300],
      ],
    ],
    [
      'leaves no second below nothing',
      -50,
      1_001_000,
      [
        [1_000, 1],
        [1_001, 0],
        [1_003, 300],
      ],
    ],
    [
      'takes nothing from a second that has none',
      -5,
      1_002_000,
      [
        [1_000, 1],
        [1_001, 20],
        [1_003, 300],
      ],
    ],
    [
      'of nothing begins no second',
      0,
      1_002_000,
      [
        [1_000, 1],
        [1_001, 20],
        [1_003, 300],
      ],
    ],
  ])('%s', (_, tokens, atMs, expected) => {
    expect(added(used, tokens, atMs, 1_004_000)).toEqual(slotsOf(...expected))
  })

  it('changes nothing of what there was', () => {
    const before = structuredClone(used)
    added(used, 5, 1_001_000, 1_004_000)
    added(used, 5, 1_001_000, 9_000_000)
    expect(used).toEqual(before)
  })

  it('keeps everything for four minutes and a half', () => {
    expect(added(used, 0, 1_269_999, 1_269_999)).toEqual(used)
  })

  it('forgets a second four minutes after it, and none that is younger', () => {
    const slots = slotsOf([1_000, 1], [1_030, 2], [1_031, 3])
    expect(added(slots, 0, 1_270_000, 1_270_000)).toEqual(slotsOf([1_031, 3]))
  })
})

describe('whatever is used', () => {
  const events = fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 20_000 }), lateMs: fc.nat(5_000), tokens: fc.nat(100) }),
    { maxLength: 60 },
  )
  const play = (list: ReadonlyArray<{ afterMs: number; lateMs: number; tokens: number }>) => {
    let slots: Slots = []
    let atMs = 1_700_000_000_000
    const all: Array<{ atMs: number; tokens: number }> = []
    for (const { afterMs, lateMs, tokens } of list) {
      atMs += afterMs
      slots = added(slots, tokens, atMs - lateMs, atMs)
      all.push({ atMs: atMs - lateMs, tokens })
    }
    return { slots, atMs, all }
  }

  it('the trailing minute holds the last 60 s, and at most one second more', () => {
    fc.assert(
      fc.property(events, (list) => {
        const { slots, atMs, all } = play(list)
        const since = (ms: number) =>
          all.reduce((sum, event) => (event.atMs > atMs - ms ? sum + event.tokens : sum), 0)
        expect(trailing(slots, atMs)).toBeGreaterThanOrEqual(since(minuteMs))
        expect(trailing(slots, atMs)).toBeLessThanOrEqual(since(minuteMs + 1_000))
      }),
      { numRuns: runs(300) },
    )
  })

  it('the time at which the minute has fallen to a level is the first such time', () => {
    fc.assert(
      fc.property(events, fc.nat(1_000), (list, level) => {
        const { slots, atMs } = play(list)
        const fallenMs = fallsTo(slots, level, atMs)
        expect(trailing(slots, fallenMs)).toBeLessThanOrEqual(level)
        if (fallenMs > atMs) expect(trailing(slots, fallenMs - 1)).toBeGreaterThan(level)
      }),
      { numRuns: runs(300) },
    )
  })

  it('seconds are in order, each once, and bounded in number', () => {
    fc.assert(
      fc.property(events, (list) => {
        const seconds = play(list).slots.map(({ second }) => second)
        expect(seconds).toEqual([...new Set(seconds)].sort((one, other) => one - other))
        expect(seconds.length).toBeLessThanOrEqual(mostSlots)
      }),
      { numRuns: runs(300) },
    )
  })
})
