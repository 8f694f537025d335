/** The lines of an explanation: few, with dates, and nothing lost that is not counted. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { foldStory, momentWords } from '../../src/host/explain-fold.ts'
import { duration } from '../../src/host/explain-words.ts'

const day = 86_400_000

describe('a story', () => {
  it('that fits is told line by line, each with its day and zone', () => {
    const story = [
      { at: 0, text: 'submitted' },
      { at: day, text: 'refused' },
      { at: 2 * day, text: 'refused' },
    ]
    expect(foldStory(story, 3)).toEqual([
      '1970-01-01 00:00:00.000 UTC submitted',
      '1970-01-02 00:00:00.000 UTC refused',
      '1970-01-03 00:00:00.000 UTC refused',
    ])
  })

  it('that repeats itself tells each text once, with its count and its span', () => {
    const rounds = [1, 2, 3, 4, 5].flatMap((n) => [
      { at: n * day, text: 'sent' },
      { at: n * day + 1, text: 'refused for its size' },
    ])
    expect(foldStory([{ at: 0, text: 'submitted' }, ...rounds], 9)).toEqual([
      '1970-01-01 00:00:00.000 UTC submitted',
      '5 times between 1970-01-02 00:00:00.000 UTC and 1970-01-06 00:00:00.000 UTC: sent',
      '5 times between 1970-01-02 00:00:00.001 UTC and 1970-01-06 00:00:00.001 UTC: refused for its size',
    ])
  })

  it('never has more lines than asked for, begins with its first, and counts what it leaves out', () => {
    const line = fc.record({ at: fc.nat(1e6), text: fc.constantFrom(...'abcdefghijklmnopqrst') })
    fc.assert(
      fc.property(fc.array(line, { minLength: 1 }), fc.integer({ min: 3, max: 10 }), (lines, most) => {
        const story = [...lines].sort((one, other) => one.at - other.at)
        const told = foldStory(story, most)
        expect(told.length).toBeLessThanOrEqual(most)
        expect(told[0]).toContain(momentWords(story[0]!.at))
        const counts = told.map((text) => Number(/^\(?(\d+) (?:times|more lines)/.exec(text)?.[1] ?? 1))
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(story.length)
      }),
    )
  })

  it('at a time beyond the calendar says its number', () => {
    expect(momentWords(9e15)).toBe('epoch millisecond 9000000000000000')
  })
})

it.each([
  [0, '0.0 s'],
  [9_940, '9.9 s'],
  [80_000, '80 s'],
  [119_999, '120 s'],
  [120_000, '2 min'],
  [3_599_999, '60 min'],
  [7_199_999, '120 min'],
  [7_200_000, '2 h'],
  [12_000_000, '3 h 20 min'],
  [7 * day, '7 d'],
  [7 * day + 3 * 3_600_000, '7 d 3 h'],
])('%d ms are said as %s', (ms, said) => {
  expect(duration(ms)).toBe(said)
})
