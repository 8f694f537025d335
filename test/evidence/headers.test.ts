import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readLimits } from '../../src/evidence/index.ts'

const nowMs = Date.parse('2031-03-05T12:00:00Z')

describe('limit headers', () => {
  it('of Anthropic, with times in RFC 3339', () => {
    const headers = {
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2031-03-05T12:00:01Z',
      'anthropic-ratelimit-input-tokens-limit': '30000',
      'anthropic-ratelimit-input-tokens-remaining': '28000',
      'anthropic-ratelimit-output-tokens-limit': '8000',
      'anthropic-priority-input-tokens-limit': '1000',
    }
    expect(readLimits('anthropic', headers, nowMs)).toEqual([
      { dimension: 'requests-per-minute', limit: 50, remaining: 49, resetAtMs: nowMs + 1000 },
      { dimension: 'input-tokens-per-minute', limit: 30_000, remaining: 28_000, resetAtMs: null },
      { dimension: 'output-tokens-per-minute', limit: 8000, remaining: null, resetAtMs: null },
      { dimension: 'other-priority-input-tokens', limit: 1000, remaining: null, resetAtMs: null },
    ])
  })

  it('of OpenAI, with Go durations and a project bucket', () => {
    const headers = {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-remaining-tokens': '29000',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-limit-project-tokens': '60000',
    }
    expect(readLimits('openai', headers, nowMs)).toEqual([
      { dimension: 'requests-per-minute', limit: 500, remaining: 499, resetAtMs: nowMs + 120 },
      { dimension: 'tokens-per-minute', limit: null, remaining: 29_000, resetAtMs: nowMs + 360_000 },
      { dimension: 'project-tokens-per-minute', limit: 60_000, remaining: null, resetAtMs: null },
    ])
  })

  it('of Azure: plain seconds, an extra hyphen, a debt', () => {
    const headers = { 'x-ratelimit-remaining-tokens': '-27689', 'x-rate-limit-reset-tokens': '64' }
    expect(readLimits('azure-openai', headers, nowMs)).toEqual([
      { dimension: 'tokens-per-minute', limit: null, remaining: -27_689, resetAtMs: nowMs + 64_000 },
    ])
  })

  it('of Azure: the sentinel -1 is unknown', () => {
    const headers = { 'x-ratelimit-limit-requests': '-1', 'x-ratelimit-remaining-requests': '-1' }
    expect(readLimits('azure', headers, nowMs)).toEqual([
      { dimension: 'requests-per-minute', limit: null, remaining: null, resetAtMs: null },
    ])
  })

  it('of Groq: requests are days, tokens are minutes', () => {
    const headers = {
      'x-ratelimit-limit-requests': '14400',
      'x-ratelimit-reset-requests': '2m59.56s',
      'x-ratelimit-limit-tokens': '6000',
    }
    expect(readLimits('groq', headers, nowMs)).toEqual([
      { dimension: 'requests-per-day', limit: 14_400, remaining: null, resetAtMs: nowMs + 179_560 },
      { dimension: 'tokens-per-minute', limit: 6000, remaining: null, resetAtMs: null },
    ])
  })

  it('of Mistral: by size, and with its window in the name', () => {
    const headers = {
      'ratelimitbysize-limit': '500000',
      'ratelimitbysize-remaining': '499000',
      'x-ratelimit-limit-req-minute': '60',
      'x-ratelimitbysize-remaining-month': '7',
    }
    expect(readLimits('mistral', headers, nowMs)).toEqual([
      { dimension: 'tokens-per-minute', limit: 500_000, remaining: 499_000, resetAtMs: null },
      { dimension: 'requests-per-minute', limit: 60, remaining: null, resetAtMs: null },
      { dimension: 'other-tokens-month', limit: null, remaining: 7, resetAtMs: null },
    ])
  })

  it('of Together: queries without a noun, tokens under a name of their own, one reset for both', () => {
    const headers = {
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '9',
      'x-ratelimit-reset': '1',
      'x-tokenlimit-limit': '4000',
      'x-tokenlimit-remaining': '0',
    }
    expect(readLimits('together', headers, nowMs)).toEqual([
      { dimension: 'requests-per-minute', limit: 10, remaining: 9, resetAtMs: nowMs + 1000 },
      { dimension: 'tokens-per-minute', limit: 4000, remaining: 0, resetAtMs: nowMs + 1000 },
    ])
  })

  it('of Fireworks: prompt is input, generated is output, the warning is no limit', () => {
    const headers = {
      'x-ratelimit-over-limit': 'no',
      'x-ratelimit-limit-tokens-prompt': '60000',
      'x-ratelimit-remaining-tokens-generated': '500',
    }
    expect(readLimits('fireworks', headers, nowMs)).toEqual([
      { dimension: 'input-tokens-per-minute', limit: 60_000, remaining: null, resetAtMs: null },
      { dimension: 'output-tokens-per-minute', limit: null, remaining: 500, resetAtMs: null },
    ])
  })

  it('with a day in the name', () => {
    const headers = {
      'x-ratelimit-remaining-requests-day': '12',
      'x-ratelimit-reset-requests-day': '33011.382867097855',
    }
    expect(readLimits('somebody-new', headers, nowMs)).toEqual([
      { dimension: 'requests-per-day', limit: null, remaining: 12, resetAtMs: nowMs + 33_011_383 },
    ])
  })

  it.each([
    ['epoch seconds', String(nowMs / 1000 + 5), nowMs + 5000],
    ['epoch milliseconds', String(nowMs + 5), nowMs + 5],
    ['an HTTP date', 'Wed, 05 Mar 2031 12:00:05 GMT', nowMs + 5000],
    ['nonsense', 'later', null],
  ])('whose reset is in %s', (_what, reset, resetAtMs) => {
    expect(readLimits('x', { 'x-ratelimit-limit': '3', 'x-ratelimit-reset': reset }, nowMs)).toEqual([
      { dimension: 'unstated', limit: 3, remaining: null, resetAtMs },
    ])
  })

  it('in the structured form of the IETF', () => {
    expect(readLimits('x', { RateLimit: '"default";r=0;t=30' }, nowMs)).toEqual([
      { dimension: 'unstated', limit: null, remaining: 0, resetAtMs: nowMs + 30_000 },
    ])
  })

  it('are none where there are none', () => {
    expect(readLimits('anthropic', { 'content-type': 'application/json' }, nowMs)).toEqual([])
    expect(readLimits('anthropic', new Headers(), nowMs)).toEqual([])
  })

  it('hold only safe numbers, whatever their values are', () => {
    const names = fc.constantFrom(
      'x-ratelimit-limit-tokens',
      'x-ratelimit-reset-tokens',
      'anthropic-ratelimit-requests-remaining',
      'ratelimit',
      'x-ratelimit-remaining',
    )
    const values = fc.oneof(
      fc.string(),
      fc.double().map(String),
      fc.bigInt().map(String),
      fc.array(fc.string()),
    )
    fc.assert(
      fc.property(fc.dictionary(names, values), (headers) => {
        for (const { limit, remaining, resetAtMs } of readLimits('x', headers, nowMs)) {
          for (const value of [limit, remaining, resetAtMs])
            expect(value === null || Number.isFinite(value)).toBe(true)
        }
      }),
    )
  })
})
