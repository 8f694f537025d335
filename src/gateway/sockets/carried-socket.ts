/**
 * A client's WebSocket and the provider's, carried through: every message passes as it came, in order.
 * One that asks for a response waits for its permit, and what comes behind it waits with it. Between
 * responses the connection holds no place.
 */
import type { RawData, WebSocket } from 'ws'
import type { AdmissionError } from '../../host/errors.ts'
import type { AskedCall } from '../calls/asked-call.ts'
import type { CallPorts } from '../calls/call-ports.ts'
import type { EntranceGuard } from '../entrance/guarded.ts'
import { HeldBody, type HeldBytes } from '../passage/body.ts'
import { admissionProblem, longWait } from '../problem/call-problems.ts'
import { closing, full } from '../problem/gateway-problems.ts'
import type { Problem } from '../problem/problem.ts'
import { causeOf, endOf, endsResponse, modelIn, parsed, responseIdIn, typeOf } from './events.ts'
import { SocketCall, type SocketCallEvents } from './socket-call.ts'

export interface SocketPorts {
  readonly calls: CallPorts
  readonly held: HeldBytes
  readonly entrance: EntranceGuard
  readonly provider: string
  /** The model of the session, as the target names it; null where it does not. */
  readonly model: string | null
  /** The call of a message; what is wrong with it. */
  readonly asked: (message: HeldBody, model: string) => AskedCall | Problem
  /** Both connections are closed, and nothing of them is left. */
  readonly closed: () => void
}

interface Message {
  readonly body: HeldBody
  readonly isBinary: boolean
}

/** Bytes that may wait for a reader before the other side is asked to pause. */
const mostUnreadBytes = 1024 * 1024

/** Close codes of RFC 6455 section 7.4.1. */
const goingAway = 1001
const internalError = 1011
const tryAgainLater = 1013

const bytesOf = (data: RawData): Buffer => {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}

export class CarriedSocket {
  readonly #ports: SocketPorts
  readonly #client: WebSocket
  readonly #provider: WebSocket
  /** From the client, in order; the first may be waiting for its permit. */
  readonly #queue: Array<Message> = []
  /** Not over: the one that was asked for first comes first. */
  readonly #calls = new Set<SocketCall>()
  /** What comes behind its message waits with it. */
  #waiting: SocketCall | null = null
  /** Responses that the provider has begun by itself, as at the end of a turn that it detects. */
  readonly #foreign = new Set<string>()
  #model: string | null
  #isClosed = false
  #isDraining = false
  #cancelStall: (() => void) | null = null

