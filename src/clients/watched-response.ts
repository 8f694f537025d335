/** A response that passes unchanged, and reports when its body has ended, broken or been dropped. */
import type { Evidence, Usage } from '../../machines/index.ts'
import { makeStreamReader } from '../evidence/index.ts'
import { isEventStream, makeBodyReader } from '../gateway/reading.ts'
import type { AnswerHead } from '../gateway/transport.ts'

/** How the body of an answer ended. */
export type BodyEnd = 'complete' | 'dropped' | 'broken'

/** The contents of an answer that were read before its body ended. */
export interface AnswerReading {
  readonly usage: Usage | null
  /** The evidence of an error inside a success; null when there is none. */
  readonly evidence: Evidence | null
}

interface AnswerReader {
  push(chunk: Buffer): void
  end(): void
  reading(): AnswerReading
  /** The stream's own end event has passed: readers often stop there, before the body ends. */
  readonly done: boolean
}

const readerOf = (provider: string, head: AnswerHead, receivedAt: number): AnswerReader => {
  if (!isEventStream(head)) return { ...makeBodyReader(provider, head, receivedAt), done: false }
  const stream = makeStreamReader(provider, { headers: head.headers, receivedAt })
  return {
    push: (chunk) => stream.push(chunk),
    end: () => stream.end(),
    reading: () => ({ usage: plain(stream.usage), evidence: stream.evidence }),
    get done() {
      return stream.done
    },
  }
}

const plain = (usage: Usage | null): Usage | null =>
  usage === null ? null : { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens }

export const headOf = ({ status, headers }: Response): AnswerHead => {
  const fields = Object.fromEntries(headers)
  // `fetch` has already decoded the body; the field only tells how it was sent.
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
  /** Breaks the body off, also when no reader waits at the time. */
  readonly signal: AbortSignal
}

/**
 * Passes the body of a successful answer on at the speed of its reader. `ended` is called once, with the
 * contents read until then. No part of the body is kept.
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
    // The source is usually under the same signal. A source whose `fetch` ignores the signal is released
    // here.
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
    // Nothing is read ahead: the provider sends at the reader's pace.
    { highWaterMark: 0 },
  )
  return remade(response, body)
}
