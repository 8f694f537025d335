/** Reads what a `fetch` is about to send: enough to tell whether it is a call, to whom, and how large. */
import { keyOf } from '../gateway/identity/credential.ts'
import { modelOf } from '../gateway/identity/model-of.ts'
import { fingerprint } from '../host/scope-name.ts'

type FetchInput = Parameters<typeof fetch>[0]
type FetchInit = NonNullable<Parameters<typeof fetch>[1]>

export interface AskedRequest {
  readonly url: URL
  readonly method: string
  /** The body's bytes; null when there is none, or when it is a stream that can be read once only. */
  readonly body: Buffer | null
  /** It can be sent again after a refusal. */
  readonly repeatable: boolean
  /** The model that is asked to work; null when the request asks none. */
  readonly model: string | null
  /** Fingerprint of the request's own key. */
  readonly credential: string
  /** Sends it. */
  readonly send: (fetcher: typeof fetch, signal: AbortSignal) => Promise<Response>
  readonly signal: AbortSignal | undefined
}

/** The body as bytes; `stream` for what cannot be looked at without using it up. */
const bytesOf = (body: FetchInit['body']): Buffer | null | 'stream' => {
  if (body === null || body === undefined) return null
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof ArrayBuffer) return Buffer.from(body)
  if (ArrayBuffer.isView(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return 'stream'
}

const isOnce = (body: FetchInit['body']): boolean =>
  typeof body === 'object' &&
  body !== null &&
  (body instanceof ReadableStream || Symbol.asyncIterator in body)

const headersOf = (headers: Headers): Record<string, string> => Object.fromEntries(headers)

export const readAsked = async (input: FetchInput, init: FetchInit = {}): Promise<AskedRequest> => {
  if (input instanceof Request) {
    const request = new Request(input, init)
    const body = request.body === null ? null : Buffer.from(await request.clone().arrayBuffer())
    return readAsked(request.url, {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
      body,
    })
  }
  const url = new URL(input)
  const method = (init.method ?? 'GET').toUpperCase()
  const bytes = method === 'POST' ? bytesOf(init.body) : null
  const body = bytes === 'stream' ? null : bytes
  // A body that cannot be read may ask anything; it is admitted rather than let past the lanes.
  const model = bytes === 'stream' ? 'unknown' : body === null ? null : modelOf(url.pathname, body)
  return {
    url,
    method,
    body,
    repeatable: !isOnce(init.body),
    model,
    credential: fingerprint(keyOf(headersOf(new Headers(init.headers)), url.search)),
    send: (fetcher, signal) => fetcher(input, { ...init, signal }),
    signal: init.signal ?? undefined,
  }
}
