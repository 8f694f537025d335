/** Where a request goes: to its own route, past admission, or through it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Call, priorityRanks } from '../../machines/index.ts'
import { noAmbient } from '../carrier/ambient.ts'
import type { LaneHost } from '../host/host.ts'
import { kernelOf } from '../host/internal.ts'
import { callOf } from '../host/request.ts'
import type { AskedCall } from './asked-call.ts'
import { mayHoldJson, readBody } from './body.ts'
import { withPriorityMember } from './body-priority.ts'
import { ProxiedCall } from './call.ts'
import { type CallHeaders, type FieldProblem, readCallHeaders } from './call-headers.ts'
import type { CallPorts } from './call-ports.ts'
import type { Counters } from './counters.ts'
import { keyOf } from './credential.ts'
import type { EstimateReading, TokenEstimator } from './estimator.ts'
import { forward } from './forward.ts'
import { requestFields } from './forward-headers.ts'
import { KeptPlaces } from './kept-places.ts'
import { maxOutputIn } from './max-output.ts'
import { modelOf, textMember } from './model-of.ts'
import { isOperator, releaseScope } from './operator.ts'
import {
  badRequest,
  closing,
  encodedBody,
  fault,
  full,
  journalFailed,
  notFound,
  notOperator,
  type Problem,
  sendProblem,
  tooLarge,
  tooManyScopes,
  unknownScope,
} from './problem.ts'
import { LimitReader } from './reading.ts'
import type { ScopeFinder } from './scopes.ts'
import type { Transport } from './transport.ts'
import type { Route, Router, Upstream } from './upstreams.ts'

export interface DoorPorts {
  readonly host: LaneHost
  readonly router: Router
  readonly upstreams: ReadonlyArray<Upstream>
  readonly scopes: ScopeFinder
  readonly transport: Transport
  readonly estimator: TokenEstimator
  /** What the estimator has learned, by scope; null when it does not tell. */
  readonly estimates: () => Readonly<Record<string, EstimateReading>> | null
  readonly counters: Counters
  readonly operatorToken: string
  readonly bodyLimitBytes: number
  readonly heldBodiesLimitBytes: number
  readonly scopesLimit: number
}

const isProblems = <A>(value: A | ReadonlyArray<FieldProblem>): value is ReadonlyArray<FieldProblem> =>
  Array.isArray(value)

const unknownPriority = 'x-resource-priority names no known class; the call counts as untagged'

export class Door {
  readonly #ports: DoorPorts
  readonly #callPorts: CallPorts
  readonly #live = new Set<ProxiedCall>()
  readonly #places: KeptPlaces
  readonly #startedAtMs: number
  /** Bodies of live calls, bytes: each is kept until its call cannot be sent again, or its client is away. */
  #heldBytes = 0
  #closing = false
  #emptied: () => void = () => {}

