import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classify } from '../../src/evidence/index.ts'

const receivedAt = '2031-03-05T12:00:00.000Z'
const sentence = "This request would exceed your organization's rate limit of 7,000 input tokens per minute."

const waitOf = (
  headers: Record<string, string>,
  message = sentence,
  more: Record<string, unknown> = {},
): number | null => {
  const body = { type: 'error', error: { type: 'rate_limit_error', message, ...more } }
  return classify({ provider: 'anthropic', status: 429, headers, body, receivedAt }).retryAfterMs
}

describe('the retry-after headers', () => {
  it.each([
    ['whole seconds', { 'retry-after': '8' }, 8000],
    ['fractions round up', { 'retry-after': '0.0001' }, 1],
    ['a tenth is exact', { 'retry-after': '1.1' }, 1100],
    ['zero is now', { 'retry-after': '0' }, 0],
    ['any case of the name', { 'Retry-After': '8' }, 8000],
    ['the millisecond header wins', { 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    ['an unreadable millisecond header falls back', { 'retry-after-ms': 'NaN', 'retry-after': '9' }, 9000],
    ['repeated values take the longer', { 'retry-after': '3, 5' }, 5000],
    ['an HTTP date', { 'retry-after': 'Wed, 05 Mar 2031 12:00:30 GMT' }, 30_000],
    ['an HTTP date in the form of RFC 850', { 'retry-after': 'Wednesday, 05-Mar-31 12:00:02 GMT' }, 2000],
    ['an HTTP date without a zone is UTC', { 'retry-after': 'Wed Mar  5 12:01:00 2031' }, 60_000],
    ['a date in the past is now', { 'retry-after': 'Wed, 05 Mar 2031 11:59:00 GMT' }, 0],
    ['more than a timer can hold is still what was stated', { 'retry-after': '31536000' }, 31_536_000_000],
    ['a duration', { 'retry-after': '1m30s' }, 90_000],
    ['negative', { 'retry-after': '-5' }, null],
    ['blank', { 'retry-after': '   ' }, null],
    ['a word', { 'retry-after': 'soon' }, null],
    ['an exponent', { 'retry-after': '1e400' }, null],
    ['hexadecimal', { 'retry-after': '0x10' }, null],
    ['beyond what an integer can hold', { 'retry-after': '99999999999999999' }, null],
    ['a date that does not exist', { 'retry-after': 'Wed, 99 Mar 2031 12:00:00 GMT' }, null],
  ])('%s', (_what, headers, expected) => {
    expect(waitOf(headers)).toBe(expected)
  })

  it('reads a date by the answer’s own date when nobody says when it was received', () => {
    const answer = { provider: 'x', status: 429, body: '' }
    const headers = { 'retry-after': 'Wed, 05 Mar 2031 12:00:30 GMT' }
    expect(classify({ ...answer, headers }).retryAfterMs).toBe(null)
    expect(
      classify({ ...answer, headers: { ...headers, date: 'Wed, 05 Mar 2031 12:00:10 GMT' } }).retryAfterMs,
    ).toBe(20_000)
  })

  it('reports any whole number of seconds exactly', () => {
    fc.assert(
      fc.property(fc.nat(100_000_000), (seconds) => {
        expect(waitOf({ 'retry-after': String(seconds) })).toBe(seconds * 1000)
      }),
    )
  })

  it('never reports less than was stated, nor a millisecond more', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000_000), (micros) => {
        const wait = waitOf({ 'retry-after': (micros / 1_000_000).toFixed(6) })
        expect(wait).toBe(Math.ceil(micros / 1000))
      }),
    )
  })
})

describe('the body', () => {
  it.each([
    ['a delay in protobuf JSON', { details: [{ retryDelay: '12.5s' }] }, 12_500],
    ['a delay in its two fields', { details: [{ retryDelay: { seconds: '2', nanos: 500_000_000 } }] }, 2500],
    ['seconds', { retry_after: 4 }, 4000],
    ['seconds as text', { retry_after_seconds: '4.5' }, 4500],
    ['milliseconds', { retry_after_ms: 1234 }, 1234],
    ['a window that tells its end', { resets_in_seconds: 60 }, 60_000],
    ['headers inside', { metadata: { headers: { 'Retry-After': '6' } } }, 6000],
    ['a negative number', { retry_after: -1 }, null],
  ])('%s', (_what, more, expected) => {
    expect(waitOf({}, sentence, more)).toBe(expected)
  })

  it('ranks below the headers and above the prose', () => {
    const message = `${sentence} Please try again in 9s.`
    expect(waitOf({ 'retry-after': '1' }, message, { retry_after: 2 })).toBe(1000)
    expect(waitOf({}, message, { retry_after: 2 })).toBe(2000)
    expect(waitOf({}, message)).toBe(9000)
  })
})

describe('the prose', () => {
  it.each([
    ['try again in 250ms', 250],
    ['try again in 789.6ms.', 790],
    ['try again in 6m0s.', 360_000],
    ['try again in 2h31m16.752s', 9_076_752],
    ['Please retry after 38 seconds.', 38_000],
    ['Please try again after 3 seconds', 3000],
    ['Please retry in 38.074824224s.', 38_075],
    ['Please wait 2339 seconds before retrying.', 2_339_000],
    ['Try again in 86,400 seconds', 86_400_000],
    ['Resets in: 45s', 45_000],
    ['Quota will be replenished in 1.02:03:04.', 93_784_000],
    ['Quota will be replenished in 00:12:30.', 750_000],
    ['Your quota will reset after 2h21m13s.', 8_473_000],
    ['try again in 1 minute and 30 seconds', 90_000],
    ['Retry after 30', 30_000],
    ['Please try again later.', null],
    ['Please retry 5 times', null],
    ['The SDK will retry up to 5 times', null],
    ['Retry with model x-4 or wait until 2031-09-01', null],
    ['You will regain access on 2031-09-01 at 00:00 UTC.', null],
  ])('%s', (prose, expected) => {
    expect(waitOf({}, `${sentence} ${prose}`)).toBe(expected)
  })
})

describe('the reset headers', () => {
  const of = (noun: string, remaining: string, reset: string): Record<string, string> => ({
    [`anthropic-ratelimit-${noun}-remaining`]: remaining,
    [`anthropic-ratelimit-${noun}-reset`]: reset,
  })

  it('counts only where its window is used up', () => {
    expect(waitOf(of('input-tokens', '0', '2031-03-05T12:00:42Z'))).toBe(42_000)
    expect(waitOf(of('input-tokens', '12', '2031-03-05T12:00:42Z'))).toBe(null)
  })

  it('prefers the window that the sentence names', () => {
    const headers = {
      ...of('input-tokens', '0', '2031-03-05T12:00:05Z'),
      ...of('requests', '0', '2031-03-05T12:00:50Z'),
    }
    expect(waitOf(headers)).toBe(5000)
  })

  it('is 0 when the reset is already over', () => {
    expect(waitOf(of('input-tokens', '0', '2031-03-05T11:59:59Z'))).toBe(0)
  })

  it('says nothing about a fault or an empty account', () => {
    expect(waitOf(of('input-tokens', '0', '2031-03-05T12:00:42Z'), 'Your credit balance is too low')).toBe(
      null,
    )
  })
})
