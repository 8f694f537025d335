/** Requests that need no admission: passed on and back as they are. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { answerFields, requestFields } from './forward-headers.ts'
import { sendProblem, unreachable } from './problem.ts'
import type { AnswerHead, AnswerListener, Transport } from './transport.ts'
import { pathAndQuery, type Route } from './upstreams.ts'

/** Longest wait for the head of such an answer, milliseconds: none of them waits for a model. */
const headTimeoutMs = 60_000

/** `body` is what was read of the request already; null when it is still to come. */
export const forward = (
  transport: Transport,
  route: Route,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer | null,
): void => {
  const streamed = body === null ? bodyStream(request) : null
  const { upstream, origin } = route
  const exchange = transport.send(
    {
      method: request.method ?? 'GET',
      origin,
      path: pathAndQuery(route),
      headers: requestFields(request.rawHeaders, request.headers.connection, {
        honoursPriority: upstream.honoursPriority,
        keepLength: streamed !== null,
      }),
      body: body ?? streamed,
      headTimeoutMs,
    },
    new Passage(upstream.name, response),
  )
  response.on('drain', () => exchange.resume())
  response.once('close', () => {
    if (!response.writableFinished) exchange.abort(new Error('the client went away'))
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
  readonly #upstream: string
  readonly #response: ServerResponse

  constructor(upstream: string, response: ServerResponse) {
    this.#upstream = upstream
    this.#response = response
  }

  head({ status, headers, rawHeaders }: AnswerHead): void {
    this.#response.writeHead(status, answerFields(rawHeaders, headers.connection, {}))
  }

  bytes(chunk: Buffer): boolean {
    return this.#response.write(chunk)
  }

  end(): void {
    this.#response.end()
  }

  failed(error: Error): void {
    if (this.#response.headersSent) return void this.#response.destroy()
    const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
    sendProblem(this.#response, unreachable(this.#upstream, code), { connection: 'close' })
  }
}
