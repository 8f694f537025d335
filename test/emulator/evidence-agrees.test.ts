import { afterEach, describe, expect, test } from 'vitest'
import { decodeRules, type Emulator, startEmulator } from '../../src/emulator/index.ts'
import { classify } from '../../src/evidence/index.ts'
import { makeManualClock, until } from './manual-clock.ts'

interface Case {
  /** Refuses a second call, of 70,000 tokens, while a first of one token is in flight. */
  readonly rule: Readonly<Record<string, unknown>>
  readonly anthropic: Read
  readonly openai: Read
}
type Read = readonly [kind: string, retryAfterMs: number | null, retryable: boolean]

const dayMs = 86_400_000
const accelerating = {
  anthropic: ['acceleration', null, true],
  openai: ['acceleration', null, true],
} as const
const step = {
  rule: 'time-step',
  floorTokensPerMinute: 9,
  stepTokensPerMinute: 100_000,
  tierTokensPerMinute: 1_000_000,
  idleResetMinutes: 3,
}

const cases: readonly Case[] = [
  {
    rule: { rule: 'token-bucket', inputTokensPerMinute: 70_000 },
    anthropic: ['input-tokens-per-minute', 1_000, true],
    openai: ['tokens-per-minute', 1, true],
  },
  {
    rule: {
      rule: 'use-growth',
      floorTokensPerMinute: 9,
      growthPerMinute: 2,
      tierTokensPerMinute: 1_000_000,
    },
    ...accelerating,
  },
  { rule: { rule: 'slow-down', steadyTokensPerMinute: 9, growth: 2, windowMs: 60_000 }, ...accelerating },
  { rule: step, ...accelerating },
  {
    rule: { ...step, states: 'retry-after' },
    anthropic: ['acceleration', 60_000, true],
    openai: ['acceleration', 60_000, true],
  },
  {
    rule: { rule: 'requests-per-minute', requestsPerMinute: 1 },
    anthropic: ['requests-per-minute', 60_000, true],
    openai: ['requests-per-minute', 60_000, true],
  },
  {
    rule: { rule: 'daily-quota', requestsPerDay: 1 },
    anthropic: ['requests-per-day', dayMs, true],
    openai: ['requests-per-day', dayMs, true],
  },
  {
    rule: { rule: 'daily-quota', inputTokensPerDay: 70_000 },
    anthropic: ['tokens-per-day', dayMs, true],
    openai: ['tokens-per-day', dayMs, true],
  },
  {
    rule: { rule: 'concurrency', maxConcurrent: 1 },
    anthropic: ['concurrency', null, true],
    openai: ['concurrency', null, true],
  },
  {
    rule: { rule: 'overload', probability: 1 },
    anthropic: ['overloaded', null, true],
    openai: ['overloaded', null, true],
  },
  {
    rule: { rule: 'spend-cap' },
    anthropic: ['quota-exhausted', null, false],
    openai: ['quota-exhausted', null, false],
  },
]

const paths = { anthropic: '/v1/messages', openai: '/v1/chat/completions' } as const

let running: Emulator | undefined
afterEach(() => running?.close())

describe('the evidence reader understands what the emulator says', () => {
  for (const provider of ['anthropic', 'openai'] as const) {
    test.each(cases)(`${provider}: $rule.rule`, async (one) => {
      const clock = makeManualClock(Date.UTC(2026, 0, 1))
      const emulator = await startEmulator({ rules: decodeRules([one.rule]), clock })
      running = emulator
      const send = (inputTokens: number, more: Record<string, string> = {}) =>
        fetch(`${emulator.url}${paths[provider]}`, {
          method: 'POST',
          headers: {
            'x-api-key': 'k',
            authorization: 'Bearer k',
            'x-emulator-input-tokens': `${inputTokens}`,
            ...more,
          },
          body: JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }),
        })
      const first = send(1, { 'x-emulator-fault': 'hang' }).catch(() => null)
      await until(() => emulator.log().length === 1)
      const response = await send(70_000)
      const evidence = classify({
        provider,
        status: response.status,
        headers: response.headers,
        body: await response.json(),
        receivedAt: clock.now(),
      })
      expect([evidence?.kind, evidence?.retryAfterMs, evidence?.retryable]).toEqual(one[provider])
      await emulator.close()
      running = undefined
      await first
    })
  }
})
