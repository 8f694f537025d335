/** A call, and any input, at the door: every fault is named by field, range and value. */
import { Schema } from 'effect'
import { describe, expect, it } from 'vitest'
import { InvalidInput } from '../../../machines/index.ts'
import { laneOfClass, parseCall, priorityClasses } from '../../../machines/model/call.ts'
import { decodeOrThrow, finite, integer, type Problem, text } from '../../../machines/model/invalid.ts'
import { blankCall } from '../story.ts'

const problemsOf = (decode: () => unknown): ReadonlyArray<Problem> => {
  try {
    decode()
  } catch (error) {
    if (error instanceof InvalidInput) return error.problems
    throw error
  }
  return []
}

const problemOf = (decode: () => unknown): string =>
  problemsOf(decode)
    .map(({ field, expected, got }) => `${field}: ${expected}, not ${got}`)
    .join('; ')

describe('a call', () => {
  it.each([
    ['as it should be', {}, ''],
    ['of one letter', { id: 'a' }, ''],
    ['of a long name', { id: 'a'.repeat(256) }, ''],
    ['without a name', { id: '' }, 'call.id: 1 to 256 printable characters, not ""'],
    [
      'of a name that is too long',
      { id: 'a'.repeat(257) },
      `call.id: 1 to 256 printable characters, not "${'a'.repeat(76)}...`,
    ],
    [
      'of a name with a line break',
      { principal: 'a\nb' },
      'call.principal: 1 to 256 printable characters, not "a\\nb"',
    ],
    [
      'of fewer tokens than none',
      { inputTokens: -1 },
      'call.inputTokens: an integer in [0, 1000000000], not -1',
    ],
    [
      'of a dependency that has no name',
      { dependsOn: ['a', ''] },
      'call.dependsOn.1: 1 to 256 printable characters, not ""',
    ],
    ['of a field that nobody knows', { prompt: 'hello' }, 'call.prompt: only known fields, not "hello"'],
  ])('%s: see the table', (_, over, problem) => {
    expect(problemOf(() => parseCall({ ...blankCall, ...over }))).toContain(problem)
    if (problem === '') expect(parseCall({ ...blankCall, ...over })).toEqual({ ...blankCall, ...over })
  })

  it('that lacks a field is told which', () => {
    const { id: _, ...rest } = blankCall
    expect(problemOf(() => parseCall(rest))).toBe('call.id: a value, not nothing')
  })

  it('with several faults hears of all of them in one message', () => {
    const faults = { ...blankCall, inputTokens: -1, outputTokens: 0.5 }
    expect(problemsOf(() => parseCall(faults))).toHaveLength(2)
    expect(() => parseCall(faults)).toThrow(
      expect.objectContaining({
        _tag: 'InvalidInput',
        name: 'InvalidInput',
        message: expect.stringContaining('; '),
      }),
    )
  })

  it.each(priorityClasses)('of class %s yields only when it is background ingestion', (priorityClass) => {
    expect(laneOfClass(priorityClass)).toBe(
      priorityClass === 'background_ingestion' ? 'auxiliary' : 'primary',
    )
  })
})

describe('an input', () => {
  const Nested = Schema.Struct({ one: Schema.Struct({ two: integer(1, 3) }) })

  it.each<[string, unknown, string]>([
    ['that is not there', undefined, 'thing: object, not nothing'],
    ['that is null', null, 'thing: object, not null'],
    ['that is a number', 7, 'thing: object, not 7'],
    ['that is a large integer', 7n, 'thing: object, not 7'],
    ['that is a function', () => 7, 'thing: object, not function'],
    ['that is not a number', Number.NaN, 'thing: object, not NaN'],
    ['whose part is a text', { one: 'two' }, 'thing.one: object, not "two"'],
    ['whose part is null', { one: null }, 'thing.one: object, not null'],
    ['whose inner part is out of range', { one: { two: 4 } }, 'thing.one.two: an integer in [1, 3], not 4'],
    ['whose inner part is missing', { one: {} }, 'thing.one.two: a value, not nothing'],
  ])('%s is refused by field, range and value', (_, input, problem) => {
    expect(problemOf(() => decodeOrThrow(Nested, 'thing', input))).toBe(problem)
  })

  it('is shown in 80 characters at most', () => {
    const gotOf = (length: number): string =>
      problemsOf(() => decodeOrThrow(Nested, 'thing', 'x'.repeat(length)))[0]!.got
    expect(gotOf(78)).toBe(`"${'x'.repeat(78)}"`)
    expect(gotOf(79)).toBe(`"${'x'.repeat(76)}...`)
  })

  it.each([
    ['an integer', integer(1, 3), [1, 2, 3], [0, 4, 1.5]],
    ['a number', finite(0, 1), [0, 0.5, 1], [-0.1, 1.1, Number.POSITIVE_INFINITY]],
    ['a text', text(1, 3), ['a', 'abc'], ['', 'abcd', 'a\tb']],
  ] as const)('in the range of %s is taken, and none beside it', (_, schema, good, bad) => {
    const take = (value: unknown) => decodeOrThrow(schema as Schema.Decoder<unknown>, 'it', value)
    for (const value of good) expect(take(value)).toBe(value)
    for (const value of bad) expect(() => take(value)).toThrow(InvalidInput)
  })
})
