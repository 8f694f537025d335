/**
 * One dispatch of a call: what comes back is passed to the client as it comes when it is a success,
 * and held back while it may be a refusal that admission can still mend.
 */
import type { ServerResponse } from 'node:http'
import type { Evidence } from '../../machines/index.ts'
import { endWith } from './interim.ts'
import {
  type BodyReader,
  type BodyReading,
  capacityEvidence,
  isEventStream,
  makeBodyReader,
} from './reading.ts'
import type { AnswerHead, AnswerListener, TransportFailure } from './transport.ts'
import { EventBoundary } from './wire.ts'

/** Of an answer that is no success, what is held back at most, bytes. A longer one is passed on. */
const heldBackBytes = 1024 * 1024

/** A provider's answer that is no success, complete. */
export interface ProviderRefusal {
  readonly head: AnswerHead
  readonly body: Buffer
}

/** What happens to an attempt. */
export interface AttemptEvents {
  headSeen(head: AnswerHead): void
  /** Announces the answer, and is passed on as it is. */
  interim(head: AnswerHead): void
  /** A success is about to reach the client: write its head. */
  accepted(head: AnswerHead): void
  /** An answer that is no success, all of it; nothing has reached the client. */
  refused(refusal: ProviderRefusal, evidence: Evidence | null): void
  /** The same, but too long to hold: write its head, the rest follows. */
  refusedAtLength(head: AnswerHead, evidence: Evidence | null): void
  /** All of the answer is with the client. */
  ended(reading: BodyReading): void
  failed(failure: TransportFailure): void
}

type Mode = 'head' | 'success' | 'holding' | 'passing'

export class Attempt implements AnswerListener {
  readonly #provider: string
  readonly #response: ServerResponse
  readonly #events: AttemptEvents
  readonly #nowMs: () => number
  #mode: Mode = 'head'
  #head: AnswerHead | null = null
  #reader: BodyReader | null = null
  #boundary: EventBoundary | null = null
  #begun = false
  #held: Array<Buffer> = []
  #heldBytes = 0

  constructor(provider: string, response: ServerResponse, nowMs: () => number, events: AttemptEvents) {
    this.#provider = provider
    this.#response = response
    this.#nowMs = nowMs
    this.#events = events
  }

  /** What the answer has told so far; null before there is a successful one. */
  get reading(): BodyReading | null {
    return this.#reader?.reading() ?? null
  }

  /** Bytes of an event stream have passed, and a new event may begin here. */
  get isBetweenEvents(): boolean {
    return this.#boundary?.open ?? false
  }

  interim(head: AnswerHead): void {
    this.#events.interim(head)
  }

  head(head: AnswerHead): void {
    this.#head = head
    this.#events.headSeen(head)
    if (head.status >= 300) {
      this.#mode = 'holding'
      return
    }
    this.#mode = 'success'
    this.#reader = makeBodyReader(this.#provider, head, this.#nowMs())
    if (isEventStream(head)) this.#boundary = new EventBoundary()
  }

  bytes(chunk: Buffer): boolean {
    if (this.#mode === 'holding') return this.#hold(chunk)
    this.#begin()
    const hasRoom = this.#response.write(chunk)
    this.#reader?.push(chunk)
    this.#boundary?.push(chunk)
    return hasRoom
  }

  end(rawTrailers: ReadonlyArray<string>): void {
    if (this.#mode === 'holding') {
      const body = Buffer.concat(this.#held)
      this.#events.refused({ head: this.#head as AnswerHead, body }, this.#evidence(body))
      return
    }
    this.#begin()
    endWith(this.#response, rawTrailers)
    this.#reader?.end()
    this.#events.ended(this.#reader?.reading() ?? { usage: null, evidence: null })
  }

  failed(failure: TransportFailure): void {
    this.#events.failed(failure)
  }

  // The head waits for the first byte: both travel in one packet, and until then the call can still be taken back.
  #begin(): void {
    if (this.#begun) return
    this.#begun = true
    if (this.#mode === 'success') this.#events.accepted(this.#head as AnswerHead)
  }

  #hold(chunk: Buffer): boolean {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#heldBytes <= heldBackBytes) return true
    const body = Buffer.concat(this.#held)
    this.#held = []
    this.#mode = 'passing'
    this.#events.refusedAtLength(this.#head as AnswerHead, this.#evidence(body))
    return this.#response.write(body)
  }

  #evidence(body: Buffer): Evidence | null {
    return capacityEvidence(this.#provider, this.#head as AnswerHead, body, this.#nowMs())
  }
}
