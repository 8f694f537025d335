/** Where XState apps stream in: `createWebSocketInspector({ url: 'ws://localhost:4518/inspector/xstate' })`. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { type EntranceGuard, refuseUpgrade } from '../src/gateway/entrance/guarded.ts'
import type { ActorFrame } from './protocol.ts'
import { actorFrame } from './stately.ts'

/** A definition comes with its actor; a context may be large, and is thrown away. */
const maxMessageBytes = 2 * 1024 * 1024
const maxApps = 32
/** Close code for a message that could not be taken (RFC 6455 section 7.4.1: not of the kind that was promised). */
const badMessage = 1007
/** Actors that a page which opens later is told of. */
const maxActors = 1_000

export class AppSocket {
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes })
  readonly #actors = new Map<string, ActorFrame>()
  readonly #heard: (frame: ActorFrame) => void
  readonly #now: () => number
  readonly #entrance: EntranceGuard

  constructor(heard: (frame: ActorFrame) => void, now: () => number, entrance: EntranceGuard) {
    this.#heard = heard
    this.#now = now
    this.#entrance = entrance
  }

  /** The newest of what is known of every actor. */
  get actors(): ReadonlyArray<ActorFrame> {
    return [...this.#actors.values()]
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#server.clients.size >= maxApps) {
      return refuseUpgrade(socket, 503, 'Service Unavailable', `${maxApps} apps stream in already`)
    }
    this.#server.handleUpgrade(request, socket, head, (client) => {
      client.on('error', () => client.terminate())
      client.on('message', (data, isBinary) => {
        if (isBinary) return
        this.#entrance.run(
          () => this.#take(String(data)),
          () => client.close(badMessage),
        )
      })
    })
  }

  close(): void {
    for (const client of this.#server.clients) client.terminate()
    this.#server.close()
  }

  #take(text: string): void {
    const frame = actorFrame(parsed(text), this.#now())
    if (frame === null) return
    this.#remember(frame)
    this.#heard(frame)
  }

  #remember(frame: ActorFrame): void {
    const { sessionId } = frame
    const known = this.#actors.get(sessionId)
    if (frame.kind === 'actor') this.#actors.set(sessionId, frame)
    else if (frame.kind === 'snapshot' && known?.kind === 'actor') {
      this.#actors.set(sessionId, { ...known, status: frame.status, value: frame.value })
    }
    if (this.#actors.size <= maxActors) return
    const [oldest] = this.#actors.keys()
    if (oldest !== undefined) this.#actors.delete(oldest)
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
