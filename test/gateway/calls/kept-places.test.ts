/** A client that goes away while its call waits, and what becomes of the place that it leaves. */

import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it, vi } from 'vitest'
import { ManualClock } from '../../../src/clock.ts'
import type { AskedCall } from '../../../src/gateway/calls/asked-call.ts'
import { KeptPlaces, keptMs, mostKept } from '../../../src/gateway/calls/kept-places.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { idle, one, retry, said, saying, startQueue } from '../queue.ts'
import { answerJson, answerStatus, call, overloaded, post, startSetting, startUpstream } from '../setting.ts'

describe('a place that its client left', () => {
  it('is taken up by the same request: same id, same turn, same age', async () => {
    const { upstream, setting, clock, endFirst, enqueue, leave, join, ids } = await startQueue()
    await leave({}, { body: saying('a') })
    const [left] = ids()
    const behind = await enqueue({}, { body: saying('b') })
    clock.advance(keptMs - 1)
    const { answer } = await join(retry, { body: saying('a') })
    expect(setting.waiting()).toBe(2)
    clock.advance(keptMs)
    await endFirst()
    const second = await upstream.next()
    expect(said(second)).toBe('a')
    answerJson(second)
    const received = await answer
    expect(received.status).toBe(200)
    expect(received.headers.get('x-rightofway-call-id')).toBe(left)
    expect(received.headers.get('x-rightofway-waited-ms')).toBe(String(2 * keptMs - 1))
    const third = await upstream.next()
    expect(said(third)).toBe('b')
    answerJson(third)
    expect((await behind.answer).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ calls: 4, sdkRetries: 1, joinedRetries: 1 })
    await idle(setting)
  })

  it('is taken up as well when the client does not say that it tries again', async () => {
    const { upstream, setting, endFirst, leave, join } = await startQueue()
    await leave()
    const { answer } = await join()
    await endFirst()
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ sdkRetries: 0, joinedRetries: 1 })
  })

  it('is kept anew each time its client leaves', async () => {
    const { upstream, setting, clock, endFirst, leave, join, enqueue } = await startQueue()
    await leave({}, { body: saying('a') })
    await enqueue({}, { body: saying('b') })
    for (const count of ['1', '2']) {
      clock.advance(keptMs - 1)
      const client = new AbortController()
      const { counters } = setting.gateway
      const before = counters.joinedRetries
      const again = post(
        setting.scripted,
        { 'x-stainless-retry-count': count },
        { body: saying('a'), signal: client.signal },
      )
      await vi.waitFor(() => expect(counters.joinedRetries).toBe(before + 1))
      client.abort()
      await expect(again).rejects.toThrow()
      await vi.waitFor(() => expect(counters.clientAborts).toBe(Number(count) + 1))
    }
    const { answer } = await join({ 'x-stainless-retry-count': '3' }, { body: saying('a') })
    await endFirst()
    const second = await upstream.next()
    expect(said(second)).toBe('a')
    answerJson(second)
    expect((await answer).status).toBe(200)
    answerJson(await upstream.next())
    await idle(setting)
  })

  it('of two alike, the older one is taken up first', async () => {
    const { upstream, setting, endFirst, enqueue, join, ids } = await startQueue()
    const { counters } = setting.gateway
    const clients = [new AbortController(), new AbortController()] as const
    await enqueue({}, { signal: clients[0].signal })
    const [older] = ids()
    await enqueue({}, { signal: clients[1].signal })
    for (const [index, client] of clients.entries()) {
      client.abort()
      await vi.waitFor(() => expect(counters.clientAborts).toBe(index + 1))
    }
    const answers = [await join(retry), await join(retry)] as const
    await endFirst()
    answerJson(await upstream.next())
    expect((await answers[0].answer).headers.get('x-rightofway-call-id')).toBe(older)
    answerJson(await upstream.next())
    expect((await answers[1].answer).status).toBe(200)
    await idle(setting)
  })

  it('after a refusal of the provider: the attempts before count', async () => {
    const { upstream, setting, clock, endFirst, join } = await startQueue()
    const client = new AbortController()
    const refused = post(setting.scripted, {}, { signal: client.signal })
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    await endFirst()
    answerStatus(await upstream.next(), 529, overloaded, { 'retry-after': '30' })
    await vi.waitFor(() => expect(setting.gateway.counters.absorbedRefusals).toBe(1))
    client.abort()
    await expect(refused).rejects.toThrow()
    await vi.waitFor(() => expect(setting.gateway.counters.clientAborts).toBe(1))
    const { answer } = await join(retry)
    clock.advance(31_000)
    answerJson(await upstream.next())
    const received = await answer
    expect([received.status, received.headers.get('x-rightofway-attempts')]).toEqual([200, '2'])
  })

  it('keeps no body, and is shown', async () => {
    const { setting, clock, leave, endFirst } = await startQueue()
    const lanes = async () =>
      ((await (await fetch(`${setting.gateway.url}/lanes`)).json()) as { gateway: Record<string, unknown> })
        .gateway
    const { heldBytes } = await lanes()
    await leave({}, { body: saying('x'.repeat(5_000)) })
    expect(await lanes()).toMatchObject({ liveCalls: 2, keptPlaces: 1, heldBytes })
    clock.advance(keptMs)
    await endFirst()
    expect(await lanes()).toMatchObject({ liveCalls: 0, keptPlaces: 0, heldBytes: 0 })
  })
})

