/** Refusals inside a 200, where no status says what they are: the words alone decide. */
import { describe, expect, it } from 'vitest'
import { classify } from '../../src/evidence/index.ts'

const read = (message: string) =>
  classify({ provider: 'unheard-of', status: 200, headers: {}, body: { code: 60_999, message } })

describe('a sentence inside a success', () => {
  it.each([
    ['Too many requests were sent by this key', 'unknown-rate-limit'],
    ['your request frequency is too high, wait a moment', 'unknown-rate-limit'],
    ['rate limit for this key was hit', 'unknown-rate-limit'],
    ['this call has been throttled', 'unknown-rate-limit'],
    ['请求太快：访问频率超出限制', 'unknown-rate-limit'],
    ['调用过于频繁', 'unknown-rate-limit'],
    ['已被限流', 'unknown-rate-limit'],
    ['the qps limit of this interface is exceeded', 'requests-per-minute'],
    ['call rate is above the limit per second', 'requests-per-minute'],
    ['daily token allowance exceeded', 'tokens-per-day'],
    ['concurrent call limit (3) reached', 'concurrency'],
    ['the server is busy', 'overloaded'],
    ['weekly allowance used up', 'quota-exhausted'],
    ['insufficient funds', 'quota-exhausted'],
  ])('%s: %s', (message, kind) => {
    expect(read(message)).toMatchObject({
      kind,
      retryable: kind !== 'quota-exhausted' || /weekly/.test(message),
    })
  })

  it.each([
    'the parameter qps is unknown',
    'frequency_penalty must lie between -2 and 2',
    'the rate of the audio file is too low',
    'the limit of the list is 100 per page',
    'a budget per call has to be a number',
    '参数错误：频道不存在',
  ])('that refuses no rate is no refusal for capacity: %s', (message) => {
    expect(read(message).kind).toBe('not-capacity')
  })

  it('counts for nothing under the status of a faulty request, which may quote it', () => {
    const body = { error: { message: 'messages.3: "too many requests" is not allowed here' } }
    expect(classify({ provider: 'unheard-of', status: 400, headers: {}, body })).toMatchObject({
      kind: 'not-capacity',
      retryable: false,
    })
  })
})
