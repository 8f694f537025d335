/** A response that passes unchanged, is read ahead of its reader, and reports when its body has ended, broken or been dropped. */
import type { Clock } from '../clock.ts'
import type { BodyReader, BodyReading } from '../gateway/answers/body-reading.ts'
import { makeBodyReader } from '../gateway/answers/reader.ts'
import { ownPrefix } from '../gateway/passage/forward-headers.ts'
import type { AnswerHead } from '../gateway/passage/transport.ts'
import { whileRead } from '../host/errors.ts'

/** How the body of an answer ended: `truncated` is one that ended cleanly, and without its own end. */
export type BodyEnd = 'complete' | 'truncated' | 'dropped' | 'broken'

/** The contents of an answer that were read before its body ended. */
export type AnswerReading = Pick<BodyReading, 'usage' | 'evidence'>

export const headOf = ({ status, headers }: Response): AnswerHead => {
  const fields = Object.fromEntries(headers)
  // `fetch` has already decoded the body; the field only tells how it was sent.
  delete fields['content-encoding']
  return { status, headers: fields, rawHeaders: [] }
}

/** The response with another body and with header fields of the lanes. */
export const remade = (
  response: Response,
  body: ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null,
  own: Readonly<Record<string, string>> = {},
): Response => {
  const headers = new Headers(response.headers)
  for (const name of [...headers.keys()]) if (name.startsWith(ownPrefix)) headers.delete(name)
  for (const [name, value] of Object.entries(own)) headers.set(name, value)
  const { status, statusText, url } = response
  const made = new Response(body, { status, statusText, headers })
  // A made response has no address; the SDKs show it.
  return Object.defineProperty(made, 'url', { value: url })
}

export interface Watched {
  readonly provider: string
  readonly response: Response
  readonly receivedAtMs: number
  /** Breaks the body off, also when no reader waits at the time. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** How long a body that is not read ahead any further waits for its reader, milliseconds. */
  readonly unreadTimeoutMs: number
  /** The error that its reader gets after that. */
  readonly unread: () => Error
  /** Header fields of the lanes themselves. */
  readonly own: Readonly<Record<string, string>>
}

type Chunk = Uint8Array<ArrayBuffer>

/** Bytes of a body that may wait for its reader. A body that fits is read to its end, even when its reader never comes. */
const aheadBytes = 4 * 1024 * 1024

/**
 * Passes the body of a successful answer on, and reads it ahead of its reader. `ended` hears once, with the
 * contents that were read by then: at the answer's own end, which may be long before its connection's or its
 * reader's.
 */
export const watched = (source: Watched, ended: (end: BodyEnd, reading: AnswerReading) => void): Response => {
  const { response } = source
  if (response.body === null) {
    ended('complete', { usage: null, evidence: null })
    return remade(response, null, source.own)
  }
  const { body } = new BodyAhead(source, response.body.getReader(), ended)
  return remade(response, body, source.own)
}

/** One body on its way from the provider to its reader. */
class BodyAhead {
  readonly body: ReadableStream<Chunk>
  readonly #watched: Watched
  readonly #source: ReadableStreamDefaultReader<Chunk>
  readonly #reader: BodyReader
  readonly #ended: (end: BodyEnd, reading: AnswerReading) => void
  #controller: ReadableStreamDefaultController<Chunk> | null = null
  /** More of the body may be passed on. */
  #open = true
  /** The call has ended: its place is free, and the body only passes. */
  #isTold = false
  #isReading = false
  #stopWaiting: () => void = () => {}

  constructor(
    source: Watched,
    from: ReadableStreamDefaultReader<Chunk>,
    ended: (end: BodyEnd, reading: AnswerReading) => void,
  ) {
    const { provider, response, receivedAtMs, signal } = source
    this.#watched = source
    this.#source = from
    this.#ended = ended
    this.#reader = makeBodyReader(provider, headOf(response), receivedAtMs, () => {
      if (this.#reader.reading().evidence === null) this.#tell('complete')
    })
    signal.addEventListener('abort', this.#aborted, { once: true })
    this.body = new ReadableStream<Chunk>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        // Called while less than `aheadBytes` wait for the reader, so from the start.
        pull: () => this.#pull(),
        cancel: (reason) => {
          this.#finish('dropped')
          return this.#source.cancel(reason)
        },
      },
      { highWaterMark: aheadBytes, size: (chunk) => chunk.byteLength },
    )
    if (signal.aborted) this.#aborted()
  }

  readonly #aborted = (): void => {
    this.#breakOff(whileRead(this.#watched.signal.reason))
  }

  async #pull(): Promise<void> {
    this.#stopWaiting()
    if (!this.#open || this.#isReading) return
    this.#isReading = true
    try {
      const { done, value } = await this.#source.read()
      if (!this.#open) return
      if (done) {
        this.#finish('complete')
        return this.#controller?.close()
      }
      this.#reader.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      this.#controller?.enqueue(value)
      this.#waitForReader()
    } catch (error) {
      if (!this.#open) return
      this.#finish('broken')
      this.#controller?.error(error)
    } finally {
      this.#isReading = false
    }
  }

  /** Nothing more is read ahead. A reader that does not read on in time gives the place up. */
  #waitForReader(): void {
    if (this.#isTold || (this.#controller?.desiredSize ?? 1) > 0) return
    const { clock, unreadTimeoutMs, unread } = this.#watched
    this.#stopWaiting = clock.after(unreadTimeoutMs, () => this.#breakOff(unread(), 'dropped'))
  }

  #breakOff(reason: unknown, end: BodyEnd = 'broken'): void {
    if (!this.#open) return
    this.#finish(end)
    this.#controller?.error(reason)
    // The source is usually under the same signal. A source whose `fetch` ignores the signal is released here.
    this.#source.cancel(reason).catch(() => {})
  }

  #finish(end: BodyEnd): void {
    if (!this.#open) return
    this.#open = false
    this.#stopWaiting()
    this.#watched.signal.removeEventListener('abort', this.#aborted)
    const reader = this.#reader
    if (end !== 'complete') return this.#tell(reader.done ? 'complete' : end)
    reader.end(() => this.#tell(reader.reading().truncated ? 'truncated' : 'complete'))
  }

  #tell(end: BodyEnd): void {
    if (this.#isTold) return
    this.#isTold = true
    this.#stopWaiting()
    this.#ended(end, this.#reader.reading())
  }
}
