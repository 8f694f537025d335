/** A response that passes on as it is, and tells when its body has ended, broken or been dropped. */
import type { BodyReading } from '../gateway/answers/body-reading.ts'
import { makeBodyReader } from '../gateway/answers/reader.ts'
import type { AnswerHead } from '../gateway/passage/transport.ts'

/** How the body of an answer ended: `truncated` is one that ended cleanly, and without its own end. */
export type BodyEnd = 'complete' | 'truncated' | 'dropped' | 'broken'

/** What an answer told by the time that its body ended. */
export type AnswerReading = Pick<BodyReading, 'usage' | 'evidence'>

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
 * what the answer told by then: at the answer's own end, which may be long before its connection's.
 * Nothing is kept of it.
 */
export const watched = (
  { provider, response, receivedAtMs, signal }: Watched,
  ended: (end: BodyEnd, reading: AnswerReading) => void,
): Response => {
  let isTold = false
  const tell = (end: BodyEnd): void => {
    if (isTold) return
    isTold = true
    ended(end, reader.reading())
  }
  const reader = makeBodyReader(provider, headOf(response), receivedAtMs, () => {
    if (reader.reading().evidence === null) tell('complete')
  })
  if (response.body === null) {
    tell('complete')
    return response
  }
  const source = response.body.getReader()
  let open = true
  const finish = (end: BodyEnd): void => {
    if (!open) return
    open = false
    signal.removeEventListener('abort', breakOff)
    if (end !== 'complete') return tell(reader.done ? 'complete' : end)
    reader.end(() => tell(reader.reading().truncated ? 'truncated' : 'complete'))
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