describe('a place that nobody takes up', () => {
  it('is withdrawn when its time has passed, and nothing is sent', async () => {
    const { upstream, setting, clock, leave, enqueue, endFirst } = await startQueue()
    await leave()
    clock.advance(keptMs - 1)
    expect(setting.waiting()).toBe(1)
    clock.advance(1)
    expect(setting.waiting()).toBe(0)
    const late = await enqueue(retry)
    await endFirst()
    answerJson(await upstream.next())
    expect((await late.answer).status).toBe(200)
    expect(upstream.arrivals.length).toBe(2)
    expect(setting.gateway.counters).toMatchObject({ sdkRetries: 1, joinedRetries: 0 })
    await idle(setting)
  })

  it('is gone when its turn comes: nothing is sent, the next one goes, and the same id may come again', async () => {
    const { upstream, setting, leave, enqueue, endFirst } = await startQueue()
    const key = { 'idempotency-key': 'k-1' }
    const told: Array<string> = []
    kernelOf(setting.host).observe(({ event }) => {
      if ('callId' in event && event.callId === 'k-1') told.push(event.type)
    })
    await leave(key, { body: saying('a') })
    const behind = await enqueue({}, { body: saying('b') })
    await endFirst()
    const second = await upstream.next()
    expect(said(second)).toBe('b')
    expect([setting.inFlight(), setting.waiting()]).toEqual([1, 0])
    expect(told).toEqual(['call.withdrawn'])
    const late = await enqueue(key, { body: saying('a') })
    answerJson(second)
    await behind.answer
    answerJson(await upstream.next())
    const received = await late.answer
    expect([received.status, received.headers.get('x-rightofway-call-id')]).toEqual([200, 'k-1'])
    expect(upstream.arrivals.map(said)).toEqual(['first', 'b', 'a'])
    expect(setting.gateway.counters.joinedRetries).toBe(0)
    await idle(setting)
  })

  it('is given up when the gateway closes, and leaves no timer', async () => {
    const { setting, clock, leave, endFirst } = await startQueue()
    await leave()
    const closed = setting.gateway.close({ graceMs: 2_000 })
    expect(setting.waiting()).toBe(0)
    await endFirst()
    await closed
    await setting.host.close()
    expect(clock.nextAt()).toBeNull()
  })
})

describe("an SDK's own retry", () => {
  it('after a timeout in the queue goes on where its first try waited', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one })
    const { counters } = setting.gateway
    const first = post(setting.scripted, {}, { body: saying('first') })
    const running = await upstream.next()
    const client = new Anthropic({
      apiKey: 'key-a',
      baseURL: setting.scripted,
      timeout: 900,
      maxRetries: 1,
    })
    const asked = client.messages.create({
      model: call.model,
      max_tokens: 8,
      messages: [{ role: 'user', content: 'sdk' }],
    })
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    const behind = post(setting.scripted, {}, { body: saying('behind') })
    await vi.waitFor(() => expect(setting.waiting()).toBe(2))
    await vi.waitFor(() => expect(counters.joinedRetries).toBe(1), { timeout: 5_000, interval: 10 })
    answerJson(running)
    answerJson(await upstream.next())
    expect((await asked).usage.input_tokens).toBe(10)
    answerJson(await upstream.next())
    await Promise.all([first, behind])
    expect(upstream.arrivals.map(said)).toEqual(['first', 'sdk', 'behind'])
    expect(counters).toMatchObject({ calls: 4, clientAborts: 1, sdkRetries: 1, joinedRetries: 1 })
    await idle(setting)
  })
})

describe('kept places', () => {
  const asked = {
    call: { lane: 'primary', priorityClass: 'interactive', principal: 'default', turnId: null },
    runner: { name: 'scope' },
    outbound: { origin: 'http://upstream', path: '/', body: Buffer.from('{}') },
    bodyBytes: 2,
    statedId: null,
  } as unknown as AskedCall
  const absentee = () => ({ isQueued: true, takeOver: () => {}, nobodyCame: vi.fn() })

  it('are bounded in number, and take no more once closed', () => {
    const clock = new ManualClock()
    const places = new KeptPlaces(clock)
    const first = absentee()
    expect(places.keep(first, asked)).toBe(true)
    for (let more = 1; more < mostKept; more += 1) places.keep(absentee(), asked)
    expect(places.keep(absentee(), asked)).toBe(false)
    expect(places.take(asked)).toBe(first)
    expect(places.size).toBe(mostKept - 1)
    places.close()
    expect([places.size, clock.nextAt(), places.keep(first, asked)]).toEqual([0, null, false])
    expect(first.nobodyCame).not.toHaveBeenCalled()
  })

  it('whose turn has come are not given away', () => {
    const places = new KeptPlaces(new ManualClock())
    places.keep({ ...absentee(), isQueued: false }, asked)
    expect(places.take(asked)).toBeNull()
  })
})
