/** WebSockets of OpenAI's wire, carried through: each response on one is a call, and an idle one holds no place. */
import { OpenAI } from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { ManualClock } from '../../../src/clock.ts'
import { head, raw } from '../raw.ts'
import { type SettingOptions, startSetting, startUpstream } from '../setting.ts'
import { connect, startProvider } from './provider.ts'

const one = { capacity: 1, reserve: 0, pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 } as const
const create = (text: string, more = {}) => ({ type: 'response.create', model: 'm', input: text, ...more })
const created = (id: string) => ({ type: 'response.created', response: { id } })
const usage = { input_tokens: 1_200, output_tokens: 5 }
const completed = (id: string) => ({ type: 'response.completed', response: { id, usage } })
const limited = {
  type: 'error',
  status: 429,
  error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Rate limit reached' },
}

const start = async (options: SettingOptions = {}, protocol?: string) => {
  const { upstream, connection } = await startProvider(protocol)
  const setting = await startSetting({ upstream, wire: 'openai', policy: one, ...options })
  return { setting, connection }
}

const texts = (...events: ReadonlyArray<object>) => events.map((event) => JSON.stringify(event))

describe('a WebSocket', () => {
  it('is carried through with its fields, its protocol and its close, and holds no place while idle', async () => {
    const { setting, connection } = await start({}, 'realtime')
    const client = connect(
      setting.scripted,
      '/v1/realtime?model=m',
      { 'openai-beta': 'x', 'x-rightofway-lane': 'primary' },
      ['realtime', 'other'],
    )
    const provider = await connection()
    const { socket } = await client
    expect([socket.protocol, provider.request.url]).toEqual(['realtime', '/v1/realtime?model=m'])
    expect(provider.request.headers).toMatchObject({ authorization: 'Bearer key-a', 'openai-beta': 'x' })
    expect(provider.request.headers).not.toHaveProperty('x-rightofway-lane')
    expect([setting.inFlight(), setting.gateway.liveCalls]).toEqual([0, 0])
    const closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve([code, String(reason)])),
    )
    provider.socket.close(4_001, 'enough')
    expect(await closed).toEqual([4_001, 'enough'])
    expect(setting.gateway.counters).toMatchObject({ sockets: 1, calls: 0, faults: 0 })
  })

  it('passes every message as it came, in order, text and binary', async () => {
    const { setting, connection } = await start()
    const client = await connect(setting.scripted)
    const provider = await connection()
    const strange = ['{"type" : "session.update","a":1.0}', 'no JSON', '{"type":"response.cancel"}']
    for (const text of strange) client.socket.send(text)
    for (const text of strange) expect(await provider.next()).toBe(text)
    provider.socket.send(Buffer.from([0, 255, 1]))
    const binary = await new Promise((resolve) =>
      client.socket.once('message', (data, isBinary) => resolve([data, isBinary])),
    )
    expect(binary).toEqual([Buffer.from([0, 255, 1]), true])
    expect(setting.gateway.counters.calls).toBe(0)
  })

  it('each response.create is a call of its model, with its usage, and the socket lives on', async () => {
    const { setting, connection } = await start()
    const client = await connect(setting.scripted)
    const provider = await connection()
    for (const id of ['r1', 'r2', 'r3']) {
      client.say(create(id))
      expect(await provider.next()).toBe(JSON.stringify(create(id)))
      expect(setting.inFlight()).toBe(1)
      const events = [created(id), { type: 'response.output_text.delta', delta: 'x' }, completed(id)]
      for (const event of events) provider.say(event)
      for (const text of texts(...events)) expect(await client.next()).toBe(text)
      await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    }
    const [status] = setting.host.status()
    expect([status?.scope.endsWith('/m'), status?.counters.completed]).toEqual([true, 3])
    expect(status?.recentInputTokens).toBe(3_600)
    expect(setting.gateway.counters).toMatchObject({ calls: 3, sockets: 1 })
  })

  it('a second one waits for its permit, with all that comes behind it', async () => {
    const { setting, connection } = await start()
    const [first, second] = [await connect(setting.scripted), await connect(setting.scripted)]
    const [one, two] = [await connection(), await connection()]
    first.say(create('first'))
    await one.next()
    second.say({ type: 'session.update' })
    second.say(create('second'))
    second.say({ type: 'response.cancel' })
    expect(await two.next()).toBe('{"type":"session.update"}')
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    expect(two.heard.length).toBe(1)
    one.say(created('r1'))
    one.say(completed('r1'))
    expect([await two.next(), await two.next()]).toEqual(texts(create('second'), { type: 'response.cancel' }))
  })

  it.each([
    ['response.completed', completed('r1')],
    ['response.incomplete', { type: 'response.incomplete', response: { id: 'r1', usage } }],
    ['response.done', { type: 'response.done', response: { id: 'r1', status: 'completed', usage } }],
    [
      'response.failed',
      { type: 'response.failed', response: { id: 'r1', error: { code: 'server_error', message: 'x' } } },
    ],
    ['error', { type: 'error', error: { type: 'invalid_request_error', message: 'no such tool' } }],
    ['a refusal in the middle', { ...limited }],
  ])('%s ends a response, reaches the client and leaves no place behind', async (_, last) => {
    const { setting, connection } = await start()
    const client = await connect(setting.scripted)
    const provider = await connection()
    client.say(create('a'))
    await provider.next()
    provider.say(created('r1'))
    provider.say(last)
    expect([await client.next(), await client.next()]).toEqual(texts(created('r1'), last))
    await vi.waitFor(() => expect([setting.inFlight(), setting.waiting()]).toEqual([0, 0]))
    expect(client.socket.readyState).toBe(WebSocket.OPEN)
  })

  it('a refusal before the response has begun is evidence: the message is sent again, and the client sees nothing', async () => {
    const { setting, connection } = await start()
    const client = await connect(setting.scripted)
    const provider = await connection()
    client.say(create('a'))
    await provider.next()
    provider.say(limited)
    expect(await provider.next()).toBe(JSON.stringify(create('a')))
    provider.say(created('r1'))
    provider.say(completed('r1'))
    expect([await client.next(), await client.next()]).toEqual(texts(created('r1'), completed('r1')))
    expect(setting.gateway.counters.absorbedRefusals).toBe(1)
    expect(setting.host.status()[0]?.counters).toMatchObject({ completed: 1, refusedByProvider: 1 })
  })

  it('an error that answers another message of the client ends no response, nor does a response of the provider', async () => {
    const { setting, connection } = await start()
    const client = await connect(setting.scripted, '/v1/realtime?model=m')
    const provider = await connection()
    provider.say(created('by-itself'))
    client.say({ type: 'response.create', event_id: 'e2' })
    await provider.next()
    provider.say({ type: 'error', error: { type: 'invalid_request_error', message: 'x', event_id: 'e1' } })
    provider.say({ type: 'response.done', response: { id: 'by-itself' } })
    for (let heard = 0; heard < 3; heard += 1) await client.next()
    expect(setting.inFlight()).toBe(1)
    provider.say({ type: 'error', error: { type: 'invalid_request_error', message: 'x', event_id: 'e2' } })
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  })

  it.each([
    ['its client leaves', (client: WebSocket) => client.terminate(), undefined],
    ['its client closes', (client: WebSocket) => client.close(1_000), undefined],
    ['its provider breaks off', undefined, (provider: WebSocket) => provider.terminate()],
  ] as const)('when %s, what runs and what waits ends', async (_, byClient, byProvider) => {
    const { setting, connection } = await start()
    const [client, other] = [await connect(setting.scripted), await connect(setting.scripted)]
    const [provider, others] = [await connection(), await connection()]
    client.say(create('runs'))
    await provider.next()
    other.say(create('waits'))
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    const closed = [client.socket, provider.socket].map(
      (socket) => new Promise((resolve) => socket.once('close', resolve)),
    )
    byClient?.(client.socket)
    byProvider?.(provider.socket)
    await Promise.all(closed)
    expect(await others.next()).toBe(JSON.stringify(create('waits')))
    other.socket.terminate()
    await vi.waitFor(() =>
      expect([setting.inFlight(), setting.waiting(), setting.gateway.liveCalls]).toEqual([0, 0, 0]),
    )
    expect(setting.gateway.counters.faults).toBe(0)
  })
})

