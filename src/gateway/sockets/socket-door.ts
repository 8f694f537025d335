/** Where a client asks to leave HTTP for a WebSocket: looked at as any request, and joined with the provider's. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import type { CallPorts } from '../calls/call-ports.ts'
import { pathAndQuery, type Route, type Router } from '../config/upstreams.ts'
import { type AskingPorts, askedCall } from '../entrance/asking.ts'
import { isProblems } from '../entrance/call-headers.ts'
import { type Doorkeeper, isToken } from '../entrance/doorkeeper.ts'
import type { EntranceGuard } from '../entrance/guarded.ts'
import { isSignedForHost } from '../entrance/signed.ts'
import { targetOf } from '../entrance/target.ts'
import type { Token } from '../entrance/tokens.ts'
import type { HeldBody, HeldBytes } from '../passage/body.ts'
import { answerFields, requestFields } from '../passage/forward-headers.ts'
import type { Transport } from '../passage/transport.ts'
import { codeOf, unreachable } from '../problem/call-problems.ts'
import { closing, tooManyScopes } from '../problem/gateway-problems.ts'
import { badRequest, type Problem } from '../problem/problem.ts'
import { badTarget, notFound, notOverWebSocket, signedForHost } from '../problem/request-problems.ts'
import { CarriedSocket } from './carried-socket.ts'
import { carriesCalls } from './events.ts'
import { passOn, refuse } from './raw-answer.ts'

export interface SocketDoorPorts extends AskingPorts {
  readonly router: Router
  readonly doorkeeper: Doorkeeper
  readonly entrance: EntranceGuard
  readonly calls: CallPorts
  /** Of the transport, which may have to go through a proxy. */
  readonly transport: Transport
  readonly held: HeldBytes
  /** Hears of every connection that is refused. */
  readonly refused: (problem: Problem) => void
  readonly bodyLimitBytes: number
  readonly scopesLimit: number
}

/** Longest wait for the provider's side to open, milliseconds. */
const handshakeTimeoutMs = 60_000

/** Of a provider's refusal to open, what is passed on at most, bytes. */
const mostRefusalBytes = 65_536

/** Statuses with which a server refuses the client, and not the protocol. */
const isForClient = (status: number): boolean =>
  [400, 401, 402, 403, 429].includes(status) || (status >= 500 && status !== 501)

export class SocketDoor {
  readonly #ports: SocketDoorPorts
  readonly #server: WebSocketServer
  readonly #sockets = new Set<CarriedSocket>()
  #isClosing = false
  #emptied: () => void = () => {}

