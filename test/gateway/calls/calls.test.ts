/** What becomes of calls whose client, upstream or wait is not as it should be. */

import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ManualClock } from '../../../src/clock.ts'
import { makeTransport } from '../../../src/gateway/passage/transport.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { one, saying } from '../queue.ts'
import { head, open, raw } from '../raw.ts'
import { answerJson, answerStatus, call, event, post, startSetting, startUpstream } from '../setting.ts'

const startMs = 1_800_000_000_000
const ask = (path = '/scripted/v1/messages') => {
  const body = JSON.stringify({ ...call, stream: true })
  return (
    head(`POST ${path}`, [
      'x-api-key: key-a',
      'content-type: application/json',
      `content-length: ${body.length}`,
    ]) + body
  )
}

describe('a client that stays connected and stops reading', () => {
  it.each([
    ['a call', ask(), 1],
    ['a request without admission', head('GET /scripted/v1/files/large'), 0],
  ])('is broken off and named after the bound: %s', async (_, request, inFlight) => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const setting = await startSetting({ upstream, clock, writeStallMs: 60_000, interimAnswersMs: 0 })
    const client = open(setting.gateway.url)
    client.on('error', () => {})
    await once(client, 'connect')
    client.pause()
    client.write(request)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('message_start'))
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    const pump = () => {
      while (!response.destroyed && response.write(chunk)) {}
    }
    response.on('drain', pump)
    pump()
    const gone = once(response, 'close')
    // The bound is counted from the moment at which nothing is taken any more.
    await vi.waitFor(
      () => {
        expect(setting.inFlight()).toBe(inFlight)
        clock.advance(60_000)
        expect(setting.gateway.counters.stalledClients).toBe(1)
      },
      { timeout: 15_000, interval: 100 },
    )
    await gone
    expect([setting.inFlight(), setting.gateway.counters.clientAborts]).toEqual([0, 0])
    client.destroy()
  })
})

describe('a request that never left this machine', () => {
  it('goes back to its place when the connection is refused, and is told after a few tries', async () => {
    const upstream = await startUpstream()
    const gone = { ...upstream, url: 'http://127.0.0.1:1' }
    const setting = await startSetting({ upstream: gone, policy: { pacingBaseMs: 1, pacingMaxMs: 2 } })
    const answer = await post(setting.scripted, { 'idempotency-key': 'k' })
    expect([answer.status, answer.headers.get('x-rightofway-attempts')]).toEqual([502, '3'])
    expect(setting.gateway.counters.neverSent).toBe(3)
    expect((await post(setting.scripted, { 'idempotency-key': 'k' })).status).toBe(502)
  })

  it('is what a TLS failure means: nothing of it was told to whoever answered', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.on('error', () => {})
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const upstream = await startUpstream()
    const { port } = server.address() as { port: number }
    const insecure = { ...upstream, url: `https://127.0.0.1:${port}` }
    const setting = await startSetting({ upstream: insecure, policy: { pacingBaseMs: 1, pacingMaxMs: 2 } })
    const answer = await post(setting.scripted)
    expect([answer.status, answer.headers.get('x-rightofway-attempts'), connections]).toEqual([502, '3', 3])
    expect(setting.gateway.counters.neverSent).toBe(3)
  })

  it('is sent once the upstream can be reached', async () => {
    const upstream = await startUpstream()
    const transport = makeTransport()
    let refusals = 0
    const flaky = {
      send: (
        request: Parameters<typeof transport.send>[0],
        listener: Parameters<typeof transport.send>[1],
      ) =>
        refusals++ === 0
          ? transport.send({ ...request, origin: 'http://127.0.0.1:1' }, listener)
          : transport.send(request, listener),
      close: () => transport.close(),
    }
    const setting = await startSetting({
      upstream,
      transport: flaky,
      policy: { pacingBaseMs: 1, pacingMaxMs: 2 },
    })
    const answer = post(setting.scripted)
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ neverSent: 1, upstreamFailures: 0 })
  })

  /** Answers the first request of a connection and keeps it; at the second, it resets before it has read it. */
  const startResetting = async () => {
    let connections = 0
    const server = createServer((socket: Socket) => {
      connections += 1
      let requests = 0
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        if (/^POST/.test(chunk.toString('latin1'))) requests += 1
        if (requests > 1 && connections === 1) return void socket.resetAndDestroy()
        const text = '{"id":"x"}'
        if (chunk.toString('latin1').trimEnd().endsWith('}'))
          socket.write(
            `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
          )
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    return `http://127.0.0.1:${port}`
  }

  it('is what a reset on a used connection means while its body was still being handed over', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({
      upstream: { ...upstream, url: await startResetting() },
      policy: { pacingBaseMs: 1, pacingMaxMs: 2 },
    })
    expect((await post(setting.scripted)).status).toBe(200)
    const large = JSON.stringify({ ...call, pad: 'x'.repeat(40 * 1024 * 1024) })
    expect((await post(setting.scripted, {}, { body: large })).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ neverSent: 1, upstreamFailures: 0 })
  })

  it('is not what it means once all was handed over: the call has failed, and is not sent twice', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream: { ...upstream, url: await startResetting() } })
    expect((await post(setting.scripted)).status).toBe(200)
    expect((await post(setting.scripted)).status).toBe(502)
    expect(setting.gateway.counters).toMatchObject({ neverSent: 0, upstreamFailures: 1 })
  })
})

