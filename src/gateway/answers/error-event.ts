/** The error that ends an event stream, as the wire's own providers write it. Clients of that wire throw it. */
import type { Problem } from '../problem/problem.ts'
import type { Wire } from './wire.ts'

type ErrorObject = Readonly<Record<string, unknown>>

/** The event that carries `error`; null where the wire has no such event. `path` is the upstream's, without its query. */
const errorEvent = (wire: Wire, path: string, error: ErrorObject): string | null => {
  switch (wire) {
    case 'anthropic':
      return named({ type: 'error', error })
    case 'openai':
      return /\/responses$/.test(path) ? named({ ...error, type: 'error', error }) : plain({ error })
    case 'gemini':
      return plain({ error })
    case 'other':
      return null
  }
}

const plain = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

const named = (data: object): string => `event: error\n${plain(data)}`

/** An overload in the middle of a stream, as the provider itself would say it: clients know that they may try again. */
export const overloadEvent = (wire: Wire, path: string, message: string): string | null =>
  errorEvent(wire, path, overloads[wire](message))

const overloads: Readonly<Record<Wire, (message: string) => ErrorObject>> = {
  anthropic: (message) => ({ details: null, type: 'overloaded_error', message }),
  openai: (message) => ({
    message,
    type: 'service_unavailable_error',
    param: null,
    code: 'server_is_overloaded',
  }),
  gemini: (message) => ({ code: 503, message, status: 'UNAVAILABLE' }),
  other: (message) => ({ message }),
}

/** A problem document's content, for a client that already has the head of an event stream. */
export const problemEvent = (wire: Wire, path: string, problem: Problem): string | null => {
  const { name, status, detail: message, retryAfterS } = problem
  const retry = retryAfterS === null ? {} : { retry_after: retryAfterS }
  const error =
    wire === 'gemini'
      ? { code: status, message, status: geminiStatus(status), ...retry }
      : { type: `rightofway_${name.replaceAll('-', '_')}`, message, code: status, ...retry }
  return errorEvent(wire, path, error)
}

/** A provider's refusal in words, for a client that already has the head of an event stream. */
export interface StatedRefusal {
  readonly status: number
  /** As it was sent, decoded. */
  readonly body: Buffer
  /** The value of `retry-after`; null when it stated none. */
  readonly retryAfter: string | null
}

/** The provider's own error object, with the `retry-after` that a header can no longer carry. */
export const refusalEvent = (wire: Wire, path: string, refusal: StatedRefusal): string | null => {
  const { status, body, retryAfter } = refusal
  const retry = retryAfter === null ? {} : { retry_after: retryAfter }
  return errorEvent(wire, path, { ...(errorIn(body) ?? composed(wire, status)), ...retry })
}

const composed = (wire: Wire, status: number): ErrorObject => {
  const message = `the provider answered ${status}`
  if (wire === 'gemini') return { code: status, message, status: geminiStatus(status) }
  return { type: anthropicTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message }
}

/** The `error` member of a JSON body, or of the first element of an array; null when there is none. */
const errorIn = (body: Buffer): ErrorObject | null => {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
  const first: unknown = Array.isArray(value) ? value[0] : value
  if (typeof first !== 'object' || first === null || !('error' in first)) return null
  const { error } = first
  if (typeof error === 'string') return { type: 'api_error', message: error }
  return typeof error === 'object' && error !== null ? { ...error } : null
}

const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

const geminiStatus = (status: number): string => {
  if (status === 429) return 'RESOURCE_EXHAUSTED'
  if (status === 504) return 'DEADLINE_EXCEEDED'
  return status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT'
}
