import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import {
  createWebSocketInspector,
  createWebSocketReceiver,
  type StatelyInspectionEvent,
} from '@xstate/inspect'
import { createInspectorServer } from '@xstate/inspect/server'
import { afterEach, describe, expect, it } from 'vitest'
import type { ActorFrame, Frame } from '../../inspector/protocol.ts'
import { type AttachedInspector, attachInspector, streamToStately } from '../../inspector/server.ts'
import { actorFrame } from '../../inspector/stately.ts'
import { runCheckout, secrets } from '../browser/xstate-app.ts'
import { openStory, scope, settle, tellStory } from './story.ts'

const cleanups: Array<() => unknown> = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

const attached = async (): Promise<AttachedInspector> => {
  const story = await openStory()
  const inspector = await attachInspector(story.host)
  cleanups.push(
    () => story.host.close(),
    () => inspector.close(),
  )
  return inspector
}

/** Frames of actors that a page gets. */
const watchActors = async ({ url }: AttachedInspector): Promise<ActorFrame[]> => {
  const stop = new AbortController()
  cleanups.push(() => stop.abort())
  const response = await fetch(`${url}api/feed`, { signal: stop.signal })
  const frames: ActorFrame[] = []
  void (async () => {
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const parts = text.split('\n\n')
      text = parts.pop() ?? ''
      for (const part of parts) {
        const frame = part.startsWith('data: ') ? (JSON.parse(part.slice(6)) as Frame) : null
        if (frame?.kind === 'actors') frames.push(...frame.actors)
      }
    }
  })().catch(() => {})
  return frames
}

describe('an XState app that streams in', () => {
  it('shows its actors, their statecharts and states, and who sent what; nothing else', async () => {
    const inspector = await attached()
    const frames = await watchActors(inspector)
    const { inspect, stop } = createWebSocketInspector({
      url: `${inspector.url.replace('http', 'ws')}xstate`,
    })
    cleanups.push(stop)
    const actor = runCheckout(inspect)
    const isShipped = (frame: ActorFrame) => frame.kind === 'snapshot' && frame.value === 'shipped'
    while (!frames.some(isShipped)) await settle()
    const machine = frames.find((frame) => frame.kind === 'actor' && frame.name === 'checkout')
    expect(machine).toMatchObject({
      parentId: null,
      sessionId: actor.sessionId,
      chart: { rootId: 'checkout' },
    })
    const child = frames.find((frame) => frame.kind === 'actor' && frame.parentId === actor.sessionId)
    expect(child).toMatchObject({ name: 'payment', chart: { rootId: 'payment' } })
    expect(frames).toContainEqual(
      expect.objectContaining({ kind: 'snapshot', value: { paying: 'waiting' }, eventType: 'card' }),
    )
    expect(frames).toContainEqual(
      expect.objectContaining({
        kind: 'event',
        eventType: 'paid',
        sourceId: child?.sessionId,
        sessionId: actor.sessionId,
      }),
    )
    for (const secret of secrets) expect(JSON.stringify(frames)).not.toContain(secret)
  })

  it('is shown to a page that opens later, as it is by then', async () => {
    const inspector = await attached()
    const early = await watchActors(inspector)
    const { inspect, stop } = createWebSocketInspector({
      url: `${inspector.url.replace('http', 'ws')}xstate`,
    })
    cleanups.push(stop)
    runCheckout(inspect)
    while (!early.some((frame) => frame.kind === 'snapshot' && frame.value === 'shipped')) await settle()
    const late = await watchActors(inspector)
    while (late.length === 0) await settle()
    expect(late).toContainEqual(
      expect.objectContaining({ kind: 'actor', name: 'checkout', value: 'shipped' }),
    )
  })

  const upgrade = async (inspector: AttachedInspector, headers: Record<string, string>): Promise<number> => {
    const { hostname, port, host } = new URL(inspector.url)
    const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
    const request = httpRequest({
      hostname,
      port,
      path: '/xstate',
      headers: { host, connection: 'Upgrade', upgrade: 'websocket', ...key, ...headers },
    })
    request.end()
    return new Promise((resolve, reject) => {
      request.on('upgrade', (_, socket) => {
        socket.destroy()
        resolve(101)
      })
      request.on('response', ({ statusCode }) => resolve(statusCode ?? 0))
      request.on('error', reject)
    })
  }

  it.each([
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ host: 'evil.example' }, 403],
    [{ origin: 'http://localhost:5173' }, 101],
    [{}, 101],
  ])('may come from this machine only: %j is answered %i', async (headers, status) => {
    expect(await upgrade(await attached(), headers)).toBe(status)
  })

  it('cannot hurt with what it sends', async () => {
    const inspector = await attached()
    const socket = new WebSocket(`${inspector.url.replace('http', 'ws')}xstate`)
    await once(socket, 'open')
    for (const text of [
      '',
      'no json',
      'null',
      '[]',
      '{"type":"@xstate.actor"}',
      '{"type":"x","sessionId":"s"}',
    ])
      socket.send(text)
    socket.send(new Uint8Array([1, 2, 3]))
    socket.send('x'.repeat(3 * 1024 * 1024))
    await once(socket, 'close')
    expect((await fetch(`${inspector.url}api/scopes`)).status).toBe(200)
  })

  it.each([
    ['a name longer than any', { sessionId: 's', name: 'n'.repeat(9_999) }, { name: 'n'.repeat(200) }],
    ['a value that nests without end', { sessionId: 's', snapshot: { value: deep(40) } }, { kind: 'actor' }],
    ['a definition that is not JSON', { sessionId: 's', definition: '{' }, { chart: null }],
    ['no time', { sessionId: 's', createdAt: 'soon' }, { at: 77 }],
  ])('may send %s', (_, message, expected) => {
    expect(actorFrame({ type: '@xstate.actor', ...message }, 77)).toMatchObject(expected)
  })
})

