/** A response that passes on as it is, and tells when its body has ended, broken or been dropped. */
import type { Evidence, Usage } from '../../machines/index.ts'
import { makeStreamReader } from '../evidence/index.ts'
import { coreUsage, isEventStream, makeBodyReader } from '../gateway/reading.ts'
import type { AnswerHead } from '../gateway/transport.ts'

/** How the body of an answer ended. */
export type BodyEnd = 'complete' | 'dropped' | 'broken'

/** What an answer told by the time that its body ended. */
export interface AnswerReading {
  readonly usage: Usage | null
  /** What an error inside a success says; null when there is none. */
  readonly evidence: Evidence | null
}

interface AnswerReader {
  push(chunk: Buffer): void
  end(): void
  reading(): AnswerReading
  /** The stream's own end has passed: readers often stop there, before the body does. */
  readonly done: boolean
}

const readerOf = (provider: string, head: AnswerHead, receivedAt: number): AnswerReader => {
  if (!isEventStream(head)) return { ...makeBodyReader(provider, head, receivedAt), done: false }
  const stream = makeStreamReader(provider, { headers: head.headers, receivedAt })
  return {
    push: (chunk) => stream.push(chunk),
    end: () => stream.end(),
    reading: () => ({ usage: coreUsage(stream.usage), evidence: stream.evidence }),
    get done() {
      return stream.done
    },
  }
}

export const headOf = ({ status, headers }: Response): AnswerHead => {
  const fields = Object.fromEntries(headers)
  // `fetch` has decoded the body already; the field only says how it came.
  delete fields['content-encoding']
  return { status, headers: fields, rawHeaders: [] }
}

/** A response with another body, or other header fields. */
export const remade = (
  response: Response,
  body: ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null,
  own: Readonly<Record<string, string>> = {},
): Response => {
  const headers = new Headers(response.headers)
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
  /** Breaks the body off, whether or not anybody reads it at the time. */
  readonly signal: AbortSignal
}

/**
 * Passes the body of a successful answer on at the speed of its reader. `ended` hears once, with
 * what the answer told by then. Nothing is kept of it.
 */
export const watched = (
  { provider, response, receivedAtMs, signal }: Watched,
  ended: (end: BodyEnd, reading: AnswerReading) => void,
): Response => {
  const reader = readerOf(provider, headOf(response), receivedAtMs)
  if (response.body === null) {
    ended('complete', reader.reading())
    return response
  }
  const source = response.body.getReader()
  let open = true
  const finish = (end: BodyEnd): void => {
    if (!open) return
    open = false
    signal.removeEventListener('abort', breakOff)
    if (end === 'complete') reader.end()
    ended(reader.done ? 'complete' : end, reader.reading())
  }
  const breakOff = (): void => {
    finish('broken')
    // The source is under the same signal as a rule; a `fetch` that ignores it is let go of all the same.
    source.cancel(signal.reason).catch(() => {})
  }
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start: (controller) => {
        signal.addEventListener('abort', () => open && controller.error(signal.reason), { once: true })
        signal.addEventListener('abort', breakOff, { once: true })
      },
      pull: async (controller) => {
        try {
          const { done, value } = await source.read()
          if (!open) return
          if (!done) {
            reader.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
            return controller.enqueue(value)
          }
          finish('complete')
          controller.close()
        } catch (error) {
          finish('broken')
          controller.error(error)
        }
      },
      cancel: (reason) => {
        finish('dropped')
        return source.cancel(reason)
      },
    },
    // Nothing is read ahead: the reader's pace is the provider's pace.
    { highWaterMark: 0 },
  )
  return remade(response, body)
}
