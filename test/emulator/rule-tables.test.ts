import { describe, expect, test } from 'vitest'
import { makeProvider } from '../../src/emulator/provider.ts'
import { decodeRules } from '../../src/emulator/rules/spec.ts'

const minuteMs = 60_000
const latency = { firstTokenMs: 0, perOutputTokenMs: 0 }

interface Step {
  readonly atMs: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  /** The call stays in flight. */
  readonly stays?: boolean
  /** Parts of the refusal; undefined means accepted. */
  readonly refused?: Readonly<Record<string, unknown>>
}

/** Plays steps; every call ends at once unless it stays. */
const play = (rules: unknown, steps: readonly Step[], seed = 1): void => {
  const provider = makeProvider({ rules: decodeRules(rules), latency, seed })
  for (const [index, step] of steps.entries()) {
    const { atMs, inputTokens = 0, outputTokens = 0 } = step
    const answer = provider.begin({ atMs, callId: `call-${index}`, inputTokens, outputTokens })
    if (step.refused === undefined) {
      expect(answer, `step ${index}`).toMatchObject({ accepted: true })
      if (answer.accepted && step.stays !== true) provider.finish({ dispatch: answer.dispatch, atMs })
    } else {
      const refusal: Readonly<Record<string, unknown>> = answer.accepted ? {} : { ...answer.refusal }
      const named = Object.fromEntries(Object.keys(step.refused).map((key) => [key, refusal[key]]))
      expect({ index, accepted: answer.accepted, ...named }).toEqual({
        index,
        accepted: false,
        ...step.refused,
      })
    }
  }
}

interface Case {
  readonly name: string
  readonly rules: unknown
  readonly steps: readonly Step[]
}

const bucket = { rule: 'token-bucket', inputTokensPerMinute: 60_000 }
const growth = {
  rule: 'use-growth',
  floorTokensPerMinute: 90_000,
  growthPerMinute: 1.35,
  tierTokensPerMinute: 400_000,
}
const step = {
  rule: 'time-step',
  floorTokensPerMinute: 58_000,
  stepTokensPerMinute: 10_000,
  tierTokensPerMinute: 400_000,
  idleResetMinutes: 6,
}
const slow = { rule: 'slow-down', steadyTokensPerMinute: 1_000, growth: 1.5, windowMs: 15 * minuteMs }

