/**
 * The inspection protocol of `@xstate/inspect`, both ways. Events that any XState 5 actor streams in become
 * frames. The scopes of a host stream out to Stately's inspector, or to any receiver of that protocol.
 */

import { createInspector, type StatelyInspectionEvent } from '@xstate/inspect'
import type { LaneHost } from '../src/host/host.ts'
import { kernelOf } from '../src/host/internal.ts'
import { chartOf } from './chart.ts'
import { scopeSummary } from './compact.ts'
import { projectEvent } from './projection.ts'
import type { ActorFrame, StateValue } from './protocol.ts'

type Json = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

const maxNameLength = 200
const maxDepth = 12

const nameOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value.slice(0, maxNameLength) : null

/** Names of states only; null for a snapshot that is not a machine's. */
const stateValueOf = (value: unknown, depth = 0): StateValue | null => {
  if (typeof value === 'string') return value.slice(0, maxNameLength)
  if (!isObject(value) || Array.isArray(value) || depth > maxDepth) return null
  const parts = Object.entries(value).map(([key, inner]) => [nameOf(key), stateValueOf(inner, depth + 1)])
  return Object.fromEntries(parts.filter(([key, inner]) => key !== null && inner !== null))
}

/** Epoch milliseconds, as a number or its digits; null for anything else, which may refuse to become one. */
const momentOf = (value: unknown): number | null => {
  const at = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
  return Number.isFinite(at) && at > 0 ? at : null
}

const definitionOf = (definition: unknown): unknown => {
  if (typeof definition !== 'string') return definition
  try {
    return JSON.parse(definition)
  } catch {
    return null
  }
}

/** One inspection event from the wire as a frame; null when the message is not an inspection event. */
export const actorFrame = (message: unknown, receivedAtMs: number): ActorFrame | null => {
  if (!isObject(message)) return null
  const sessionId = nameOf(message['sessionId'])
  if (sessionId === null) return null
  const snapshot = isObject(message['snapshot']) ? message['snapshot'] : {}
  const event = isObject(message['event']) ? message['event'] : {}
  const at = momentOf(message['createdAt']) ?? receivedAtMs
  const status = nameOf(snapshot['status']) ?? 'active'
  const value = stateValueOf(snapshot['value'])
  const eventType = nameOf(event['type']) ?? ''
  switch (message['type']) {
    case '@xstate.actor': {
      const parentId = nameOf(message['parentId'])
      const name = nameOf(message['name']) ?? sessionId
      const chart = chartOf(definitionOf(message['definition']))
      return { kind: 'actor', at, sessionId, parentId, name, status, value, chart }
    }
    case '@xstate.event':
      return { kind: 'event', at, sessionId, sourceId: nameOf(message['sourceId']), eventType }
    case '@xstate.snapshot':
      return { kind: 'snapshot', at, sessionId, status, value, eventType }
    default:
      return null
  }
}

/** The used part of the object that `createWebSocketInspector` and its siblings return. */
export type StatelyInspector = Pick<
  ReturnType<typeof createInspector>,
  'actor' | 'event' | 'snapshot' | 'stop'
>

export interface StatelyStream {
  /** Messages that were not sent because the receiver was away or slow. */
  readonly dropped: () => number
  readonly stop: () => void
}

/**
 * Streams every scope of a host to a receiver of the inspection protocol. `to` is the receiver's address
 * (`ws://localhost:8080`, as `createInspectorServer` of `@xstate/inspect/server` opens), or an inspector that
 * you made (`createWebSocketInspector({ url })`). The host never waits for the receiver.
 */
export const streamToStately = (host: LaneHost, to: string | StatelyInspector): StatelyStream => {
  const socket = typeof to === 'string' ? new BoundedSocket(to) : null
  const inspector = typeof to === 'string' ? createInspector(socket as BoundedSocket) : to
  socket?.start()
  const kernel = kernelOf(host)
  const known = new Set<string>()
  const introduce = (scope: string) => {
    const actor = kernel.runners.get(scope)?.record.actor
    if (actor === undefined) return undefined
    if (!known.has(scope)) {
      known.add(scope)
      const { value, context } = actor.getSnapshot()
      inspector.actor(actor, { status: 'active', value, context: scopeSummary(context.scope) })
    }
    return actor
  }
  for (const scope of kernel.runners.keys()) introduce(scope)
  const stopObserving = kernel.observe(({ scope, event }) => {
    const actor = introduce(scope)
    const projected = projectEvent(event)
    if (actor === undefined || projected === null) return
    const { value, context } = actor.getSnapshot()
    inspector.event(actor, projected)
    inspector.snapshot(
      actor,
      { status: 'active', value, context: scopeSummary(context.scope) },
      { event: projected },
    )
  })
  return {
    dropped: () => socket?.dropped ?? 0,
    stop: () => {
      stopObserving()
      inspector.stop()
    },
  }
}

/** Above this number of unsent bytes, messages are dropped. */
const maxBufferedBytes = 4 * 1024 * 1024
/** Messages kept while the receiver is away. */
const maxDeferred = 1_000
const reconnectMs = 2_000

/** An adapter of `createInspector` with a bounded buffer. It reconnects when its receiver comes back. */
class BoundedSocket {
  readonly #url: string
  #socket: WebSocket | null = null
  #deferred: string[] = []
  #stopped = false
  dropped = 0

  constructor(url: string) {
    this.#url = url
  }

  start(): void {
    if (this.#socket !== null || this.#stopped) return
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    socket.onopen = () => {
      for (const text of this.#deferred) socket.send(text)
      this.#deferred = []
    }
    socket.onerror = () => {}
    socket.onclose = () => {
      this.#socket = null
      if (!this.#stopped) setTimeout(() => this.start(), reconnectMs).unref()
    }
  }

  stop(): void {
    this.#stopped = true
    this.#socket?.close()
  }

  send(event: StatelyInspectionEvent): void {
    const socket = this.#socket
    if (socket?.readyState === WebSocket.OPEN) {
      if (socket.bufferedAmount > maxBufferedBytes) this.dropped += 1
      else socket.send(JSON.stringify(event))
      return
    }
    this.#deferred.push(JSON.stringify(event))
    if (this.#deferred.length <= maxDeferred) return
    this.#deferred.shift()
    this.dropped += 1
  }
}