  constructor(ports: DoorPorts) {
    const { transport, estimator, counters, host } = ports
    this.#ports = ports
    this.#places = new KeptPlaces(kernelOf(host).clock)
    this.#callPorts = {
      transport,
      estimator,
      counters,
      limits: new LimitReader(),
      clock: kernelOf(host).clock,
      places: this.#places,
      held: (bytes) => {
        this.#heldBytes += bytes
      },
    }
    this.#startedAtMs = kernelOf(host).clock.now()
  }

  /** Never throws: one request must not be able to end the process. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    this.#ports.counters.requests += 1
    // A peer that vanishes is seen as 'close'; without a listener it would throw.
    request.on('error', () => {})
    response.on('error', () => {})
    this.#guarded(response, () => this.#route(request, response))
  }

  /** Takes no more calls, and resolves when none is left; after `graceMs` those that are left are cut. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    this.#places.close()
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
  }

  #guarded(response: ServerResponse, work: () => void): void {
    try {
      work()
    } catch {
      this.#ports.counters.faults += 1
      if (response.headersSent) response.destroy()
      else sendProblem(response, fault)
    }
  }

  #route(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? '/'
    const path = url.split('?', 1)[0]
    if (path === '/healthz') return this.#health(response)
    if (path === '/lanes') return sendJson(response, this.#lanes())
    if (path === '/lanes/release' && request.method === 'POST') return this.#release(request, response)
    const route = this.#ports.router.route(url)
    if (route === null) return this.#refuse(request, response, notFound(this.#ports.router.routes))
    if (this.#closing) return sendProblem(response, closing, { connection: 'close' })
    if (request.method !== 'POST' || !mayHoldJson(request)) {
      this.#ports.counters.forwarded += 1
      return forward(this.#ports.transport, route, request, response, null)
    }
    const encoding = request.headers['content-encoding'] ?? 'identity'
    if (encoding !== 'identity') return this.#refuse(request, response, encodedBody(encoding))
    const { bodyLimitBytes } = this.#ports
    readBody(request, bodyLimitBytes, (body) =>
      this.#guarded(response, () => {
        if (body === 'too-large') this.#refuse(request, response, tooLarge(bodyLimitBytes))
        else this.#admit(route, request, response, body)
      }),
    )
  }

  #health(response: ServerResponse): void {
    const { failure } = kernelOf(this.#ports.host)
    if (failure !== null) return sendProblem(response, journalFailed(failure.message))
    sendJson(response, { status: this.#closing ? 'closing' : 'ok' })
  }

  /** `{"scope": name}`, from the operator: ends the waits that the provider imposed. */
  #release(request: IncomingMessage, response: ServerResponse): void {
    const { host, operatorToken } = this.#ports
    if (!isOperator(request, operatorToken)) return this.#refuse(request, response, notOperator)
    readBody(request, 65_536, (body) =>
      this.#guarded(response, () => {
        const scope = body === 'too-large' ? null : textMember(body, 'scope')
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

  #admit(route: Route, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    if (response.destroyed) return
    const { counters, transport, heldBodiesLimitBytes, scopesLimit } = this.#ports
    const model = modelOf(route.path, body)
    if (model === null) {
      counters.forwarded += 1
      return forward(transport, route, request, response, body)
    }
    const asked = this.#asked(route, request, body, model)
    if (isProblems(asked)) return this.#refuse(request, response, badRequest(asked))
    if (asked === 'too-many') {
      counters.full += 1
      return sendProblem(response, tooManyScopes(scopesLimit))
    }
    if (this.#heldBytes + body.byteLength > heldBodiesLimitBytes) {
      counters.full += 1
      return sendProblem(response, full(heldBodiesLimitBytes))
    }
    counters.calls += 1
    if (asked.sdkRetries > 0) counters.sdkRetries += 1
    if (asked.warning !== null) counters.unknownPriority += 1
    const left = this.#places.take(asked)
    if (left !== null) {
      counters.joinedRetries += 1
      return left.takeOver(asked, response)
    }
    const call = new ProxiedCall(this.#callPorts, asked, response, (ended) => {
      this.#live.delete(ended)
      if (this.#closing && this.#live.size === 0) this.#emptied()
    })
    this.#live.add(call)
    call.start()
  }

  #asked(
    route: Route,
    request: IncomingMessage,
    body: Buffer,
    model: string,
  ): AskedCall | ReadonlyArray<FieldProblem> | 'too-many' {
    const { scopes, estimator } = this.#ports
    const { upstream, origin, path, query } = route
    const said = readCallHeaders(request.headers)
    if (isProblems(said)) return said
    const runner = scopes.find(upstream, keyOf(request.headers, query), model)
    if (runner === 'too-many' || isProblems(runner)) return runner
    const estimatedTokens = estimator.estimate(body, model, runner.name)
    const call = this.#callOf(said, runner.name, estimatedTokens, maxOutputIn(body))
    // Told only where it is honoured, and only what the client said.
    const isRanked = upstream.honoursPriority && upstream.wire === 'openai' && said.priorityClass !== null
    const sent = isRanked ? withPriorityMember(body, priorityRanks[call.priorityClass]) : body
    const headers = requestFields(request.rawHeaders, request.headers.connection, {
      honoursPriority: upstream.honoursPriority,
      keepLength: false,
    })
    return {
      call,
      runner,
      upstream,
      outbound: {
        method: 'POST',
        origin,
        path: query === '' ? path : `${path}?${query}`,
        headers,
        body: sent,
        headTimeoutMs: 0,
      },
      // The emulator's log judges by it whether a call was dispatched twice.
      idField: upstream.name.startsWith('emulator/') ? 'x-emulator-call-id' : null,
      bodyBytes: body.byteLength,
      estimatedTokens,
      statedId: said.id,
      sdkRetries: said.sdkRetries,
      warning: said.unknownPriority ? unknownPriority : null,
    }
  }

  #callOf(said: CallHeaders, scope: string, estimatedTokens: number, maxOutputTokens: number | null): Call {
    const { id, priorityClass, principal, lane, turnId, inputTokens, deadlineMs } = said
    return callOf(
      {
        inputTokens: inputTokens ?? estimatedTokens,
        ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
        ...(id === null ? {} : { id }),
        ...(priorityClass === null ? {} : { priorityClass }),
        ...(principal === null ? {} : { principal }),
        ...(lane === null ? {} : { lane }),
        ...(turnId === null ? {} : { turnId }),
        ...(deadlineMs === null ? {} : { deadlineAt: kernelOf(this.#ports.host).clock.now() + deadlineMs }),
      },
      scope,
      noAmbient,
    )
  }

  #refuse(request: IncomingMessage, response: ServerResponse, problem: Problem): void {
    this.#ports.counters.invalid += 1
    // What is left of the body is read and dropped, so that the client sees the answer.
    request.resume()
    sendProblem(response, problem)
  }

  /** Content-free: counts, times, names. */
  #lanes(): object {
    const { host, counters, upstreams, estimates } = this.#ports
    return {
      at: kernelOf(host).clock.now(),
      gateway: {
        startedAt: this.#startedAtMs,
        liveCalls: this.#live.size,
        keptPlaces: this.#places.size,
        heldBytes: this.#heldBytes,
        counters,
        estimates: estimates(),
        upstreams: upstreams.map(({ name, provider, wire }) => ({ name, provider, wire })),
      },
      scopes: host.status(),
    }
  }
}

const sendJson = (response: ServerResponse, value: object): void => {
  const body = JSON.stringify(value)
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(body)
}