const cases: readonly Case[] = [
  {
    name: 'token-bucket: a full bucket takes one burst, then what has come back since',
    rules: [bucket],
    steps: [
      { atMs: 0, inputTokens: 60_000 },
      { atMs: 999, inputTokens: 1_000, refused: { kind: 'input-tokens-per-minute', retryAfterMs: 1 } },
      { atMs: 1_000, inputTokens: 1_000 },
    ],
  },
  {
    name: 'token-bucket: a call larger than the burst is refused for ever, with no wait',
    rules: [{ ...bucket, burstInputTokens: 10_000 }],
    steps: [
      { atMs: 0, inputTokens: 10_001, refused: { permanent: true, retryAfterMs: null, limit: 60_000 } },
      { atMs: 0, inputTokens: 10_000 },
    ],
  },
  {
    name: 'token-bucket: states none says no wait and no ceiling',
    rules: [{ ...bucket, states: 'none' }],
    steps: [{ atMs: 0, inputTokens: 60_001, refused: { retryAfterMs: null, currentLimit: undefined } }],
  },
  {
    name: 'use-growth: the ceiling is 1.35 x the minute before, so a large call needs a climb',
    rules: [growth],
    steps: [
      { atMs: 0, inputTokens: 176_000, refused: { kind: 'acceleration', limit: 90_000, retryAfterMs: null } },
      { atMs: 0, inputTokens: 90_000 },
      { atMs: 60_000, inputTokens: 121_501, refused: { limit: 121_500 } },
      { atMs: 60_000, inputTokens: 121_500 },
      { atMs: 120_000, inputTokens: 164_025 },
      { atMs: 180_000, inputTokens: 176_000 },
    ],
  },
  {
    name: 'use-growth: silence holds the ceiling at the floor, however long',
    rules: [{ ...growth, states: 'retry-after' }],
    steps: [
      { atMs: 0, inputTokens: 90_000 },
      ...[2, 5, 60, 600].map((minutes) => ({
        atMs: minutes * minuteMs,
        inputTokens: 176_000,
        refused: { kind: 'acceleration', currentLimit: 90_000, retryAfterMs: null },
      })),
    ],
  },
  {
    name: 'use-growth: at the tier the refusal is the plain limit, above it a call never passes',
    rules: [{ ...growth, tierTokensPerMinute: 90_000 }],
    steps: [
      { atMs: 0, inputTokens: 50_000 },
      { atMs: 0, inputTokens: 50_000, refused: { kind: 'input-tokens-per-minute', permanent: false } },
      { atMs: 0, inputTokens: 90_001, refused: { permanent: true } },
    ],
  },
  {
    name: 'time-step: states the ceiling now and at the next minute boundary',
    rules: [step],
    steps: [
      { atMs: 10_000, inputTokens: 100 },
      { atMs: 59_999, inputTokens: 60_000, refused: { currentLimit: 58_000, nextLimit: 68_000, used: 100 } },
      { atMs: 60_000, inputTokens: 60_000 },
    ],
  },
  {
    name: 'time-step: what one minute used does not lower the next',
    rules: [step],
    steps: [
      { atMs: 59_000, inputTokens: 58_000 },
      { atMs: 60_000, inputTokens: 68_000 },
      { atMs: 60_001, inputTokens: 1, refused: { used: 68_000, limit: 68_000, nextLimit: 78_000 } },
    ],
  },
  {
    name: 'time-step: six idle minutes put the ceiling back at the floor',
    rules: [step],
    steps: [
      { atMs: 0, inputTokens: 1 },
      { atMs: 6 * minuteMs, inputTokens: 118_001, refused: { currentLimit: 118_000 } },
      { atMs: 7 * minuteMs, inputTokens: 58_001, refused: { currentLimit: 58_000, nextLimit: undefined } },
      { atMs: 7 * minuteMs, inputTokens: 58_000 },
    ],
  },
  {
    name: 'time-step: with states retry-after the wait is to the minute that fits, none when idling comes first',
    rules: [{ ...step, states: 'retry-after' }],
    steps: [
      { atMs: 0, inputTokens: 1 },
      { atMs: 30_000, inputTokens: 88_000, refused: { retryAfterMs: 3 * minuteMs - 30_000 } },
      { atMs: 30_000, inputTokens: 176_000, refused: { retryAfterMs: null, permanent: false } },
    ],
  },
  {
    name: 'time-step: a refused call neither starts the climb nor keeps it',
    rules: [step],
    steps: [0, 1, 2, 3].map((minutes) => ({
      atMs: minutes * minuteMs,
      inputTokens: 60_000,
      refused: { currentLimit: 58_000, nextLimit: undefined },
    })),
  },
  {
    name: 'slow-down: steady use is free, growth is bounded by the window before',
    rules: [slow],
    steps: [
      { atMs: 0, inputTokens: 800 },
      { atMs: 1, inputTokens: 201, refused: { kind: 'acceleration', limit: 1_000, used: 800 } },
      { atMs: 1, inputTokens: 200 },
      { atMs: 15 * minuteMs, inputTokens: 1_501, refused: { limit: 1_500 } },
      { atMs: 15 * minuteMs, inputTokens: 1_500 },
      { atMs: 30 * minuteMs, inputTokens: 2_250 },
      { atMs: 75 * minuteMs, inputTokens: 1_001, refused: { limit: 1_000 } },
    ],
  },
  {
    name: 'requests-per-minute: a bucket of requests that refills one by one',
    rules: [{ rule: 'requests-per-minute', requestsPerMinute: 2 }],
    steps: [
      { atMs: 0 },
      { atMs: 0 },
      { atMs: 0, refused: { kind: 'requests-per-minute', limit: 2, used: 2, retryAfterMs: 30_000 } },
      { atMs: 30_000 },
    ],
  },
  {
    name: 'output-tokens-per-minute: output counts when it exists, and debt closes the door',
    rules: [{ rule: 'output-tokens-per-minute', outputTokensPerMinute: 600 }],
    steps: [
      { atMs: 0, outputTokens: 1_200 },
      { atMs: 0, refused: { kind: 'output-tokens-per-minute', used: 1_200, retryAfterMs: 60_100 } },
      { atMs: 60_100 },
    ],
  },
  {
    name: 'concurrency: a slot opens when a call ends, so no wait is stated',
    rules: [{ rule: 'concurrency', maxConcurrent: 1 }],
    steps: [
      { atMs: 0 },
      { atMs: 0, stays: true },
      { atMs: 1e9, refused: { kind: 'concurrency', limit: 1, used: 1, retryAfterMs: null } },
    ],
  },
  {
    name: 'overload: certain at 1',
    rules: [{ rule: 'overload', probability: 1 }],
    steps: [{ atMs: 0, refused: { kind: 'overloaded', limit: null, retryAfterMs: null, permanent: false } }],
  },
  { name: 'overload: never at 0', rules: [{ rule: 'overload', probability: 0 }], steps: [{ atMs: 0 }] },
  {
    name: 'daily-quota: tokens begin anew at 00:00 UTC',
    rules: [{ rule: 'daily-quota', inputTokensPerDay: 100 }],
    steps: [
      { atMs: 0, inputTokens: 100 },
      { atMs: 86_000_000, inputTokens: 1, refused: { kind: 'tokens-per-day', retryAfterMs: 400_000 } },
      { atMs: 86_000_000, inputTokens: 101, refused: { permanent: true, retryAfterMs: null } },
      { atMs: 86_400_000, inputTokens: 100 },
    ],
  },
  {
    name: 'daily-quota: requests',
    rules: [{ rule: 'daily-quota', requestsPerDay: 1 }],
    steps: [{ atMs: 5 }, { atMs: 6, refused: { kind: 'requests-per-day', limit: 1, used: 1 } }],
  },
  {
    name: 'spend-cap: closes after so many requests, for ever',
    rules: [{ rule: 'spend-cap', afterRequests: 1 }],
    steps: [
      { atMs: 0 },
      { atMs: 1, refused: { kind: 'quota-exhausted', permanent: true, retryAfterMs: null, resetAtMs: null } },
    ],
  },
  {
    name: 'a list: the first rule that refuses is named, and the others charge nothing',
    rules: [{ rule: 'requests-per-minute', requestsPerMinute: 1 }, bucket],
    steps: [
      { atMs: 0, inputTokens: 60_001, refused: { rule: 'token-bucket' } },
      { atMs: 0, inputTokens: 60_000 },
      { atMs: 0, inputTokens: 60_000, refused: { rule: 'requests-per-minute' } },
    ],
  },
]