  constructor(ports: SocketPorts, client: WebSocket, provider: WebSocket) {
    this.#ports = ports
    this.#client = client
    this.#provider = provider
    this.#model = ports.model
    const guarded = (work: () => void): void => ports.entrance.run(work, () => this.end(internalError))
    client.on('message', (data, isBinary) => guarded(() => this.#fromClient(bytesOf(data), isBinary)))
    provider.on('message', (data, isBinary) => guarded(() => this.#fromProvider(bytesOf(data), isBinary)))
    client.on('close', (code, reason) => this.#close(provider, code, reason, 'cancelled'))
    provider.on('close', (code, reason) => this.#close(client, code, reason, 'failed'))
    // What went wrong is followed by a close.
    client.on('error', () => {})
    provider.on('error', () => {})
  }

  /** Responses that wait or are under way. */
  get liveCalls(): number {
    return this.#calls.size
  }

  get #underWay(): ReadonlyArray<SocketCall> {
    return [...this.#calls].filter(({ isUnderWay }) => isUnderWay)
  }

  /** The gateway closes: at once where nothing is under way, else behind the last response. */
  drain(): void {
    this.#isDraining = true
    for (const call of [...this.#calls]) if (!call.isUnderWay) this.#refuse(call, closing)
    if (this.#calls.size === 0) this.end(goingAway)
  }

  end(code: number): void {
    this.#client.close(code)
    this.#close(this.#provider, code, Buffer.alloc(0), 'cancelled')
  }

  #fromClient(bytes: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return
    if (!this.#ports.held.take(bytes.length)) {
      this.#ports.calls.counters.full += 1
      this.#tell(full(this.#ports.held.limit), null)
      return this.end(tryAgainLater)
    }
    this.#queue.push({ body: new HeldBody(bytes, this.#ports.held), isBinary })
    this.#pump()
  }

  /** Sends what may be sent, up to a message that asks for a response. */
  #pump(): void {
    while (this.#waiting === null && !this.#isClosed) {
      const message = this.#queue.shift()
      if (message === undefined) return
      const { body, isBinary } = message
      if (!isBinary && typeOf(body.buffer) === 'response.create') this.#ask(body)
      else {
        this.#provider.send(body.buffer, { binary: isBinary })
        body.release()
      }
    }
  }

  #ask(body: HeldBody): void {
    const { calls, asked } = this.#ports
    const message = parsed(body.buffer)
    const eventId = typeof message['event_id'] === 'string' ? message['event_id'] : null
    const found = asked(body, modelIn(message) ?? this.#model ?? 'session')
    if ('title' in found) {
      body.release()
      return this.#tell(found, eventId)
    }
    calls.counters.calls += 1
    const call = new SocketCall(calls, found, { body, eventId }, this.#events)
    this.#waiting = call
    this.#calls.add(call)
    call.ask()
  }

  readonly #events: SocketCallEvents = {
    send: (call) => {
      if (this.#isClosed) return call.letGo('cancelled', 'the client went away')
      this.#provider.send(call.message.buffer, { binary: false })
      if (this.#waiting !== call) return
      this.#waiting = null
      this.#pump()
    },
    refused: (call, error) => this.#refuse(call, this.#problemOf(call, error)),
    hopeless: (call, untilMs) => {
      this.#ports.calls.counters.toldToWait += 1
      const { name } = call.asked.runner
      this.#refuse(call, longWait(name, untilMs - this.#ports.calls.clock.now()))
    },
    takenBack: (call, error) => {
      // A response under way cannot be taken back on its own: the connection is what the provider bills by.
      call.letGo('cancelled', error.message)
      this.#calls.delete(call)
      this.#tell(this.#problemOf(call, error), call.eventId)
      this.end(tryAgainLater)
    },
    keepAlive: () => this.#client.ping(),
  }

  #problemOf({ asked }: SocketCall, error: AdmissionError): Problem {
    const { wait } = asked.runner.context
    return admissionProblem(error, wait === null ? 0 : wait.untilMs - this.#ports.calls.clock.now())
  }

  #refuse(call: SocketCall, problem: Problem): void {
    call.letGo('cancelled', problem.detail)
    this.#calls.delete(call)
    this.#tell(problem, call.eventId)
    if (this.#waiting !== call) return
    this.#waiting = null
    this.#pump()
  }

  /** An error event as the provider writes it. The connection stays. */
  #tell({ name, status, detail, retryAfterS }: Problem, eventId: string | null): void {
    const type = `rightofway_${name.replaceAll('-', '_')}`
    const headers = retryAfterS === null ? {} : { headers: { 'retry-after': String(retryAfterS) } }
    const error = { type, code: type, message: detail, ...(eventId === null ? {} : { event_id: eventId }) }
    this.#client.send(JSON.stringify({ type: 'error', status, error, ...headers }))
  }

  #fromProvider(bytes: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return
    const type = isBinary ? '' : typeOf(bytes)
    if (type === 'session.created' || type === 'session.updated')
      this.#model = modelIn(parsed(bytes)) ?? this.#model
    else if (type === 'response.created') {
      const id = responseIdIn(parsed(bytes))
      const call = this.#underWay.find(({ hasBegun }) => !hasBegun)
      if (call !== undefined) call.begun(id)
      else if (id !== null) this.#foreign.add(id)
    } else if ((endsResponse(type) || type === 'error') && this.#isHeldBack(type, parsed(bytes))) return
    this.#client.send(bytes, { binary: isBinary }, () => this.#taken())
    if (this.#client.bufferedAmount > mostUnreadBytes) this.#stalled()
    if (this.#isDraining && this.liveCalls === 0) this.end(goingAway)
  }

  /** Settles what has ended. True for a refusal that admission mends: the client does not see it. */
  #isHeldBack(type: string, message: ReturnType<typeof parsed>): boolean {
    const call = type === 'error' ? this.#failedBy(message) : this.#endedBy(message)
    if (call === null) return false
    const { calls, provider } = this.#ports
    if (call.ended(endOf(provider, message, calls.clock.now())) === 'waiting') return true
    this.#calls.delete(call)
    return false
  }

  #endedBy(message: ReturnType<typeof parsed>): SocketCall | null {
    const id = responseIdIn(message)
    if (id !== null && this.#foreign.delete(id)) return null
    const calls = this.#underWay
    const named = id === null ? undefined : calls.find(({ responseId }) => responseId === id)
    return named ?? calls.find(({ responseId }) => id === null || responseId === null) ?? null
  }

  #failedBy(message: ReturnType<typeof parsed>): SocketCall | null {
    const cause = causeOf(message)
    const calls = this.#underWay
    if (cause !== null) return calls.find(({ eventId }) => eventId === cause) ?? null
    return calls.find(({ hasBegun }) => !hasBegun) ?? calls[0] ?? null
  }

  /** The client does not read: the provider is asked to pause, and after a while both are let go of. */
  #stalled(): void {
    if (this.#cancelStall !== null) return
    const { clock, writeStallMs, counters } = this.#ports.calls
    this.#provider.pause()
    this.#cancelStall = clock.after(writeStallMs, () => {
      this.#cancelStall = null
      counters.stalledClients += 1
      this.#client.terminate()
    })
  }

  #taken(): void {
    if (this.#cancelStall === null || this.#client.bufferedAmount > mostUnreadBytes / 2) return
    this.#cancelStall()
    this.#cancelStall = null
    this.#provider.resume()
  }

  /** One side has closed: so does the other, with the same code, and what is not over ends. */
  #close(other: WebSocket, code: number, reason: Buffer, outcome: 'cancelled' | 'failed'): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#cancelStall?.()
    for (const call of [...this.#calls]) call.letGo(outcome, 'the connection has closed')
    this.#calls.clear()
    this.#waiting = null
    for (const { body } of this.#queue) body.release()
    // A code that only says how a connection ended cannot be sent.
    if (code === 1005) other.close()
    else if (code === 1006 || code === 1015) other.terminate()
    else other.close(code, reason)
    this.#ports.closed()
  }
}
