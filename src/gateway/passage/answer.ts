/** The client's side of a call: whatever ends it is written here, with what the gateway has to say about it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../clock.ts'
import { WriteStall } from '../calls/write-stall.ts'
import { type Problem, sendProblem } from '../problem/problem.ts'
import { answerFields } from './forward-headers.ts'
import { sendInterim, sendProcessing } from './interim.ts'
import type { AnswerHead } from './transport.ts'

/** What the client is told in header fields. */
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
  /** The client went away, or has all of its answer. */
  readonly closed: () => void
  /** It takes more again. */
  readonly drained: () => void
  /** It stays connected and does not read. */
  readonly stalled: () => void
}

export class ClientAnswer {
  readonly #request: IncomingMessage
  readonly response: ServerResponse
  readonly #stall: WriteStall

  constructor(request: IncomingMessage, response: ServerResponse, ports: ClientPorts) {
    const { clock, writeStallMs, closed, drained, stalled } = ports
    this.#request = request
    this.response = response
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

  /** The connection is kept from looking dead. */
  processing(): void {
    sendProcessing(this.#request, this.response)
  }

  /** Something was written that the client does not take yet. */
  blocked(): void {
    this.#stall.blocked()
  }

  /** All has been written: what is not taken in time is let go of. */
  written(): void {
    this.#stall.ended()
  }

  /** Something has reached the client: nothing can be taken back any more. */
  get begun(): boolean {
    return this.response.headersSent
  }

  head(
    { status, rawHeaders }: AnswerHead,
    tags: AnswerTags,
    own: Readonly<Record<string, string>> = {},
  ): void {
    // What the gateway says itself stands instead of what the upstream said under the same name.
    const kept = rawHeaders.filter(
      (_, index) => !((rawHeaders[index - (index % 2)] as string).toLowerCase() in own),
    )
    this.response.writeHead(status, answerFields(kept, { ...own, ...fieldsOf(tags) }))
  }

  /** An answer of the provider, unchanged. */
  whole(head: AnswerHead, body: Buffer, tags: AnswerTags, own: Readonly<Record<string, string>> = {}): void {
    this.head(head, tags, own)
    this.response.end(body)
    this.written()
  }

  problem(problem: Problem, tags: AnswerTags): void {
    sendProblem(this.response, problem, fieldsOf(tags))
  }

  /** Ends an answer that has begun, with a last event, or (null) with a broken connection, which nobody takes for an end. */
  breakOff(event: string | null): void {
    if (event === null) this.response.destroy()
    else this.response.end(event)
  }
}
