/** A call without an answer: it waits, is withdrawn, makes way, or runs out of time. */
import { describe, expect, it, vi } from 'vitest'
import type { ShownPolicy } from '../../../src/gateway/config/policies.ts'
import { ManualClock, type ScopeStatus } from '../../../src/index.ts'
import { answerJson, answerStatus, event, overloaded, post, startSetting, startUpstream } from '../setting.ts'

const one = { capacity: 1, reserve: 0, pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 } as const
const background = { 'x-resource-priority': 'background_ingestion' }
const interactive = { 'x-resource-priority': 'interactive' }

interface LanesAnswer {
  readonly scopes: ReadonlyArray<Omit<ScopeStatus, 'policy'> & { readonly policy: ShownPolicy }>
}

const problemOf = async (response: Response) => {
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  return (await response.json()) as { type: string; status: number; detail: string }
}

describe('a call that waits', () => {
  it('goes when its turn comes, and says how long it waited', async () => {
    const upstream = await startUpstream()
    const clock = new ManualClock(1_000_000)
    const setting = await startSetting({ upstream, policy: one, clock })
    const first = post(setting.scripted)
    const arrival = await upstream.next()
    const second = post(setting.scripted)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    clock.jump(clock.now() + 1_234)
    // Nothing has happened since, and yet it has waited.
    const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as LanesAnswer
    const [status] = lanes.scopes
    expect(status?.primary).toMatchObject({ longestWaitMs: 1_234, longestActiveMs: 1_234 })
    // The gateway adds where each value of the policy comes from.
    const { policy, ...own } = JSON.parse(JSON.stringify(setting.host.status()[0]))
    expect(status).toMatchObject(own)
    expect(Object.keys(status?.policy.values ?? {})).toEqual(Object.keys(policy))
    answerJson(arrival)
    answerJson(await upstream.next())
    const answers = await Promise.all([first, second])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers.map(({ headers }) => headers.get('x-rightofway-waited-ms'))).toEqual(['0', '1234'])
    expect(answers[1]?.headers.get('x-rightofway-attempts')).toBe('1')
  })

  it('of another key waits for nobody', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one })
    const first = post(setting.scripted, { 'x-api-key': 'key-a' })
    const held = await upstream.next()
    const second = post(setting.scripted, { 'x-api-key': 'key-b' })
    answerJson(await upstream.next())
    expect((await second).status).toBe(200)
    answerJson(held)
    await first
    expect(setting.host.status().length).toBe(2)
  })

  it('ends in 503 with retry-after when its bound passes', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { ...one, primaryPendingTimeoutMs: 30 } })
    const first = post(setting.scripted)
    const arrival = await upstream.next()
    const second = await post(setting.scripted)
    expect(second.status).toBe(503)
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await problemOf(second)).type).toBe('urn:rightofway:problem:pending-timeout')
    answerJson(arrival)
    await first
  })

  it('ends in 504 when its deadline passes', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one })
    const first = post(setting.scripted)
    const arrival = await upstream.next()
    const second = await post(setting.scripted, { 'x-rightofway-deadline-ms': '30' })
    expect((await problemOf(second)).type).toBe('urn:rightofway:problem:deadline-exceeded')
    expect([second.status, second.headers.get('x-should-retry')]).toEqual([504, 'false'])
    answerJson(arrival)
    await first
  })

  it("ends in the provider's own answer when it waited for the provider", async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-rightofway-deadline-ms': '2000' })
    answerStatus(await upstream.next(), 529, overloaded, { 'retry-after': '30' })
    const received = await answer
    expect(received.status).toBe(529)
    expect(await received.json()).toEqual({ type: 'error', error: overloaded })
    expect(upstream.arrivals.length).toBe(1)
  })

  it('that never fits is refused at once', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { limits: { inputTokensPerMinute: 1_000 } } })
    const received = await post(setting.scripted, { 'x-rightofway-input-tokens': '1001' })
    expect(received.status).toBe(413)
    expect((await problemOf(received)).type).toBe('urn:rightofway:problem:exceeds-limit')
    expect(upstream.arrivals.length).toBe(0)
  })
})

