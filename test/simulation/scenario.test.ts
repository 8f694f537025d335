import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { InvalidInput } from '../../machines/index.ts'
import { faithfulAnswers } from '../../src/simulation/answers.ts'
import { scenarioJsonSchema } from '../../src/simulation/arena/json-schema.ts'
import { parseScenario } from '../../src/simulation/arena/scenario.ts'
import { drawTokens, meanTokens, sequenceOf } from '../../src/simulation/arena/size.ts'

const bucket = { rule: 'token-bucket', inputTokensPerMinute: 1_000 }
const stream = { lane: 'primary', arrival: { kind: 'at', atMs: [0] }, inputTokens: 10 }
const whole = { name: 'one', seed: 1, durationMs: 60_000, provider: bucket, traffic: [stream] }
const withProvider = (provider: unknown) => ({ ...whole, provider })
const withStream = (more: object) => ({ ...whole, traffic: [stream, { ...stream, ...more }] })

describe('a scenario', () => {
  test('may state a rule with its parameters beside it', () => {
    const { provider } = parseScenario(
      withProvider({
        ...bucket,
        burstInputTokens: 2_000,
        states: 'none',
        concurrency: 4,
        latency: { firstTokenMs: 5, perOutputTokenMs: 0.5 },
      }),
    )
    expect(provider).toEqual({
      rules: [{ ...bucket, burstInputTokens: 2_000 }],
      states: 'none',
      concurrency: 4,
      latency: { firstTokenMs: 5, perOutputTokenMs: 0.5 },
      answers: faithfulAnswers,
      strangers: [],
    })
  })

  test('may list rules, or names of rules whose parameters stand beside the list', () => {
    const { provider } = parseScenario(
      withProvider({ rule: [bucket, 'concurrency'], maxConcurrent: 3, states: 'ceiling', concurrency: null }),
    )
    expect(provider.rules).toEqual([bucket, { rule: 'concurrency', maxConcurrent: 3 }])
    expect([provider.states, provider.concurrency]).toEqual(['ceiling', null])
  })

  test('derives lane and class from each other', () => {
    const { traffic } = parseScenario({
      ...whole,
      traffic: [
        { arrival: stream.arrival, inputTokens: 1, lane: 'auxiliary' },
        { arrival: stream.arrival, inputTokens: 1, priorityClass: 'background_ingestion' },
        { arrival: stream.arrival, inputTokens: 1, priorityClass: 'hydration' },
        { arrival: stream.arrival, inputTokens: 1, priorityClass: 'interactive', lane: 'auxiliary' },
        { arrival: stream.arrival, inputTokens: 1 },
      ],
    })
    expect(traffic.map(({ lane, priorityClass }) => [lane, priorityClass])).toEqual([
      ['auxiliary', 'background_ingestion'],
      ['auxiliary', 'background_ingestion'],
      ['primary', 'hydration'],
      ['auxiliary', 'interactive'],
      ['primary', 'interactive'],
    ])
  })
})

