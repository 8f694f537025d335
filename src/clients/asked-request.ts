/**
 * Reads the request that a `fetch` is about to send: whether it is a call, its provider and model, and its
 * size.
 */
import { keyOf } from '../gateway/identity/credential.ts'
import { isOwnField } from '../gateway/passage/forward-headers.ts'
import { modelOf } from '../gateway/routing/route-table.ts'
import { fingerprint } from '../host/scope-name.ts'

export type FetchInput = Parameters<typeof fetch>[0]
export type FetchInit = NonNullable<Parameters<typeof fetch>[1]>

export interface AskedRequest {
  readonly url: URL
  readonly method: string
  /** As its caller gave them; those that speak to the lanes are not sent. */
  readonly headers: Headers
  /** The body's bytes; null when there is no body, or when it is a stream that can be read only once. */
  readonly body: Buffer | null
  /** The request can be sent again after a refusal. */
  readonly repeatable: boolean
  /** The model that the request names; null when it asks no model. */
  readonly model: string | null
  /** Fingerprint of the request's own key. */
  readonly credential: string
  /** Sends the request. */
  readonly send: (fetcher: typeof fetch, signal: AbortSignal) => Promise<Response>
  readonly signal: AbortSignal | undefined
}

/** The body as bytes; `stream` for a body that cannot be read without using it up. */
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

export const headersOf = (headers: Headers): Record<string, string> => Object.fromEntries(headers)

/** The request without the fields that speak to the lanes. */
export const withoutOwn = (headers: Headers): Headers => {
  const sent = new Headers(headers)
  for (const name of headers.keys()) if (isOwnField(name)) sent.delete(name)
  return sent
}

/** The headers that a `fetch` of both sends. */
export const headersSent = (input: FetchInput, init: FetchInit = {}): Headers =>
  new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))

export const readAsked = async (input: FetchInput, init: FetchInit = {}): Promise<AskedRequest> => {
  if (input instanceof Request) {
    // A copy is read here, so that the request itself can still be sent unchanged.
    const request = new Request(input.clone(), init)
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer())
    return readAsked(request.url, {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
      body,
    })
  }
  const url = new URL(input)
  const headers = headersSent(input, init)
  const sent = withoutOwn(headers)
  const method = (init.method ?? 'GET').toUpperCase()
  const bytes = method === 'POST' ? bytesOf(init.body) : null
  const body = bytes === 'stream' ? null : bytes
  // A body that cannot be read may ask a model: the request is admitted as a call, so it does not bypass the
  // lanes.
  const model = bytes === 'stream' ? 'unknown' : body === null ? null : modelOf(url.pathname, body)
  return {
    url,
    method,
    headers,
    body,
    repeatable: !isOnce(init.body),
    model,
    credential: fingerprint(keyOf(headersOf(headers), url.search)),
    send: (fetcher, signal) => fetcher(input, { ...init, headers: sent, signal }),
    signal: init.signal ?? undefined,
  }
}
