/** Requests that need no admission: passed on and back as they are. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { WriteStall } from '../calls/write-stall.ts'
import type { Counters } from '../config/counters.ts'
import { pathAndQuery, type Route } from '../config/upstreams.ts'
import { codeOf, unreachable } from '../problem/call-problems.ts'
import { sendProblem } from '../problem/problem.ts'
import type { HeldBody } from './body.ts'
import { answerFields, requestFields } from './forward-headers.ts'
import { endWith, sendInterim } from './interim.ts'
import type { AnswerHead, AnswerListener, Transport, TransportFailure } from './transport.ts'

export interface PassagePorts {
  readonly transport: Transport
  readonly counters: Counters
  readonly clock: Clock
  readonly writeStallMs: number
}

/** Longest wait for the head of such an answer, milliseconds: none of them waits for a model. */
const headTimeoutMs = 60_000

/** `body` holds the request's bytes that were read already; null when the body is still to come. */
export const forward = (
  ports: PassagePorts,
  route: Route,
  request: IncomingMessage,
  response: ServerResponse,
  body: HeldBody | null,
): void => {
  const streamed = body === null ? bodyStream(request) : null
  const { upstream, origin } = route
  const passage = new Passage(upstream.name, request, response, body)
  const stall = new WriteStall(response, ports.clock, ports.writeStallMs, () => {
    ports.counters.stalledClients += 1
    exchange.abort()
    response.destroy()
  })
  passage.stall = stall
  const exchange = ports.transport.send(
    {
      method: request.method ?? 'GET',
      origin,
      path: pathAndQuery(route),
      headers: requestFields(request.rawHeaders, {
        honoursPriority: upstream.honoursPriority,
        keepLength: streamed !== null,
      }),
      body: body?.buffer ?? streamed,
      headTimeoutMs,
    },
    passage,
  )
  response.on('drain', () => exchange.resume())
  response.once('close', () => {
    if (!response.writableFinished) exchange.abort()
  })
}

/** Through a stream of its own: an upstream that breaks off destroys it, and must not destroy the client's connection. */
const bodyStream = (request: IncomingMessage): Readable | null => {
  const { headers } = request
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody) return request.pipe(new PassThrough())
  request.resume()
  return null
}

class Passage implements AnswerListener {
  /** It counts until the upstream answers: then it has been sent. */
  readonly #body: HeldBody | null
  /** Set before anything is heard. */
  stall: WriteStall | null = null
  readonly #upstream: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse

  constructor(upstream: string, request: IncomingMessage, response: ServerResponse, body: HeldBody | null) {
    this.#body = body
    this.#upstream = upstream
    this.#request = request
    this.#response = response
  }

  interim(head: AnswerHead): void {
    sendInterim(this.#request, this.#response, head)
  }

  head({ status, rawHeaders }: AnswerHead): void {
    this.#body?.release()
    this.#response.writeHead(status, answerFields(rawHeaders, {}))
  }

  bytes(chunk: Buffer): boolean {
    const hasRoom = this.#response.write(chunk)
    if (!hasRoom) this.stall?.blocked()
    return hasRoom
  }

  end(rawTrailers: ReadonlyArray<string>): void {
    endWith(this.#response, rawTrailers)
    this.stall?.ended()
  }

  failed({ error }: TransportFailure): void {
    if (this.#response.headersSent) return void this.#response.destroy()
    sendProblem(this.#response, unreachable(this.#upstream, codeOf(error)), { connection: 'close' })
  }
}