describe('a faulty scenario is refused with path, range and value', () => {
  test.each<readonly [string, unknown, RegExp]>([
    ['nothing', undefined, /scenario: expected .*, got nothing/],
    ['a missing name', { ...whole, name: undefined }, /scenario\.name: expected .*, got nothing/],
    [
      'a seed that is no whole number',
      { ...whole, seed: 0.5 },
      /scenario\.seed: expected an integer.*, got 0\.5/,
    ],
    [
      'no time',
      { ...whole, durationMs: 0 },
      /scenario\.durationMs: expected an integer in \[1000, 2592000000\], got 0/,
    ],
    ['a misspelt field', { ...whole, sede: 1 }, /scenario\.sede: expected only known fields, got 1/],
    [
      'an unknown rule',
      withProvider({ rule: 'leaky' }),
      /scenario\.provider\.rule: expected one of token-bucket, .*, got "leaky"/,
    ],
    ['no rule', withProvider({}), /scenario\.provider\.rule: expected one of .*, got nothing/],
    [
      'an empty list of rules',
      withProvider({ rule: [] }),
      /provider\.rule: expected at least one rule, got \[\]/,
    ],
    [
      'a parameter out of range',
      withProvider({ ...bucket, inputTokensPerMinute: 0 }),
      /scenario\.provider\.inputTokensPerMinute: .*\[1, 1000000000\], got 0/,
    ],
    [
      "another rule's parameter",
      withProvider({ ...bucket, maxConcurrent: 3 }),
      /scenario\.provider\.maxConcurrent: expected only known fields, got 3/,
    ],
    [
      'a faulty rule in a list',
      withProvider({ rule: [bucket, { rule: 'concurrency', maxConcurrent: -1 }] }),
      /scenario\.provider\.rule\.1\.maxConcurrent: .*, got -1/,
    ],
    [
      'an unknown rule in a list',
      withProvider({ rule: [bucket, { rule: 'x' }] }),
      /scenario\.provider\.rule\.1\.rule: expected one of .*, got "x"/,
    ],
    [
      'a parameter beside a list that no rule takes',
      withProvider({ rule: [bucket], maxConcurrent: 3 }),
      /scenario\.provider\.maxConcurrent: expected only known fields, got 3/,
    ],
    [
      'a floor above its tier',
      withProvider({
        rule: 'use-growth',
        floorTokensPerMinute: 9,
        growthPerMinute: 2,
        tierTokensPerMinute: 5,
      }),
      /scenario\.provider\.floorTokensPerMinute: .*\[1, tierTokensPerMinute\] = \[1, 5\], got 9/,
    ],
    [
      'no places',
      withProvider({ ...bucket, concurrency: 0 }),
      /provider\.concurrency: .*\[1, 65536\].*, got 0/,
    ],
    [
      'a latency that goes back',
      withProvider({ ...bucket, latency: { firstTokenMs: -1, perOutputTokenMs: 0 } }),
      /provider\.latency\.firstTokenMs: expected a number in \[0, 86400000\], got -1/,
    ],
    [
      'an unknown statement',
      withProvider({ ...bucket, states: 'all' }),
      /scenario\.provider\.states: .*, got "all"/,
    ],
    ['traffic that is no list', { ...whole, traffic: {} }, /scenario\.traffic: expected array, got \{\}/],
    ['an unknown lane', withStream({ lane: 'fast' }), /scenario\.traffic\.1\.lane: .*, got "fast"/],
    [
      'an unknown class',
      withStream({ priorityClass: 'urgent' }),
      /traffic\.1\.priorityClass: .*"interactive".*, got "urgent"/,
    ],
    [
      'an unknown arrival',
      withStream({ arrival: { kind: 'burst' } }),
      /traffic\.1\.arrival: expected .*"closed-loop".*, got \{"kind":"burst"\}/,
    ],
    [
      'no workers',
      withStream({ arrival: { kind: 'closed-loop', workers: 0 } }),
      /traffic\.1\.arrival\.workers: expected an integer in \[1, 10000\], got 0/,
    ],
    [
      'a time before the start',
      withStream({ arrival: { kind: 'at', atMs: [1, -1] } }),
      /traffic\.1\.arrival\.atMs\.1: expected an integer in .*, got -1/,
    ],
    ['no size', withStream({ inputTokens: undefined }), /traffic\.1\.inputTokens: expected .*, got nothing/],
    [
      'a size below zero',
      withStream({ inputTokens: -5 }),
      /traffic\.1\.inputTokens: expected an integer in \[0, 10000000\], got -5/,
    ],
    [
      'a range the wrong way round',
      withStream({ inputTokens: { uniform: [5, 1] } }),
      /traffic\.1\.inputTokens\.uniform: expected the lowest first, got \[5,1\]/,
    ],
    [
      'two kinds of size at once',
      withStream({ inputTokens: { uniform: [1, 5], lognormal: [5, 1] } }),
      /traffic\.1\.inputTokens: expected one of uniform and lognormal/,
    ],
    [
      'a spread that cannot be',
      withStream({ inputTokens: { lognormal: [5_000, 11] } }),
      /traffic\.1\.inputTokens\.lognormal\.1: expected a number in \[0, 10\], got 11/,
    ],
    [
      'a trace that runs backwards',
      withStream({ arrival: { kind: 'trace', file: 'x.csv', scale: 0 } }),
      /traffic\.1\.arrival\.scale: expected a number in \[0\.001, 100000\], got 0/,
    ],
  ])('%s', (_name, input, pattern) => {
    let thrown: unknown
    try {
      parseScenario(input)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(InvalidInput)
    expect(String(thrown)).toMatch(pattern)
  })
})

describe('sizes', () => {
  const many = (size: Parameters<typeof drawTokens>[0]) => {
    const random = sequenceOf(5, 1)
    return Array.from({ length: 4_000 }, () => drawTokens(size, random)).sort((one, other) => one - other)
  }

  test('uniform reaches both ends', () => {
    const drawn = many({ uniform: [3, 6] })
    expect([drawn[0], drawn.at(-1)]).toEqual([3, 6])
    expect(meanTokens({ uniform: [3, 6] })).toBe(4.5)
  })

  test('lognormal has its median, by tokens or by their logarithm, and its bound', () => {
    for (const first of [8_000, Math.log(8_000)]) {
      const drawn = many({ lognormal: [first, 0.8, 20_000] })
      expect(drawn[2_000]! / 8_000).toBeCloseTo(1, 1)
      expect(drawn.at(-1)).toBe(20_000)
    }
    expect(meanTokens({ lognormal: [8_000, 0] })).toBe(8_000)
  })
})

test('the published JSON Schema is that of the code (else: node test/simulation/write-schema.ts)', () => {
  const path = new URL('../../src/simulation/scenarios/scenario.schema.json', import.meta.url)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(JSON.parse(scenarioJsonSchema()))
})