it('a connection that nobody uses is closed from this side, before a server would close it', async () => {
  const closed: Array<number> = []
  const server = createServer((socket) => {
    const from = performance.now()
    socket.on('error', () => {})
    socket.on('end', () => closed.push(performance.now() - from))
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const transport = makeTransport({ idleMs: 100 })
  const request = { method: 'GET', path: '/', headers: [], body: null, headTimeoutMs: 0 }
  await new Promise<void>((resolve, reject) => {
    const deaf = { interim: () => {}, head: () => {}, bytes: () => true }
    transport.send(
      { ...request, origin: `http://127.0.0.1:${port}` },
      { ...deaf, end: () => resolve(), failed: reject },
    )
  })
  await vi.waitFor(() => expect(closed.length).toBe(1), { timeout: 4_000 })
  await transport.close()
})

describe('a client that waits in the queue', () => {
  it('hears an interim answer every 15 s, and its answer as if there had been none', async () => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const setting = await startSetting({ upstream, clock, policy: one })
    const first = post(setting.scripted, {}, { body: saying('first') })
    const running = await upstream.next()
    const second = raw(setting.gateway.url, ask(), { untilMs: 10_000 })
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    for (let quarter = 0; quarter < 4; quarter += 1) clock.advance(15_000)
    answerJson(running)
    await first
    answerJson(await upstream.next())
    const { text } = await second
    expect(text.match(/HTTP\/1\.1 102 Processing\r\n\r\n/g)).toHaveLength(4)
    expect(text).toMatch(/Processing\r\n\r\nHTTP\/1\.1 200 OK/)
  })

  it('hears none where it is told so, none as a client of HTTP/1.0, and none behind a proxy that might take it for the answer', async () => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const silent = await startSetting({ upstream, clock, policy: one, interimAnswersMs: 0 })
    const old = await startSetting({ upstream, clock, policy: one })
    const heard = [
      raw(silent.gateway.url, ask()),
      raw(old.gateway.url, ask().replace('HTTP/1.1', 'HTTP/1.0')),
    ]
    const arrivals = [await upstream.next(), await upstream.next()]
    for (let quarter = 0; quarter < 4; quarter += 1) clock.advance(15_000)
    for (const arrival of arrivals) answerJson(arrival)
    for (const { text } of await Promise.all(heard)) expect(text).toMatch(/^HTTP\/1\.1 200/)
  })
})

const limited = { type: 'rate_limit_error', message: 'weekly limit reached' }