it('where no message names a model, the target does, or the session', async () => {
  const { setting, connection } = await start()
  const client = await connect(setting.scripted, '/v1/realtime?model=voice')
  const provider = await connection()
  const respond = async () => {
    client.say({ type: 'response.create' })
    await provider.next()
    provider.say(created('r'))
    provider.say({ type: 'response.done', response: { id: 'r', status: 'completed', usage } })
    await client.next()
    await client.next()
  }
  await respond()
  provider.say({ type: 'session.updated', session: { model: 'voice-2' } })
  await client.next()
  await respond()
  const scopes = setting.host
    .status()
    .map(({ scope, counters }) => [scope.split('/').at(-1), counters.completed])
  expect(scopes).toEqual([
    ['voice', 1],
    ['voice-2', 1],
  ])
})

describe('the limits of the gateway hold for messages', () => {
  it('a wait that is too long, or ends, is an error event with the status, and the socket lives on', async () => {
    const clock = new ManualClock(1_800_000_000_000)
    const { setting, connection } = await start({
      clock,
      policy: { ...one, primaryPendingTimeoutMs: 60_000 },
    })
    const [client, other] = [await connect(setting.scripted), await connect(setting.scripted)]
    const provider = await connection()
    client.say(create('runs'))
    await provider.next()
    other.say(create('waits', { event_id: 'e7' }))
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    clock.advance(60_000)
    expect(JSON.parse(await other.next())).toMatchObject({
      type: 'error',
      status: 503,
      error: { code: 'rightofway_pending_timeout', event_id: 'e7' },
    })
    other.say(create('waits again'))
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    provider.say({ ...limited, headers: { 'retry-after': '86400' } })
    // It is told at once, both to the call that was refused and to the one that waits.
    for (const each of [client, other])
      expect(JSON.parse(await each.next())).toMatchObject({
        type: 'error',
        status: 429,
        headers: { 'retry-after': '86400' },
      })
    expect([setting.inFlight(), setting.waiting(), client.socket.readyState]).toEqual([0, 0, WebSocket.OPEN])
  })

  it('a response that runs too long is told, and its connection closed: it cannot be stopped alone', async () => {
    const clock = new ManualClock(1_800_000_000_000)
    const { setting, connection } = await start({ clock, policy: { ...one, primaryActiveTimeoutMs: 30_000 } })
    const client = await connect(setting.scripted)
    const provider = await connection()
    client.say(create('a'))
    await provider.next()
    const closed = [client.socket, provider.socket].map(
      (socket) => new Promise((resolve) => socket.once('close', (code) => resolve(code))),
    )
    clock.advance(30_000)
    expect(JSON.parse(await client.next())).toMatchObject({
      status: 504,
      error: { code: 'rightofway_active_timeout' },
    })
    expect(await Promise.all(closed)).toEqual([1_013, 1_013])
    expect(setting.inFlight()).toBe(0)
  })

  it('a message beyond bodyLimitBytes closes the connection, and bodies beyond what may be held are told', async () => {
    const { setting, connection } = await start({ bodyLimitBytes: 2_048, heldBodiesLimitBytes: 3_000 })
    const large = await connect(setting.scripted)
    await connection()
    const closed = new Promise((resolve) => large.socket.once('close', (code) => resolve(code)))
    large.say(create('x'.repeat(4_000)))
    expect(await closed).toBe(1_009)
    const [client, other] = [await connect(setting.scripted), await connect(setting.scripted)]
    const provider = await connection()
    client.say(create('runs'))
    await provider.next()
    other.say(create('x'.repeat(1_800)))
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    other.say(create('x'.repeat(1_800)))
    expect(JSON.parse(await other.next())).toMatchObject({ status: 503, error: { code: 'rightofway_full' } })
    provider.say(created('r'))
    provider.say(completed('r'))
    await vi.waitFor(async () => {
      const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
        gateway: { heldBytes: number }
      }
      expect([lanes.gateway.heldBytes, setting.waiting(), setting.inFlight()]).toEqual([0, 0, 0])
    })
  })

  it('a client that does not read is let go of, and its provider is asked to pause meanwhile', async () => {
    const clock = new ManualClock(1_800_000_000_000)
    const { setting, connection } = await start({ clock, writeStallMs: 60_000 })
    const client = await connect(setting.scripted)
    const provider = await connection()
    client.say(create('a'))
    await provider.next()
    client.socket.pause()
    provider.say(created('r'))
    const delta = { type: 'response.output_text.delta', delta: 'x'.repeat(500_000) }
    for (let sent = 0; sent < 100; sent += 1) provider.say(delta)
    const closed = new Promise((resolve) => provider.socket.once('close', resolve))
    await vi.waitFor(
      () => {
        clock.advance(10_000)
        expect(setting.gateway.counters.stalledClients).toBe(1)
      },
      { timeout: 5_000 },
    )
    // Most of it has stayed with the provider.
    expect(provider.socket.bufferedAmount).toBeGreaterThan(20_000_000)
    await closed
    expect([setting.gateway.counters.stalledClients, setting.inFlight()]).toEqual([1, 0])
  })

  it('a gateway that closes ends idle sockets at once, and the others behind their response', async () => {
    const { setting, connection } = await start()
    const [idle, busy] = [await connect(setting.scripted), await connect(setting.scripted)]
    const [, provider] = [await connection(), await connection()]
    busy.say(create('a'))
    await provider.next()
    const codes = [idle, busy].map(
      ({ socket }) => new Promise((resolve) => socket.once('close', (code) => resolve(code))),
    )
    const closed = setting.gateway.close({ graceMs: 5_000 })
    expect(await codes[0]).toBe(1_001)
    provider.say(created('r'))
    provider.say(completed('r'))
    expect([await busy.next(), await busy.next()]).toEqual(texts(created('r'), completed('r')))
    expect(await codes[1]).toBe(1_001)
    await closed
  })
})

