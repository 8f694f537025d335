/** Nothing that comes in through any entrance can end the process, or the connections of others. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { attachInspector, hostSource, type Inspector, makeInspector } from '../../../inspector/server.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { type Gateway, startGateway } from '../../../src/gateway/gateway.ts'
import { type LaneHost, openHost } from '../../../src/host/host.ts'
import { head, raw } from '../raw.ts'

let host: LaneHost
let inspector: Inspector
let gateway: Gateway
let attached: Awaited<ReturnType<typeof attachInspector>>
const uncaught: Array<unknown> = []
const catching = (error: unknown) => uncaught.push(error)

beforeAll(async () => {
  process.on('uncaughtException', catching)
  host = await openHost()
  inspector = makeInspector(hostSource(host))
  const mount = { prefix: '/inspector', ...inspector }
  gateway = await startGateway({
    host,
    config: parseConfig({ port: 0 }),
    secret: 'a secret of the tests',
    mount,
  })
  attached = await attachInspector(host)
})
afterAll(async () => {
  process.off('uncaughtException', catching)
  await Promise.all([gateway.close(), attached.close()])
  await host.close()
})

/** Both servers answer as before, and neither has had a fault. */
const unharmed = async () => {
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
  expect((await fetch(`${attached.url}api/scopes`)).status).toBe(200)
  expect([gateway.counters.faults, inspector.faults(), attached.inspector.faults()]).toEqual([0, 0, 0])
  expect(uncaught).toEqual([])
}

const isSettled = (status: number): boolean => status >= 200 && status < 500

const upgrade = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13']
const keyed = [...upgrade, 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']

const targets = [
  '//',
  '///',
  '//[',
  '//a:b:c',
  '/\\\\',
  '/%',
  '/%zz',
  '/?',
  '/??',
  '/inspector//',
  '/inspector//[',
  '/inspector//?a',
  '/inspector/\\\\host',
  '/inspector?//',
  '/inspector/api//',
  '/inspector/api/state?at=%',
  '/inspector/xstate//',
  '/inspectorx//',
  'http://127.0.0.1//',
  'http://127.0.0.1',
  'http://',
  'http://[/',
  '*',
  '/emulator//',
  '/emulator/anthropic//v1/messages',
]

describe('a target that no address parser would take', () => {
  it.each(targets)('%s', async (target) => {
    for (const url of [gateway.url, attached.url]) {
      for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD']) {
        const { status } = await raw(url, head(`${method} ${target}`))
        expect([method, target, status]).toEqual([method, target, expect.toSatisfy(isSettled)])
      }
      const { status } = await raw(url, head(`GET ${target}`, keyed), { untilMs: 300 })
      expect(status === 0 || (status >= 101 && status < 500)).toBe(true)
      await raw(url, head(`GET ${target}`, upgrade), { untilMs: 300 })
      await raw(url, head(`GET ${target}`, keyed), { reset: true })
    }
    await unharmed()
  })
})

describe('a connection that asks to leave HTTP', () => {
  it('is told that WebSocket is not carried, where no page of ours and no call takes it', async () => {
    const { status, text } = await raw(gateway.url, head('GET /openai/v1/files', keyed))
    expect([status, text]).toEqual([426, expect.stringContaining('use HTTP on the same path')])
    expect(text).toContain('connection: close')
  })

  it('may be reset at any moment', async () => {
    for (const path of ['/inspector/xstate', '/emulator/openai/v1/realtime', '/inspector/other']) {
      for (let round = 0; round < 10; round += 1) {
        await raw(gateway.url, head(`GET ${path}`, keyed), { reset: true })
      }
    }
    await unharmed()
  })
})

const noText = { toString: 1 }
const deep = (depth: number): string => `${'{"states":{"a":'.repeat(depth)}{}${'}}'.repeat(depth)}`
const actor = (definition: unknown) => ({ type: '@xstate.actor', sessionId: 's', definition })

const messages: ReadonlyArray<string> = [
  '',
  'null',
  '[]',
  '1',
  '{',
  '{"__proto__":{"type":1}}',
  JSON.stringify({ type: '@xstate.actor', sessionId: 's' }),
  JSON.stringify(actor({ id: noText, states: {} })),
  JSON.stringify(actor(JSON.stringify({ id: noText, states: {} }))),
  JSON.stringify(actor({ id: 'm', initial: noText, states: { a: { id: noText, type: noText } } })),
  JSON.stringify(actor({ states: { a: { on: { E: [{ target: noText, guard: noText }] } } } })),
  JSON.stringify(
    actor({ states: { a: { on: { E: { guard: { type: noText } } }, after: [noText], invoke: noText } } }),
  ),
  JSON.stringify(actor({ states: { a: { on: { E: Array.from({ length: 50_000 }, () => '.nowhere') } } } })),
  `{"type":"@xstate.actor","sessionId":"s","definition":${deep(20_000)}}`,
  JSON.stringify({ type: noText, sessionId: noText }),
  JSON.stringify({
    type: '@xstate.snapshot',
    sessionId: 's',
    snapshot: { value: { a: noText }, status: noText },
  }),
  JSON.stringify({ type: '@xstate.event', sessionId: 's', event: { type: noText }, createdAt: noText }),
]

describe('a message of an XState app', () => {
  it('that cannot be read ends nothing', async () => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/inspector/xstate`)
    await once(socket, 'open')
    for (const message of messages) socket.send(message)
    socket.send(JSON.stringify({ type: '@xstate.actor', sessionId: 'last', definition: { states: {} } }))
    socket.ping()
    await once(socket, 'pong')
    await unharmed()
    expect(socket.readyState).toBe(WebSocket.OPEN)
    socket.close()
  })

  it('that is too long closes its own connection alone', async () => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/inspector/xstate`)
    await once(socket, 'open')
    socket.send('x'.repeat(3 * 1024 * 1024))
    await once(socket, 'close')
    await unharmed()
  })
})

describe('a fault behind an entrance', () => {
  it('is counted, and ends that request, connection or message alone', async () => {
    const planted = () => {
      throw new Error('planted')
    }
    const own = await openHost()
    const mount = { prefix: '/mounted', handle: planted, upgrade: planted, close: () => {} }
    const faulty = await startGateway({ host: own, config: parseConfig({ port: 0 }), secret: 's', mount })
    try {
      const { status, text } = await raw(faulty.url, head('GET /mounted/x'))
      expect([status, text.includes('planted')]).toEqual([500, false])
      expect((await raw(faulty.url, head('GET /mounted/x', keyed))).status).toBe(0)
      expect(faulty.counters.faults).toBe(2)
      expect((await fetch(`${faulty.url}/healthz`)).status).toBe(200)
    } finally {
      await faulty.close()
      await own.close()
    }
    await unharmed()
  })

  it('in a message closes that connection with a code', async () => {
    const { AppSocket } = await import('../../../inspector/socket.ts')
    const { EntranceGuard } = await import('../../../src/gateway/entrance/guarded.ts')
    const { createServer } = await import('node:http')
    let faults = 0
    const apps = new AppSocket(
      () => {
        throw new Error('planted')
      },
      () => 1,
      new EntranceGuard(() => {
        faults += 1
      }),
    )
    const server = createServer()
    server.on('upgrade', (request, socket, first) => apps.upgrade(request, socket, first))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const socket = new WebSocket(`ws://127.0.0.1:${port}/xstate`)
    await once(socket, 'open')
    socket.send(JSON.stringify(actor({ states: {} })))
    const [code] = await once(socket, 'close')
    expect([code, faults]).toEqual([1007, 1])
    apps.close()
    server.close()
  })
})
