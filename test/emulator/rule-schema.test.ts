import { describe, expect, test } from 'vitest'
import { decodeRules, InvalidRules } from '../../src/emulator/index.ts'

const growth = {
  rule: 'use-growth',
  floorTokensPerMinute: 90_000,
  growthPerMinute: 1.35,
  tierTokensPerMinute: 400_000,
}

describe('decodeRules', () => {
  test('accepts every family with its documented parameters', () => {
    const rules = [
      { rule: 'token-bucket', inputTokensPerMinute: 210_000, burstInputTokens: 300_000, states: 'ceiling' },
      growth,
      {
        rule: 'time-step',
        floorTokensPerMinute: 58_000,
        stepTokensPerMinute: 10_000,
        tierTokensPerMinute: 400_000,
        idleResetMinutes: 6,
      },
      { rule: 'slow-down', steadyTokensPerMinute: 1_000_000, growth: 1.5, windowMs: 900_000 },
      { rule: 'requests-per-minute', requestsPerMinute: 50 },
      { rule: 'output-tokens-per-minute', outputTokensPerMinute: 8_000 },
      { rule: 'concurrency', maxConcurrent: 4 },
      { rule: 'overload', probability: 0.02 },
      { rule: 'daily-quota', requestsPerDay: 200 },
      { rule: 'spend-cap' },
    ]
    expect(decodeRules(JSON.parse(JSON.stringify(rules)))).toEqual(rules)
  })

  const invalid: readonly (readonly [string, unknown, readonly RegExp[]])[] = [
    ['no array', { rule: 'token-bucket' }, [/must be an array of rules, got/]],
    ['an unknown rule', [{ rule: 'leaky' }], [/one of token-bucket, .*, got "leaky"/, /\[0\]\["rule"\]/]],
    ['no rule at all', [null], [/got undefined/]],
    [
      'a number below its range',
      [{ ...growth, growthPerMinute: 0.5 }],
      [/must be a number in \[1, 100\], got 0.5/, /growthPerMinute/],
    ],
    [
      'a fraction of a token',
      [{ rule: 'token-bucket', inputTokensPerMinute: 1.5 }],
      [/whole number in \[1, 1000000000\], got 1.5/],
    ],
    ['a missing parameter', [{ rule: 'concurrency' }], [/Missing key/, /maxConcurrent/]],
    ['a misspelt parameter', [{ rule: 'spend-cap', afterRequest: 3 }], [/Unexpected key/, /afterRequest/]],
    [
      'a floor above its tier',
      [{ ...growth, tierTokensPerMinute: 10 }],
      [/\[1, tierTokensPerMinute\] = \[1, 10\], got 90000/],
    ],
    [
      'a quota of nothing',
      [{ rule: 'daily-quota' }],
      [/one of inputTokensPerDay and requestsPerDay, got neither/],
    ],
    [
      'a quota of two things',
      [{ rule: 'daily-quota', inputTokensPerDay: 1, requestsPerDay: 1 }],
      [/got both/],
    ],
    [
      'an unknown statement',
      [{ rule: 'spend-cap', states: 'all' }],
      [/"none" \| "ceiling" \| "retry-after", got "all"/],
    ],
  ]
  test.each(invalid)('refuses %s, with the field, the range and the value', (_name, input, patterns) => {
    let thrown: unknown
    try {
      decodeRules(input)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(InvalidRules)
    for (const pattern of patterns) expect(String(thrown)).toMatch(pattern)
  })
})
