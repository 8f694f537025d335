/** Requests that look like one whose place is kept and are not, or that have a deadline of their own. */
import { describe, expect, it, vi } from 'vitest'
import { keptMs } from '../../src/gateway/kept-places.ts'
import { type Headers, idle, one, type Rest, retry, said, saying, startQueue } from './queue.ts'
import { answerJson, answerStatus, post, startSetting, startUpstream } from './setting.ts'

/** Refused for its own size, which is what attempts are counted of. */
const tooLarge = {
  type: 'rate_limit_error',
  message: 'This request would exceed the rate limit of 1,000 input tokens per minute.',
}

describe('a request that is another call', () => {
  const named = { 'idempotency-key': 'k-1' }
  it.each<[string, Headers, Headers, Rest]>([
    ['another body', {}, retry, { body: saying('other') }],
    ['another body of the same length', {}, retry, { body: saying('jello') }],
    ['another key', named, { ...retry, 'idempotency-key': 'k-2' }, {}],
    ['a key where there was none', {}, { ...retry, ...named }, {}],
    ['no key where there was one', named, retry, {}],
    ['another class', {}, { ...retry, 'x-resource-priority': 'background_ingestion' }, {}],
    ['another principal', {}, { ...retry, 'x-rightofway-principal': 'p-2' }, {}],
    ['another query', {}, retry, { path: '/v1/messages?beta=true' }],
  ])('takes no place that is kept: %s', async (_, first, second, rest) => {
    const { setting, clock, leave, enqueue, upstream, endFirst } = await startQueue()
    await leave(first)
    const { answer } = await enqueue(second, rest)
    expect(setting.waiting()).toBe(2)
    expect(setting.gateway.counters.joinedRetries).toBe(0)
    clock.advance(keptMs)
    await endFirst()
    clock.advance(60_000)
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
    await idle(setting)
  })

  it('of the same key takes its place away, and its id', async () => {
    const { setting, leave, upstream, endFirst } = await startQueue()
    await leave(named, { body: saying('a') })
    const answer = post(setting.scripted, named, { body: saying('other') })
    await vi.waitFor(() => expect(setting.gateway.counters.calls).toBe(3))
    expect(setting.waiting()).toBe(1)
    await endFirst()
    answerJson(await upstream.next())
    const received = await answer
    expect([received.status, received.headers.get('x-rightofway-call-id')]).toEqual([200, 'k-1'])
    expect(upstream.arrivals.map(said)).toEqual(['first', 'other'])
    expect(setting.gateway.counters.joinedRetries).toBe(0)
    await idle(setting)
  })

  it('takes no place of a client that is still there', async () => {
    const { setting, upstream, enqueue, endFirst } = await startQueue()
    const answers = [await enqueue(), await enqueue(retry)]
    await endFirst()
    for (const { answer } of answers) {
      answerJson(await upstream.next())
      expect((await answer).status).toBe(200)
    }
    expect(setting.gateway.counters.joinedRetries).toBe(0)
  })

  it('takes nothing of a call that runs: that one is aborted', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one })
    const client = new AbortController()
    const first = post(setting.scripted, {}, { signal: client.signal })
    const { response } = await upstream.next()
    const closed = new Promise((resolve) => response.once('close', resolve))
    client.abort()
    await expect(first).rejects.toThrow()
    await closed
    const second = post(setting.scripted, retry)
    answerJson(await upstream.next())
    expect((await second).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ sdkRetries: 1, joinedRetries: 0 })
    await idle(setting)
  })

  it('comes after a refusal that was passed on', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { ...one, maxAttempts: 1 } })
    const first = post(setting.scripted)
    answerStatus(await upstream.next(), 429, tooLarge)
    const refused = await first
    const second = post(setting.scripted, retry)
    answerJson(await upstream.next())
    const received = await second
    expect([refused.status, received.status]).toEqual([429, 200])
    const [before, after] = [refused, received].map(({ headers }) => headers.get('x-rightofway-call-id'))
    expect(after).not.toBe(before)
    expect(setting.gateway.counters).toMatchObject({ calls: 2, sdkRetries: 1, joinedRetries: 0 })
  })
})

describe('the deadline of the client that takes a place up', () => {
  const deadline = (ms: number) => ({ ...retry, 'x-rightofway-deadline-ms': String(ms) })

  it('ends the wait when it is the earlier one', async () => {
    const { setting, clock, leave, join, endFirst, upstream } = await startQueue()
    await leave()
    const { answer } = await join(deadline(5_000))
    clock.advance(4_999)
    expect(setting.waiting()).toBe(1)
    clock.advance(1)
    expect((await answer).status).toBe(504)
    expect(setting.waiting()).toBe(0)
    await endFirst()
    expect(upstream.arrivals.length).toBe(1)
  })

  it('ends the call when it has been sent', async () => {
    const { setting, clock, leave, join, endFirst, upstream } = await startQueue()
    await leave()
    const { answer } = await join(deadline(5_000))
    await endFirst()
    const { response } = await upstream.next()
    const closed = new Promise((resolve) => response.once('close', resolve))
    clock.advance(5_000)
    expect((await answer).status).toBe(504)
    await closed
    await idle(setting)
  })

  it('outlasts the one before: the call goes on, at the end of the queue', async () => {
    const { clock, leave, join, endFirst, upstream, setting } = await startQueue()
    await leave({ 'x-rightofway-deadline-ms': '1000' })
    clock.advance(500)
    const { answer } = await join(deadline(60_000))
    clock.advance(500)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    await endFirst()
    answerJson(await upstream.next())
    const received = await answer
    expect(received.status).toBe(200)
    expect(received.headers.get('x-rightofway-call-id')).toMatch(/:retry-1$/)
    await idle(setting)
  })

  it('that passed while the client was away ends the call', async () => {
    const { setting, clock, leave, endFirst } = await startQueue()
    await leave({ 'x-rightofway-deadline-ms': '1000' })
    clock.advance(1_000)
    await vi.waitFor(() => expect(setting.waiting()).toBe(0))
    await endFirst()
    await idle(setting)
  })
})
