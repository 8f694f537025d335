/**
 * One dispatch of a call: what comes back is passed to the client as it comes when it is a success,
 * and held back while it may be a refusal that admission can still mend.
 */
import type { ServerResponse } from 'node:http'
import type { Evidence } from '../../../machines/index.ts'
import type { Clock } from '../../clock.ts'
import { type BodyReader, type BodyReading, nothingRead } from '../answers/body-reading.ts'
import { isEncoded } from '../answers/decoding.ts'
import { JsonEnd } from '../answers/json-end.ts'
import { readWhole } from '../answers/json-reader.ts'
import { openingOf } from '../answers/opening.ts'
import { type BodyKind, kindOf, makeBodyReader } from '../answers/reader.ts'
import { capacityEvidence } from '../answers/reading.ts'
import { UsageFilter } from '../answers/usage-filter.ts'
import { EventBoundary } from '../answers/wire.ts'
import { endWith } from '../passage/interim.ts'
import type { AnswerHead, AnswerListener, TransportFailure } from '../passage/transport.ts'

/** Of an answer that is no success, what is held back at most, bytes. A longer one is passed on. */
const heldBackBytes = 1024 * 1024

/** How long the rest of a refusal is awaited that has said what it is, milliseconds. */
const refusalEndsMs = 1_000

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
  /** A success is about to reach the client: write its head. False when it cannot: then nothing more is heard. */
  accepted(head: AnswerHead): boolean
  /** An answer that is no success, all of it; nothing has reached the client. */
  refused(refusal: ProviderRefusal, evidence: Evidence | null): void
  /** The same, but too long to hold: write its head, the rest follows. False as for `accepted`. */
  refusedAtLength(head: AnswerHead, evidence: Evidence | null): boolean
  /** The provider is done, by what the answer itself says; bytes may still follow. */
  concluded(reading: BodyReading): void
  /** The client does not take what is written, until it does. */
  blocked(): void
  /** All of the answer has been given to the client, and read. */
  ended(reading: BodyReading): void
  failed(failure: TransportFailure): void
}

/**
 * `opening`: a success that may still turn out to be none. `holding`: no success, or a refusal inside of one.
 * `dropped`: the client cannot have it.
 */
type Mode = 'head' | 'opening' | 'success' | 'holding' | 'passing' | 'dropped'

/** What has to be known of the answer before it comes. */
export interface AnswerTraits {
  readonly provider: string
  /** Usage was asked for without the client. */
  readonly hidesUsage: boolean
}

export class Attempt implements AnswerListener {
  readonly #provider: string
  readonly #hidesUsage: boolean
  #filter: UsageFilter | null = null
  readonly #response: ServerResponse
  readonly #events: AttemptEvents
  readonly #clock: Clock
  #cancelHold: (() => void) | null = null
  #mode: Mode = 'head'
  #head: AnswerHead | null = null
  #kind: BodyKind = 'other'
  #isEncoded = false
  #reader: BodyReader | null = null
  /** While a JSON text is held; null for any other answer. */
  #jsonEnd: JsonEnd | null = null
  #boundary: EventBoundary | null = null
  #held: Array<Buffer> = []
  #heldBytes = 0

  constructor(asked: AnswerTraits, response: ServerResponse, clock: Clock, events: AttemptEvents) {
    this.#provider = asked.provider
    this.#hidesUsage = asked.hidesUsage
    this.#response = response
    this.#clock = clock
    this.#events = events
  }

  /** What the answer has told so far; null before there is a successful one. */
  get reading(): BodyReading | null {
    return this.#reader?.reading() ?? null
  }