const deep = (levels: number): unknown => {
  return levels === 0 ? 'bottom' : { level: deep(levels - 1) }
}

describe('the scopes of a host', () => {
  const received = async () => {
    const port = await freePort()
    const server = createInspectorServer({ port, autoOpen: false })
    cleanups.push(() => server.stop())
    const url = `ws://localhost:${port}`
    const events: StatelyInspectionEvent[] = []
    const receiver = createWebSocketReceiver({ server: url })
    receiver.subscribe((event) => events.push(event))
    return { url, events }
  }

  it.each(['its address', 'createWebSocketInspector'])(
    'stream to Stately\u2019s inspector, given %s',
    async (how) => {
      const { url, events } = await received()
      const story = await openStory()
      cleanups.push(() => story.host.close())
      await tellStory(story)
      const stream = streamToStately(
        story.host,
        how === 'its address' ? url : createWebSocketInspector({ url, maxDeferredEvents: 1_000 }),
      )
      cleanups.push(stream.stop)
      await tellStory(story, 1)
      const settled = (event: StatelyInspectionEvent) =>
        event.type === '@xstate.event' && (event.event as { callId?: string }).callId === 'ingest-4-1'
      while (!events.some(settled)) await settle()
      const actor = events.find(({ type }) => type === '@xstate.actor')
      expect(actor).toMatchObject({ name: 'scope', snapshot: { status: 'active', context: { scope } } })
      const definition = JSON.parse((actor as { definition: string }).definition) as { states: object }
      expect(Object.keys(definition.states).sort()).toEqual([
        'auxiliaryDraining',
        'idle',
        'primaryPending',
        'quietRamp',
        'settled',
      ])
      expect(events.filter(({ type }) => type === '@xstate.snapshot').length).toBeGreaterThan(10)
      expect(JSON.stringify(events)).not.toContain('PLANTED')
      expect(stream.dropped()).toBe(0)
    },
  )

  it('do not wait for a receiver that is not there: what is too much is dropped and counted', async () => {
    const story = await openStory()
    cleanups.push(() => story.host.close())
    const stream = streamToStately(story.host, `ws://127.0.0.1:${await freePort()}`)
    cleanups.push(stream.stop)
    for (let round = 0; round < 30; round += 1) await tellStory(story, round)
    expect(stream.dropped()).toBeGreaterThan(0)
  })
})
