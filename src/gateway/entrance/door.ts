/** Where a request goes: to its own route, past admission, or through it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { kernelOf } from '../../host/internal.ts'
import { LimitReader } from '../answers/reading.ts'
import { ProxiedCall } from '../calls/call.ts'
import type { CallPorts } from '../calls/call-ports.ts'
import { KeptPlaces } from '../calls/kept-places.ts'
import { WaitAnswers } from '../calls/patience.ts'
import { StatedWaits } from '../calls/stated-waits.ts'
import type { KeepAlive } from '../config/config.ts'
import type { Router } from '../config/upstreams.ts'
import type { TokenEstimator } from '../identity/estimator.ts'
import { textMember } from '../identity/members.ts'
import { type HeldBody, HeldBytes, isUpload, readBody } from '../passage/body.ts'
import { forward, type PassagePorts } from '../passage/forward.ts'
import type { Transport } from '../passage/transport.ts'
import { closing, full, journalFailed, tooManyScopes } from '../problem/gateway-problems.ts'
import { badRequest, type Problem, sendProblem } from '../problem/problem.ts'
import {
  badTarget,
  noTrace,
  notFound,
  notOperator,
  signedForHost,
  twoHosts,
  unclearLength,
  unknownScope,
} from '../problem/request-problems.ts'
import type { Routing } from '../routing/routing.ts'
import { SocketDoor } from '../sockets/socket-door.ts'
import { type Arrival, type AskedBody, askedCall } from './asking.ts'
import { Bodies } from './bodies.ts'
import { isProblems } from './call-headers.ts'
import { type Doorkeeper, isToken } from './doorkeeper.ts'
import type { EntranceGuard } from './guarded.ts'
import { Health } from './health.ts'
import { type LanesPorts, lanesOf, sendJson } from './lanes.ts'
import { isOperator, releaseScope } from './operator.ts'
import { isSignedForHost } from './signed.ts'
import { hostsIn, targetOf } from './target.ts'

export interface DoorPorts extends LanesPorts {
  readonly router: Router
  readonly routing: Routing
  /** Keys the fingerprints of clients' keys. */
  readonly secret: string
  /** Hears of every request that is refused before it becomes a call. */
  readonly refused: (problem: Problem) => void
  readonly transport: Transport
  readonly estimator: TokenEstimator
  readonly entrance: EntranceGuard
  readonly doorkeeper: Doorkeeper
  readonly operatorToken: string
  readonly bodyLimitBytes: number
  readonly heldBodiesLimitBytes: number
  readonly scopesLimit: number
  readonly writeStallMs: number
  /** 0 for none. */
  readonly interimAnswersMs: number
  readonly keepAlive: KeepAlive
}

export class Door {
  readonly #ports: DoorPorts
  readonly #callPorts: CallPorts
  /** Takes connections that leave HTTP. */
  readonly sockets: SocketDoor
  readonly #live = new Set<ProxiedCall>()
  readonly #places: KeptPlaces
  readonly #startedAtMs: number
  readonly #health: Health
  /** Bodies that arrive or are kept: each until it cannot be sent again, or its client is away. */
  readonly #held: HeldBytes
  readonly #bodies: Bodies
  #closing = false
  #emptied: () => void = () => {}