describe('a call that is running', () => {
  it('holds its id: a second one is told so, and so is one that comes after its end', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const headers = { 'idempotency-key': 'k-7' }
    const first = post(setting.scripted, headers)
    const arrival = await upstream.next()
    const second = await post(setting.scripted, headers)
    expect((await problemOf(second)).type).toBe('urn:rightofway:problem:duplicate-call')
    answerJson(arrival)
    expect((await first).headers.get('x-rightofway-call-id')).toBe('k-7')
    const third = await post(setting.scripted, headers)
    expect((await problemOf(third)).type).toBe('urn:rightofway:problem:already-settled')
    expect([second.status, third.status]).toEqual([409, 409])
    expect(third.headers.get('x-should-retry')).toBe('false')
    expect(upstream.arrivals.length).toBe(1)
  })

  it("tells an SDK's retry that came too soon to come again", async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const headers = { 'idempotency-key': 'k-8' }
    const first = post(setting.scripted, headers)
    const arrival = await upstream.next()
    const second = await post(setting.scripted, { ...headers, 'x-stainless-retry-count': '1' })
    expect(second.status).toBe(409)
    expect([second.headers.get('retry-after'), second.headers.get('x-should-retry')]).toEqual(['1', null])
    answerJson(arrival)
    await first
    expect(upstream.arrivals.length).toBe(1)
  })

  it('is aborted upstream when its client goes away', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const client = new AbortController()
    const answer = post(setting.scripted, {}, { signal: client.signal })
    const { response } = await upstream.next()
    const closed = new Promise((resolve) => response.once('close', resolve))
    client.abort()
    await expect(answer).rejects.toThrow()
    await closed
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  })

  it('ends in 504 when it runs too long without a byte', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { primaryActiveTimeoutMs: 30 } })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    const closed = new Promise((resolve) => response.once('close', resolve))
    expect((await problemOf(await answer)).type).toBe('urn:rightofway:problem:active-timeout')
    await closed
    expect(setting.inFlight()).toBe(0)
  })

  it.each([
    ['anthropic', '/v1/messages', 'event: error\ndata: {"type":"error","error":{'],
    ['openai', '/v1/chat/completions', 'data: {"error":{"message":'],
    ['openai', '/v1/responses', 'event: error\ndata: {"message":'],
  ] as const)(
    'that runs too long in mid-stream ends as the wire ends (%s %s)',
    async (wire, path, ending) => {
      const upstream = await startUpstream()
      const setting = await startSetting({ upstream, wire, policy: { primaryActiveTimeoutMs: 1_500 } })
      const answer = post(setting.scripted, {}, { path })
      const { response } = await upstream.next()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"a":1}\n\n')
      const text = await (await answer).text()
      expect(text.startsWith(`data: {"a":1}\n\n${ending}`)).toBe(true)
      expect(text.endsWith('\n\n')).toBe(true)
      expect(setting.inFlight()).toBe(0)
    },
  )

  it('that is stopped in the middle of an event is broken off', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { primaryActiveTimeoutMs: 1_500 } })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"a":1}\n\ndata: {"a":')
    await expect((await answer).text()).rejects.toThrow()
  })
})

describe('an auxiliary that makes way', () => {
  const cancel = { inFlight: 'cancel', drainIntervalMs: 0, quietWindowMs: 0 } as const

  it('before a byte was sent: is aborted upstream, and goes on by itself afterwards', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: cancel })
    const auxiliary = post(setting.scripted, background)
    const stopped = await upstream.next()
    const closed = new Promise((resolve) => stopped.response.once('close', resolve))
    const primary = post(setting.scripted, interactive)
    await closed
    answerJson(await upstream.next())
    expect((await primary).status).toBe(200)
    answerJson(await upstream.next())
    const received = await auxiliary
    expect([received.status, received.headers.get('x-rightofway-attempts')]).toEqual([200, '2'])
    expect(setting.gateway.counters.preemptions).toBe(1)
  })

  it('after bytes were sent: ends as overloaded, and leaves no place behind', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: cancel })
    const auxiliary = post(setting.scripted, background)
    const stopped = await upstream.next()
    stopped.response.writeHead(200, { 'content-type': 'text/event-stream' })
    stopped.response.write(event('message_start'))
    const stream = await auxiliary
    const primary = post(setting.scripted, interactive)
    answerJson(await upstream.next())
    expect((await primary).status).toBe(200)
    expect(await stream.text()).toContain('"type":"overloaded_error"')
    await vi.waitFor(() => expect([setting.inFlight(), setting.waiting()]).toEqual([0, 0]))
    expect(upstream.arrivals.length).toBe(2)
  })

  it('and its client went away: leaves no place behind', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { ...cancel, capacity: 1, reserve: 0 } })
    const client = new AbortController()
    const auxiliary = post(setting.scripted, background, { signal: client.signal })
    await upstream.next()
    const primary = post(setting.scripted, interactive)
    const second = await upstream.next()
    client.abort()
    await expect(auxiliary).rejects.toThrow()
    answerJson(second)
    expect((await primary).status).toBe(200)
    await vi.waitFor(() => expect([setting.inFlight(), setting.waiting()]).toEqual([0, 0]))
    expect(upstream.arrivals.length).toBe(2)
  })
})

describe('a gateway that closes', () => {
  it('answers those that wait, lets those that run end, and takes no more', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one })
    const first = post(setting.scripted)
    const arrival = await upstream.next()
    const second = post(setting.scripted)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    const hostClosed = setting.host.close({ graceMs: 1_000 })
    const closed = setting.gateway.close({ graceMs: 1_000 })
    const waited = await second
    expect([waited.status, waited.headers.get('retry-after')]).toEqual([503, '5'])
    answerJson(arrival)
    expect((await first).status).toBe(200)
    await Promise.all([closed, hostClosed])
    await expect(post(setting.scripted)).rejects.toThrow()
  })

  it('cuts what does not end within its grace', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('message_start'))
    const received = await answer
    await setting.gateway.close({ graceMs: 10 })
    expect(await received.text()).toContain('overloaded_error')
    expect(setting.inFlight()).toBe(0)
  })
})