describe('a WebSocket that cannot be carried', () => {
  const keyed = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]

  it.each([
    ['an upstream that does not speak it', 'openai', '/v1/responses', 426],
    ['a path without calls', 'openai', '/v1/files', 426],
    ['another wire', 'anthropic', '/v1/responses', 426],
  ] as const)('%s is 426, at which agents go on over HTTP', async (_, wire, path, status) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire })
    const answer = raw(setting.gateway.url, head(`GET /scripted${path}`, keyed))
    if (path === '/v1/responses' && wire === 'openai') (await upstream.next()).response.writeHead(405).end()
    const { text, status: got } = await answer
    expect([got, text]).toEqual([status, expect.stringContaining('use HTTP on the same path')])
    expect(text).toContain('upgrade: HTTP/1.1')
  })

  it.each([401, 429, 503])('a provider that refuses the client itself is passed on (%i)', async (status) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai' })
    const answer = raw(setting.gateway.url, head('GET /scripted/v1/responses', keyed))
    const { response } = await upstream.next()
    response.writeHead(status, { 'x-of': 'the provider', 'retry-after': '7' }).end('{"error":1}')
    const { text, status: got } = await answer
    expect([got, text]).toEqual([
      status,
      expect.stringMatching(/x-of: the provider[\s\S]*retry-after: 7[\s\S]*\{"error":1\}$/i),
    ])
  })

  it('an upstream that is away is a 502, a strange name a 403, a strange protocol a 400', async () => {
    const upstream = {
      url: 'http://127.0.0.1:9',
      arrivals: [],
      next: () => Promise.reject(new Error('away')),
    }
    const setting = await startSetting({ upstream, wire: 'openai' })
    const ask = async (fields: ReadonlyArray<string>) =>
      (await raw(setting.gateway.url, head('GET /scripted/v1/responses', [...keyed, ...fields]))).status
    expect(await ask([])).toBe(502)
    expect(await ask(['Origin: https://elsewhere.example'])).toBe(403)
    expect(await ask(['Sec-WebSocket-Protocol: a, a'])).toBe(400)
    expect(setting.gateway.counters.faults).toBe(0)
  })
})

describe("OpenAI's own SDK", () => {
  it('Responses over WebSocket: two responses on one connection, and a refusal that stays hidden', async () => {
    const { setting, connection } = await start()
    const client = new OpenAI({ baseURL: `${setting.scripted}/v1`, apiKey: 'key-a' })
    const socket = new ResponsesWS(client)
    const heard: Array<string> = []
    socket.on('event', ({ type }) => heard.push(type))
    const provider = await connection()
    for (const id of ['r1', 'r2']) {
      socket.send({ type: 'response.create', model: 'm', input: 'hello' })
      expect(JSON.parse(await provider.next())).toMatchObject({ type: 'response.create', input: 'hello' })
      if (id === 'r2') {
        provider.say(limited)
        await provider.next()
      }
      provider.say(created(id))
      provider.say(completed(id))
    }
    await vi.waitFor(() =>
      expect(heard).toEqual([
        'response.created',
        'response.completed',
        'response.created',
        'response.completed',
      ]),
    )
    socket.close()
    await vi.waitFor(() => expect(setting.host.status()[0]?.counters.completed).toBe(2))
  })
})
