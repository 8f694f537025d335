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

/**
 * Evidence in an error, or null when it says nothing about capacity (a bad request, a broken
 * connection, an error of the caller's own).
 */
export const evidenceOfError = (provider: string, error: unknown): Evidence | null => {
  if (!isObject(error)) return null
  const answer = answerIn(error)
  if (answer === null) return normalised(error, provider)
  const evidence = classify({ provider, ...answer })
  return evidence.kind === 'not-capacity' ? null : evidence
}