describe('limit rules', () => {
  test.each(cases)('$name', ({ rules, steps }) => play(rules, steps))

  test('overload draws from the seed: same seed, same refusals; another seed, others', () => {
    const run = (seed: number): string => {
      const rules = decodeRules([{ rule: 'overload', probability: 0.5 }])
      const provider = makeProvider({ rules, latency, seed })
      return Array.from({ length: 64 }, (_, index) =>
        provider.begin({ atMs: index, callId: `${index}`, inputTokens: 1, outputTokens: 1 }).accepted
          ? 'a'
          : 'r',
      ).join('')
    }
    expect(run(7)).toBe(run(7))
    expect(run(7)).not.toBe(run(8))
    expect(run(7)).toMatch(/a.*r|r.*a/)
  })

  test('estimates are corrected where the provider corrects them: buckets and daily tokens', () => {
    const rules = decodeRules([bucket, { rule: 'daily-quota', inputTokensPerDay: 100_000 }])
    const provider = makeProvider({ rules, latency, seed: 1 })
    const answer = provider.begin({ atMs: 0, callId: 'a', inputTokens: 60_000, outputTokens: 0 })
    if (answer.accepted) provider.finish({ dispatch: answer.dispatch, atMs: 0, inputTokens: 10_000 })
    expect(provider.ceiling(0)).toBe(50_000)
    expect(provider.headers(0)).toEqual([
      { dimension: 'input-tokens-per-minute', limit: 60_000, remaining: 50_000, resetAtMs: 10_000 },
      { dimension: 'tokens-per-day', limit: 100_000, remaining: 90_000, resetAtMs: 86_400_000 },
    ])
  })
})