  constructor(ports: DoorPorts) {
    const { transport, estimator, counters, host, scopes } = ports
    this.#ports = ports
    this.#places = new KeptPlaces(kernelOf(host).clock)
    this.#held = new HeldBytes(ports.heldBodiesLimitBytes)
    this.#health = new Health(host)
    this.#bodies = new Bodies({
      held: this.#held,
      limitBytes: ports.bodyLimitBytes,
      clock: kernelOf(host).clock,
      writeStallMs: ports.writeStallMs,
      entrance: ports.entrance,
    })
    this.#callPorts = {
      transport,
      estimator,
      counters,
      scopes,
      limits: new LimitReader(),
      clock: kernelOf(host).clock,
      places: this.#places,
      waitAnswers: new WaitAnswers(),
      writeStallMs: ports.writeStallMs,
      keepAliveMs: ports.interimAnswersMs,
      keepAlive: ports.keepAlive,
      statedWaits: new StatedWaits(),
    }
    this.sockets = new SocketDoor({
      ...ports,
      calls: this.#callPorts,
      held: this.#held,
    })
    scopes.whenForgotten((scope) => {
      this.#callPorts.limits.forget(scope)
      this.#callPorts.waitAnswers.forget(scope)
      estimator.forget?.(scope)
    })
    this.#startedAtMs = kernelOf(host).clock.now()
  }

  get liveCalls(): number {
    return this.#live.size + this.sockets.liveCalls
  }

  /** Never throws: one request must not be able to end the process. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    this.#ports.counters.requests += 1
    this.#guarded(response, () => this.#route(request, response))
  }

  /** Takes no more calls, and resolves when none is left; after `graceMs` those that are left are cut. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    this.#places.close()
    const socketsClosed = this.sockets.close(graceMs)
    if (this.#live.size > 0 && graceMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs)
        this.#emptied = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (const call of [...this.#live]) call.cut()
    await socketsClosed
  }

  #guarded(response: ServerResponse, work: () => void): void {
    this.#ports.entrance.request(response, work)
  }

  #route(request: IncomingMessage, response: ServerResponse): void {
    const target = targetOf(request.url)
    if (target === null) return this.#refuse(request, response, badTarget)
    // Chunks came with HTTP/1.1; in a request of 1.0 nobody knows where its body ends (RFC 9112 section 6.1).
    if (request.httpVersion === '1.0' && request.headers['transfer-encoding'] !== undefined)
      return sendProblem(response, unclearLength, { connection: 'close' })
    if (request.method === 'TRACE') return this.#refuse(request, response, noTrace)
    if (hostsIn(request) > 1) return this.#refuse(request, response, twoHosts)
    const { path } = target
    const { doorkeeper } = this.#ports
    const stranger = doorkeeper.refuses(request)
    if (stranger !== null) return this.#refuse(request, response, stranger)
    if (path === '/healthz') return this.#answerHealth(response)
    if (path === '/lanes/release' && request.method === 'POST') return this.#release(request, response)
    const holder = doorkeeper.holderOf(request)
    if (holder !== null && !isToken(holder)) return this.#refuse(request, response, holder)
    if (path === '/lanes') return sendJson(response, this.#lanes)
    const route = this.#ports.router.route(target)
    if (route === null) return this.#refuse(request, response, notFound(this.#ports.router.routes))
    if (this.#closing) return sendProblem(response, closing, { connection: 'close' })
    if (isSignedForHost(request.headers, target.query)) return this.#refuse(request, response, signedForHost)
    const found = this.#ports.routing.routes.rowOf(route.path)
    const isCall = request.method === 'POST' && found.row.kind === 'generating'
    // An upload that makes no model work streams through.
    if (request.method !== 'POST' || (!isCall && isUpload(request))) {
      this.#ports.counters.forwarded += 1
      return forward(this.#passage, route, request, response, null)
    }
    const arrival: Arrival = { route, found, request, response, holder }
    this.#bodies.read(arrival, (body) =>
      this.#guarded(response, () => {
        if (body === 'no-room') this.#full(response)
        else if ('problem' in body) this.#refuse(request, response, body.problem, body.fields)
        else this.#admit(arrival, body)
      }),
    )
  }

  #answerHealth(response: ServerResponse): void {
    const { failure } = kernelOf(this.#ports.host)
    if (failure !== null) return sendProblem(response, journalFailed(failure.message))
    void this.#health.answer(this.#closing).then((answer) => sendJson(response, answer))
  }

  /** `{"scope": name}`, from the operator: ends the waits that the provider imposed. */
  #release(request: IncomingMessage, response: ServerResponse): void {
    const { host, operatorToken } = this.#ports
    if (!isOperator(request, operatorToken)) return this.#refuse(request, response, notOperator)
    readBody(request, 65_536, this.#held, (body) =>
      this.#guarded(response, () => {
        if (body === 'no-room') return this.#full(response)
        const scope = body === 'too-large' ? null : textMember(body.buffer, 'scope')
        if (body !== 'too-large') body.release()
        if (scope === null) {
          const problem = {
            field: 'scope',
            expected: 'the name of a scope, as a JSON string',
            got: 'nothing of the kind',
          }
          return sendProblem(response, badRequest([problem]))
        }
        const release = releaseScope(host, scope)
        if ('unknown' in release) sendProblem(response, unknownScope(release.unknown, release.known))
        else sendJson(response, release)
      }),
    )
  }

  get #lanes(): object {
    const { size: sockets } = this.sockets
    const [keptPlaces, heldBytes] = [this.#places.size, this.#held.bytes]
    const { liveCalls } = this
    return lanesOf(this.#ports, { startedAt: this.#startedAtMs, liveCalls, sockets, keptPlaces, heldBytes })
  }

  get #passage(): PassagePorts {
    const { transport, counters, host, writeStallMs } = this.#ports
    return { transport, counters, clock: kernelOf(host).clock, writeStallMs }
  }

  #full(response: ServerResponse): void {
    this.#ports.counters.full += 1
    const problem = full(this.#held.limit)
    this.#ports.refused(problem)
    sendProblem(response, problem)
  }

  #admit(arrival: Arrival, body: AskedBody): void {
    const { route, request, response } = arrival
    const { counters, scopesLimit } = this.#ports
    if (arrival.found.row.kind !== 'generating') {
      counters.forwarded += 1
      // Only a call's body may still be arriving.
      return forward(this.#passage, route, request, response, body.held as HeldBody)
    }
    const asked = askedCall(this.#ports, arrival, body)
    if (isProblems(asked)) return this.#refuse(request, response, badRequest(asked))
    if (asked === 'too-many') {
      counters.full += 1
      const problem = tooManyScopes(scopesLimit)
      this.#ports.refused(problem)
      return sendProblem(response, problem)
    }
    counters.calls += 1
    if (asked.sdkRetries > 0) counters.sdkRetries += 1
    if (asked.warning !== null) counters.unknownPriority += 1
    const left = this.#places.take(asked)
    if (left !== null) {
      counters.joinedRetries += 1
      return left.takeOver(asked, request, response)
    }
    const call = new ProxiedCall(this.#callPorts, asked, request, response, (ended) => {
      this.#live.delete(ended)
      if (this.#closing && this.#live.size === 0) this.#emptied()
    })
    this.#live.add(call)
    call.start()
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    problem: Problem,
    own: Readonly<Record<string, string>> = {},
  ): void {
    this.#ports.refused(problem)
    this.#ports.counters.invalid += 1
    // What is left of the body is read and dropped, so that the client sees the answer.
    request.resume()
    sendProblem(response, problem, own)
  }
}
