/** The client's side of a call. Every end of a call is written here, with the gateway's own header fields. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../clock.ts'
import { isEncoded } from '../answers/decoding.ts'
import { problemEvent, refusalEvent } from '../answers/error-event.ts'
import { isEventStream } from '../answers/reader.ts'
import { refusalBody } from '../answers/reading.ts'
import type { Wire } from '../answers/wire.ts'
import { WriteStall } from '../calls/write-stall.ts'
import { type Problem, sendProblem } from '../problem/problem.ts'
import { answerFields } from './forward-headers.ts'
import { sendInterim, sendProcessing } from './interim.ts'
import type { AnswerHead } from './transport.ts'

/** The facts of a call that its client gets as header fields. */
export interface AnswerTags {
  readonly callId: string
  /** In queues, all attempts together, milliseconds. */
  readonly waitedMs: number
  /** Dispatches to the provider; 0 when there was none. */
  readonly attempts: number
  /** Null when there is nothing to say. */
  readonly warning: string | null
}

export const fieldsOf = ({
  callId,
  waitedMs,
  attempts,
  warning,
}: AnswerTags): Readonly<Record<string, string>> => ({
  'x-rightofway-call-id': callId,
  'x-rightofway-waited-ms': String(Math.max(0, Math.round(waitedMs))),
  'x-rightofway-attempts': String(attempts),
  ...(warning === null ? {} : { 'x-rightofway-warning': warning }),
})

export interface ClientPorts {
  readonly clock: Clock
  /** How long the client may stay connected without reading, milliseconds. */
  readonly writeStallMs: number
  readonly wire: Wire
  /** Of the upstream, without its query. */
  readonly path: string
  /** The client went away, or has all of its answer. */
  readonly closed: () => void
  /** It takes more again. */
  readonly drained: () => void
  /** It stays connected and does not read. */
  readonly stalled: () => void
}

/** A comment of an event stream. Clients skip it. */
const comment = ': the call waits for its turn\n\n'

export class ClientAnswer {
  readonly #request: IncomingMessage
  readonly response: ServerResponse
  readonly #stall: WriteStall
  readonly #ports: ClientPorts
  #begun = false
  /** The head of an event stream was sent before there was an answer, so that comments could follow. */
  #isOpened = false

  constructor(request: IncomingMessage, response: ServerResponse, ports: ClientPorts) {
    const { clock, writeStallMs, closed, drained, stalled } = ports
    this.#request = request
    this.response = response
    this.#ports = ports
    this.#stall = new WriteStall(response, clock, writeStallMs, stalled)
    response.once('close', closed)
    response.on('drain', drained)
  }

  /** All of the answer has been given away. */
  get isWhole(): boolean {
    return this.response.writableFinished
  }

  interim(head: AnswerHead): void {
    sendInterim(this.#request, this.response, head)
  }

  /** The connection is kept from looking dead, by an interim answer. */
  processing(): void {
    sendProcessing(this.#request, this.response)
  }

  /** The same by a comment of an event stream, whose head is sent with the first one. */
  comment(tags: AnswerTags): void {
    if (this.#begun || this.response.destroyed || this.response.writableNeedDrain) return
    if (!this.#isOpened) {
      this.#isOpened = true
      this.response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
        // nginx would else keep the comments until its buffer is full.
        'x-accel-buffering': 'no',
        ...fieldsOf(tags),
      })
    }
    this.response.write(comment)
  }

  /** Something was written that the client does not take yet. */
  blocked(): void {
    this.#stall.blocked()
  }

  /** Everything has been written. Bytes that the client does not take in time are dropped. */
  written(): void {
    this.#stall.ended()
  }

  /** Something of the answer has reached the client: nothing can be taken back any more. Comments are no part of it. */
  get begun(): boolean {
    return this.#begun
  }

  /** False when the answer cannot follow the head that the client already has; nothing is written then. */
  head(
    { status, headers, rawHeaders }: AnswerHead,
    tags: AnswerTags,
    own: Readonly<Record<string, string>> = {},
  ): boolean {
    if (this.#isOpened) {
      const follows = status < 300 && isEventStream({ status, headers, rawHeaders })
      if (!follows || isEncoded(headers['content-encoding'])) return false
      this.#begun = true
      return true
    }
    this.#begun = true
    // What the gateway says itself stands instead of what the upstream said under the same name.
    const kept = rawHeaders.filter(
      (_, index) => !((rawHeaders[index - (index % 2)] as string).toLowerCase() in own),
    )
    this.response.writeHead(status, answerFields(kept, { ...own, ...fieldsOf(tags) }))
    return true
  }

  /** An answer of the provider that is no success: unchanged, or as an error event behind comments. */
  whole(head: AnswerHead, body: Buffer, tags: AnswerTags, own: Readonly<Record<string, string>> = {}): void {
    if (this.head(head, tags, own)) this.response.end(body)
    else {
      const retryAfter = own['retry-after'] ?? head.headers['retry-after'] ?? null
      const { wire, path } = this.#ports
      this.#endWithEvent(
        refusalEvent(wire, path, { status: head.status, body: refusalBody(head, body), retryAfter }),
      )
    }
    this.written()
  }

  problem(problem: Problem, tags: AnswerTags): void {
    if (this.#begun) return
    if (this.#isOpened) return this.#endWithEvent(problemEvent(this.#ports.wire, this.#ports.path, problem))
    this.#begun = true
    sendProblem(this.response, problem, fieldsOf(tags))
  }

  #endWithEvent(event: string | null): void {
    this.#begun = true
    this.breakOff(event)
  }

  /** Ends an answer that has begun, with a last event, or (null) with a broken connection, which nobody takes for an end. */
  breakOff(event: string | null): void {
    if (event === null) this.response.destroy()
    else this.response.end(event)
  }
}