  constructor(ports: SocketDoorPorts) {
    this.#ports = ports
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: ports.bodyLimitBytes,
      // The provider has chosen one already; see `#accept`.
      handleProtocols: (_, request) => chosen.get(request) ?? false,
    })
    this.#server.on('headers', (lines, request) => lines.push(...(announced.get(request) ?? [])))
  }

  /** Responses that wait or are under way on all of them. */
  get liveCalls(): number {
    return [...this.#sockets].reduce((sum, { liveCalls }) => sum + liveCalls, 0)
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Opens no more, ends those on which nothing is under way, and after `graceMs` the others. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    for (const socket of [...this.#sockets]) socket.drain()
    if (this.#sockets.size > 0 && graceMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs)
        this.#emptied = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (const socket of [...this.#sockets]) socket.end(1001)
    this.#server.close()
  }

  /** Takes the connection over. Whatever is wrong is answered on it. */
  open(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const found = this.#routeOf(request)
    if ('status' in found) {
      this.#ports.calls.counters.invalid += 1
      this.#ports.refused(found)
      return refuse(socket, found)
    }
    this.#connect(request, socket, head, found)
  }

  #routeOf(request: IncomingMessage): (Route & { readonly holder: Token | null }) | Problem {
    const { doorkeeper, router } = this.#ports
    const target = targetOf(request.url)
    if (target === null) return badTarget
    const stranger = doorkeeper.refuses(request)
    if (stranger !== null) return stranger
    const holder = doorkeeper.holderOf(request)
    if (holder !== null && !isToken(holder)) return holder
    const route = router.route(target)
    if (route === null) return notFound(router.routes)
    if (this.#isClosing) return closing
    if (isSignedForHost(request.headers, target.query)) return signedForHost
    const { wire } = route.upstream
    const protocols = protocolsOf(request)
    const isClear =
      new Set(protocols).size === protocols.length && protocols.every((name) => protocolName.test(name))
    if (!isClear) return badRequest([badProtocol])
    if (!/^websocket$/i.test(request.headers.upgrade ?? '') || wire !== 'openai' || !carriesCalls(route.path))
      return notOverWebSocket
    return { ...route, holder }
  }

  /** The provider's side first: what it refuses, the client hears as HTTP. */
  #connect(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    route: Route & { readonly holder: Token | null },
  ): void {
    const { bodyLimitBytes, entrance, calls, transport } = this.#ports
    const provider = new WebSocket(
      `${route.origin.replace(/^http/, 'ws')}${pathAndQuery(route)}`,
      protocolsOf(request),
      {
        headers: handshakeFields(request, route.upstream.honoursPriority),
        perMessageDeflate: false,
        maxPayload: bodyLimitBytes,
        agent: transport.agentFor?.(route.origin),
        handshakeTimeout: handshakeTimeoutMs,
      },
    )
    let isOpen = false
    const gone = (): void => provider.terminate()
    socket.once('close', gone)
    provider.once('upgrade', ({ rawHeaders }) => announced.set(request, fieldLines(rawHeaders)))
    provider.once('open', () =>
      entrance.socket(socket, () => {
        isOpen = true
        // Nothing is read of it before the client's side listens.
        provider.pause()
        socket.removeListener('close', gone)
        if (socket.destroyed) return gone()
        this.#accept(request, socket, head, provider, route)
      }),
    )
    provider.once('unexpected-response', (asked, answer) => {
      isOpen = true
      const chunks: Array<Buffer> = []
      let bytes = 0
      const done = (): void => {
        asked.destroy()
        const status = answer.statusCode ?? 502
        if (!isForClient(status)) return refuse(socket, notOverWebSocket)
        passOn(socket, status, answer.rawHeaders, Buffer.concat(chunks))
      }
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= mostRefusalBytes) chunks.push(chunk)
        else answer.destroy()
      })
      answer.once('close', done)
    })
    provider.on('error', (error) => {
      if (isOpen) return
      isOpen = true
      if (socket.destroyed) return
      calls.counters.upstreamFailures += 1
      refuse(socket, unreachable(route.upstream.name, codeOf(error)))
    })
  }

  #accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    provider: WebSocket,
    route: Route & { readonly holder: Token | null },
  ): void {
    chosen.set(request, provider.protocol)
    // A handshake that cannot be is answered by the library, and ends the socket.
    socket.once('close', () => provider.terminate())
    this.#server.handleUpgrade(request, socket, head, (client) => {
      const { calls, held, entrance } = this.#ports
      calls.counters.sockets += 1
      const carried = new CarriedSocket(
        {
          calls,
          held,
          entrance,
          provider: route.upstream.provider,
          model: new URLSearchParams(route.query ?? '').get('model'),
          asked: (message, model) => this.#asked(request, route, message, model),
          closed: () => {
            this.#sockets.delete(carried)
            if (this.#sockets.size === 0) this.#emptied()
          },
        },
        client,
        provider,
      )
      this.#sockets.add(carried)
      provider.resume()
      if (this.#isClosing) carried.drain()
    })
  }

  #asked(
    request: IncomingMessage,
    route: Route & { readonly holder: Token | null },
    message: HeldBody,
    model: string,
  ): ReturnType<ConstructorParameters<typeof CarriedSocket>[0]['asked']> {
    const { scopesLimit } = this.#ports
    const found = this.#ports.routing.routes.rowOf(route.path)
    const arrival = {
      route,
      found,
      request: { headers: callFields(request), rawHeaders: request.rawHeaders },
    }
    const asked = askedCall(
      this.#ports,
      { ...arrival, holder: route.holder },
      { held: message, plain: message.buffer },
      model,
    )
    if (asked === 'too-many') return tooManyScopes(scopesLimit)
    return isProblems(asked) ? badRequest(asked) : asked
  }
}

/** A token of RFC 9110 section 5.6.2. */
const protocolName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const badProtocol = {
  field: 'sec-websocket-protocol',
  expected: 'names, each once, with commas between',
  got: 'something else',
}

/** What the provider's handshake said, for the client's. */
const chosen = new WeakMap<IncomingMessage, string>()
const announced = new WeakMap<IncomingMessage, ReadonlyArray<string>>()

const protocolsOf = ({ headers }: IncomingMessage): Array<string> =>
  (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

const ofHandshake = /^sec-websocket-/i

const handshakeFields = (
  { rawHeaders }: IncomingMessage,
  honoursPriority: boolean,
): Record<string, Array<string>> => {
  const fields = requestFields(rawHeaders, { honoursPriority, keepLength: false })
  const headers: Record<string, Array<string>> = Object.create(null)
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] as string
    if (ofHandshake.test(name) || name === 'accept-encoding') continue
    headers[name] = [...(headers[name] ?? []), fields[index + 1] as string]
  }
  return headers
}

/** An id in the handshake's fields is that of no single call; browsers hand the key over as a protocol. */
const callFields = ({ headers }: IncomingMessage): IncomingMessage['headers'] => {
  const { 'idempotency-key': _, ...fields } = headers
  const key = /\bopenai-insecure-api-key\.([^,\s]+)/.exec(headers['sec-websocket-protocol'] ?? '')?.[1]
  return key === undefined ? fields : { authorization: `Bearer ${key}`, ...fields }
}

const fieldLines = (rawHeaders: ReadonlyArray<string>): ReadonlyArray<string> => {
  const fields = answerFields(rawHeaders, {})
  const lines: Array<string> = []
  for (let index = 0; index + 1 < fields.length; index += 2)
    if (!ofHandshake.test(fields[index] as string)) lines.push(`${fields[index]}: ${fields[index + 1]}`)
  return lines
}