describe('a wait that is longer than the call may wait', () => {
  it('is told at once, with the answer of the provider and its retry-after, and to those who come later', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    answerStatus(await upstream.next(), 429, limited, { 'retry-after': '86400' })
    for (const received of [await answer, await post(setting.scripted)]) {
      expect([received.status, received.headers.get('x-should-retry')]).toEqual([429, 'false'])
      expect(Number(received.headers.get('retry-after'))).toBeGreaterThan(86_390)
      expect(await received.text()).toContain('weekly limit reached')
    }
    expect([upstream.arrivals.length, setting.gateway.counters.toldToWait]).toEqual([1, 2])
    await vi.waitFor(() => expect([setting.inFlight(), setting.waiting()]).toEqual([0, 0]))
  })

  it('is measured against the deadline too', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-rightofway-deadline-ms': '5000' })
    answerStatus(await upstream.next(), 429, limited, { 'retry-after': '60' })
    expect((await answer).status).toBe(429)
    expect(setting.gateway.counters.toldToWait).toBe(1)
  })

  it.each([
    ['on the evidence of a call of its scope', '{"model":"m"}', {}],
    ['on evidence that reaches it from another scope of its credential', '{"model":"other"}', {}],
    ['where nothing is said to waiting clients', '{"model":"m"}', { interimAnswersMs: 0 }],
  ])('is told to calls that wait already, at once: %s', async (_, body, options) => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const setting = await startSetting({ upstream, clock, policy: one, ...options })
    const running = [post(setting.scripted, {}, { body })]
    const refused = await upstream.next()
    const waits = '{"model":"m","pad":1}'
    if (!body.includes('"m"')) {
      running.push(post(setting.scripted, {}, { body: '{"model":"m"}' }))
      await upstream.next()
    }
    const waiting = [1, 2, 3].map(() => post(setting.scripted, {}, { body: waits }))
    await vi.waitFor(() => expect(setting.waiting()).toBe(3))
    answerStatus(refused, 429, limited, { 'retry-after': '86400' })
    for (const answer of [running[0], ...waiting]) expect((await answer)?.status).toBe(429)
    expect([clock.now(), setting.waiting()]).toEqual([startMs, 0])
    const holds = [...kernelOf(setting.host).runners.values()].map(({ status }) => status.wait?.untilMs)
    expect(new Set(holds)).toEqual(new Set([startMs + 86_400_000]))
  })

  it('is told to the calls that it outlasts alone, and to a client that takes a kept place up with less time', async () => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const setting = await startSetting({ upstream, clock, policy: one })
    const first = post(setting.scripted, {}, { body: saying('first') })
    const running = await upstream.next()
    const within = (ms: number, text: string, signal?: AbortSignal) =>
      post(
        setting.scripted,
        { 'x-rightofway-deadline-ms': String(ms) },
        { body: saying(text), ...(signal === undefined ? {} : { signal }) },
      )
    const patient = within(120_000, 'patient')
    const client = new AbortController()
    const left = within(120_000, 'left', client.signal)
    const hurried = within(30_000, 'hurried')
    await vi.waitFor(() => expect(setting.waiting()).toBe(3))
    client.abort()
    await expect(left).rejects.toThrow()
    await vi.waitFor(() => expect(setting.gateway.counters.clientAborts).toBe(1))
    answerStatus(running, 429, limited, { 'retry-after': '60' })
    expect((await hurried).status).toBe(429)
    expect((await within(30_000, 'left')).status).toBe(429)
    expect([clock.now(), setting.waiting()]).toEqual([startMs, 2])
    clock.advance(60_000)
    for (const arrivals of [2, 3]) {
      await vi.waitFor(() => {
        clock.advance(1_000)
        expect(upstream.arrivals.length).toBe(arrivals)
      })
      answerJson(await upstream.next())
    }
    expect([(await first).status, (await patient).status]).toEqual([200, 200])
  })
})

describe('a 504', () => {
  it('says whether the call was never sent, or sent and cut', async () => {
    const upstream = await startUpstream()
    const clock = new ManualClock(startMs)
    const setting = await startSetting({ upstream, clock, policy: one })
    const soon = { 'x-rightofway-deadline-ms': '5000' }
    const sent = post(setting.scripted, soon)
    await upstream.next()
    const queued = post(setting.scripted, soon)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    clock.advance(5_000)
    for (const [answer, standing, words] of [
      [sent, 'cut', 'it had been sent, and was cut'],
      [queued, 'never-sent', 'it was never sent to the provider'],
    ] as const) {
      const received = await answer
      const problem = (await received.json()) as { standing: string; detail: string }
      expect([received.status, problem.standing]).toEqual([504, standing])
      expect(problem.detail).toContain(words)
    }
  })
})
