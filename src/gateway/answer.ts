/** The client's side of a call: whatever ends it is written here, with what the gateway has to say about it. */
import type { ServerResponse } from 'node:http'
import { answerFields } from './forward-headers.ts'
import { type Problem, sendProblem } from './problem.ts'
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

const fieldsOf = ({ callId, waitedMs, attempts, warning }: AnswerTags): Readonly<Record<string, string>> => ({
  'x-rightofway-call-id': callId,
  'x-rightofway-waited-ms': String(Math.max(0, Math.round(waitedMs))),
  'x-rightofway-attempts': String(attempts),
  ...(warning === null ? {} : { 'x-rightofway-warning': warning }),
})

export class ClientAnswer {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Something has reached the client: nothing can be taken back any more. */
  get begun(): boolean {
    return this.#response.headersSent
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
    this.#response.writeHead(status, answerFields(kept, { ...own, ...fieldsOf(tags) }))
  }

  /** An answer of the provider, unchanged. */
  whole(head: AnswerHead, body: Buffer, tags: AnswerTags, own: Readonly<Record<string, string>> = {}): void {
    this.head(head, tags, own)
    this.#response.end(body)
  }

  problem(problem: Problem, tags: AnswerTags): void {
    sendProblem(this.#response, problem, fieldsOf(tags))
  }

  /** Ends an answer that has begun, with a last event, or (null) with a broken connection, which nobody takes for an end. */
  breakOff(event: string | null): void {
    if (event === null) this.#response.destroy()
    else this.#response.end(event)
  }
}
