/**
 * The evidence about capacity in an error of a provider's SDK. The shape tells the SDKs apart; none is
 * imported.
 */
import type { Evidence } from '../../machines/index.ts'
import { classify, type ProviderAnswer } from './index.ts'

interface Answered {
  readonly status: number
  readonly headers: ProviderAnswer['headers']
  readonly body: unknown
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/**
 * `@anthropic-ai/sdk` and `openai`: `status`, `headers`, `error`. AI SDK: `statusCode`, `responseHeaders`,
 * `responseBody`.
 */
const answerIn = (error: Record<string, unknown>): Answered | null => {
  if (typeof error['status'] === 'number') {
    const headers = isObject(error['headers']) ? (error['headers'] as ProviderAnswer['headers']) : {}
    return { status: error['status'], headers, body: error['error'] ?? error['body'] ?? error['message'] }
  }
  if ('status' in error && error['status'] === undefined && isObject(error['error'])) {
    // An error inside a stream that began with 200.
    const { error: inside } = error
    const headers = isObject(error['headers']) ? (error['headers'] as ProviderAnswer['headers']) : {}
    return { status: 200, headers, body: isObject(inside) && 'error' in inside ? inside : { error: inside } }
  }
  if (typeof error['statusCode'] === 'number') {
    const headers = isObject(error['responseHeaders'])
      ? (error['responseHeaders'] as ProviderAnswer['headers'])
      : {}
    return { status: error['statusCode'], headers, body: error['responseBody'] ?? error['data'] }
  }
  return null
}

/** A host's own normalised error, as Membrane makes: `{type: 'rate_limit', retryAfterMs?, retryable?}`. */
const normalised = (error: Record<string, unknown>, provider: string): Evidence | null => {
  if (error['type'] !== 'rate_limit') return null
  const raw = isObject(error['rawError']) ? evidenceOfError(provider, error['rawError']) : null
  if (raw !== null) return raw
  const { retryAfterMs, retryable } = error
  const stated = typeof retryAfterMs === 'number' && Number.isFinite(retryAfterMs) && retryAfterMs >= 0
  return {
    kind: 'unknown-rate-limit',
    scope: 'model',
    retryAfterMs: stated ? Math.ceil(retryAfterMs) : null,
    retryable: retryable !== false,
    facts: {},
  }
}

/** Wrappers around an error that are followed. */
const deepest = 4

/**
 * Evidence in an error, or null when it says nothing about capacity (a bad request, a broken
 * connection, an error of the caller's own). An error that says nothing by itself is asked for the
 * last of its attempts (the AI SDK's `RetryError`), then for its cause.
 */
export const evidenceOfError = (provider: string, error: unknown, depth = 0): Evidence | null => {
  if (!isObject(error)) return null
  const answer = answerIn(error)
  if (answer === null) {
    const own = normalised(error, provider)
    if (own !== null || depth === deepest) return own
    return evidenceOfError(provider, error['lastError'] ?? error['cause'], depth + 1)
  }
  const evidence = classify({ provider, ...answer })
  return evidence.kind === 'not-capacity' ? null : evidence
}