  /** Bytes of the answer passed that nobody could read. */
  get isUnread(): boolean {
    return this.#reader?.unread ?? false
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
    this.#kind = kindOf(head)
    this.#isEncoded = isEncoded(head.headers['content-encoding'])
    if (this.#kind === 'json' && !this.#isEncoded) this.#jsonEnd = new JsonEnd()
    if (head.status >= 300) {
      this.#mode = 'holding'
      return
    }
    this.#mode = 'opening'
    this.#reader = makeBodyReader(this.#provider, head, this.#clock.now(), () => this.#concluded())
    if (this.#kind !== 'events' || this.#isEncoded) return
    this.#boundary = new EventBoundary()
    if (this.#hidesUsage) this.#filter = new UsageFilter()
  }

  bytes(chunk: Buffer): boolean {
    if (this.#mode === 'holding') return this.#hold(chunk)
    if (this.#mode === 'opening') return this.#open(chunk)
    if (this.#mode === 'dropped') return true
    return this.#pass(chunk)
  }

  end(rawTrailers: ReadonlyArray<string>): void {
    if (this.#mode === 'opening') this.#judge()
    if (this.#mode === 'holding') return this.#refuse()
    if (this.#mode === 'dropped') return
    if (this.#filter !== null) this.#put(this.#filter.end())
    endWith(this.#response, rawTrailers)
    const reader = this.#reader
    if (reader === null) this.#events.ended(nothingRead)
    else reader.end(() => this.#events.ended(reader.reading()))
  }

  failed(failure: TransportFailure): void {
    this.stop()
    this.#events.failed(failure)
  }

  /** Nobody waits for the rest of a refusal any more. */
  stop(): void {
    this.#cancelHold?.()
    this.#cancelHold = null
  }

  get #isHolding(): boolean {
    return this.#mode === 'holding'
  }

  /** What it says is known. Its end is awaited a little, so that the connection can be used again. */
  #refuseSoon(): void {
    this.#cancelHold ??= this.#clock.after(refusalEndsMs, () => this.#refuse())
  }

  #refuse(): void {
    this.stop()
    const body = Buffer.concat(this.#held)
    const evidence = this.#reader?.reading().evidence ?? this.#evidence(body)
    this.#mode = 'passing'
    this.#events.refused({ head: this.#head as AnswerHead, body }, evidence)
  }

  #concluded(): void {
    const reading = this.reading
    if (reading !== null && this.#mode === 'success') this.#events.concluded(reading)
  }

  /** The head waits for the first bytes that are an answer: until then the call can still be taken back. */
  #open(chunk: Buffer): boolean {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    const reader = this.#reader as BodyReader
    if (this.#kind !== 'json') reader.push(chunk)
    if (this.#jsonEnd?.push(chunk)) {
      // All of it is here, whatever the connection does.
      this.#judge()
      if (this.#isHolding) this.#refuseSoon()
      return this.#isHolding || this.#isFlowing
    }
    const whole = (): Buffer => Buffer.concat(this.#held)
    const { evidence } = reader.reading()
    if (evidence !== null && evidence.kind !== 'not-capacity') {
      this.#mode = 'holding'
      this.#refuseSoon()
      return true
    }
    const start = { bytes: this.#heldBytes, first: this.#held[0] as Buffer, whole }
    if (openingOf(this.#kind, reader, this.#isEncoded, start) === 'hold') return true
    if (
      this.#kind === 'json' &&
      (this.#refusalIn(whole()) ?? this.#refusalIn(this.#closed(whole()))) !== null
    )
      this.#mode = 'holding'
    else this.#begin(this.#kind === 'json')
    return this.#mode === 'holding' || this.#isFlowing
  }

  /** An array of which some elements are here, as one that has ended. */
  #closed(head: Buffer): Buffer {
    return Buffer.from(`${head.toString('utf8').replace(/[\s,]*$/, '')}]`)
  }

  /** The answer is over and was held to its end. */
  #judge(): void {
    if (this.#kind === 'json') {
      if (this.#refusalIn(Buffer.concat(this.#held)) !== null) this.#mode = 'holding'
      else this.#begin(true)
      return
    }
    // The last event may lack the blank line behind it.
    if (!this.#isEncoded) this.#reader?.end(() => {})
    const { evidence } = this.#reader?.reading() ?? nothingRead
    if (evidence !== null && evidence.kind !== 'not-capacity') this.#mode = 'holding'
    else this.#begin(false)
  }

  /** What a JSON answer that calls itself a success says about capacity; null when it is one. */
  #refusalIn(body: Buffer): Evidence | null {
    const head = this.#head as AnswerHead
    const plain = this.#isEncoded ? null : readWhole(this.#provider, head, this.#clock.now(), body)
    const evidence = plain === null ? this.#evidence(body) : plain.evidence
    return evidence === null || evidence.kind === 'not-capacity' ? null : evidence
  }

  /** It is an answer: its head and what was held go to the client. */
  #begin(isUnread: boolean): void {
    const held = this.#held
    this.#held = []
    this.#mode = 'success'
    if (!this.#events.accepted(this.#head as AnswerHead)) {
      this.#mode = 'dropped'
      return
    }
    for (const chunk of held) {
      this.#write(chunk)
      if (isUnread) this.#reader?.push(chunk)
    }
    if (this.#reader?.done) this.#concluded()
  }

  #pass(chunk: Buffer): boolean {
    this.#write(chunk)
    this.#reader?.push(chunk)
    return this.#isFlowing
  }

  #write(chunk: Buffer): void {
    this.#put(this.#filter === null ? chunk : this.#filter.push(chunk))
  }

  #put(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#response.write(bytes)
    this.#boundary?.push(bytes)
  }

  /** The client has taken what was written; false asks the provider to pause. */
  get #isFlowing(): boolean {
    if (!this.#response.writableNeedDrain) return true
    this.#events.blocked()
    return false
  }

  #hold(chunk: Buffer): boolean {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#jsonEnd?.push(chunk)) this.#refuseSoon()
    if (this.#heldBytes <= heldBackBytes) return true
    const body = Buffer.concat(this.#held)
    this.#held = []
    this.#mode = 'passing'
    this.#reader = null
    if (!this.#events.refusedAtLength(this.#head as AnswerHead, this.#evidence(body))) {
      this.#mode = 'dropped'
      return true
    }
    this.#write(body)
    return this.#isFlowing
  }

  #evidence(body: Buffer): Evidence | null {
    return capacityEvidence(this.#provider, this.#head as AnswerHead, body, this.#clock.now())
  }
}
