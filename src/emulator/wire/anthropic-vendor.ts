import type { LimitFact, Refusal } from '../rules/rule.ts'
import type { Answer, HeaderFields, JsonObject, Vendor } from './dialect.ts'

const organization = '00000000-0000-4000-8000-000000000000'
const limitsPage = 'For details, refer to: https://docs.claude.com/en/api/rate-limits.'
const advice =
  'You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later. You may also contact sales at https://claude.com/contact-sales to discuss your options for a rate limit increase.'

/** Anthropic's error body. */
export const anthropicError = (type: string, message: string, requestId: string): JsonObject => ({
  type: 'error',
  error: { type, message },
  request_id: requestId,
})

/** The headers, errors and model list around every answer of Anthropic. */
export const anthropicVendor: Vendor = {
  hasKey: (headers) =>
    (typeof headers['x-api-key'] === 'string' && headers['x-api-key'] !== '') ||
    (typeof headers['authorization'] === 'string' && /^Bearer \S/i.test(headers['authorization'])),
  headers: (facts, requestId) => ({
    'request-id': requestId,
    'anthropic-organization-id': organization,
    ...limitHeaders(facts),
  }),
  refused: (refusal, model, requestId, atMs) => ({
    status: statusOf(refusal),
    headers: {
      'x-should-retry': refusal.permanent ? 'false' : 'true',
      ...(refusal.retryAfterMs === null
        ? {}
        : { 'retry-after': `${Math.ceil(refusal.retryAfterMs / 1_000)}` }),
    },
    body: anthropicError(typeOf(refusal), messageOf(refusal, model, atMs), requestId),
  }),
  unauthenticated: (requestId) =>
    problem(401, 'authentication_error', 'x-api-key header is required', requestId),
  badJson: (requestId) =>
    problem(400, 'invalid_request_error', 'The request body is not valid JSON', requestId),
  badField: (invalid, requestId) =>
    problem(400, 'invalid_request_error', `${invalid.field}: ${invalid.message}`, requestId),
  tooLarge: (requestId) => problem(413, 'request_too_large', 'Request exceeds the maximum size', requestId),
  notFound: (_path, requestId) => problem(404, 'not_found_error', 'Not found', requestId),
  failed: (requestId) => problem(500, 'api_error', 'Internal server error', requestId),
  models: (ids) => ({
    data: ids.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' })),
    has_more: false,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
  }),
}

const problem = (status: number, type: string, message: string, requestId: string): Answer => ({
  status,
  headers: {},
  body: anthropicError(type, message, requestId),
})

const statusOf = ({ kind }: Refusal): number =>
  kind === 'overloaded' ? 529 : kind === 'quota-exhausted' ? 400 : 429

const typeOf = ({ kind }: Refusal): string =>
  kind === 'overloaded'
    ? 'overloaded_error'
    : kind === 'quota-exhausted'
      ? 'invalid_request_error'
      : 'rate_limit_error'

/** The documented sentences: clients and classifiers read the dimension from them. */
const messageOf = (refusal: Refusal, model: string, atMs: number): string => {
  const who = `(org: ${organization}, model: ${model})`
  const exceeds = (limit: string): string =>
    `This request would exceed your organization's rate limit of ${limit} ${who}. ${limitsPage} ${advice}`
  const limit = grouped(refusal.limit ?? 0)
  switch (refusal.kind) {
    case 'acceleration':
      return accelerationMessage(refusal, who)
    case 'input-tokens-per-minute':
      return exceeds(`${limit} input tokens per minute`)
    case 'output-tokens-per-minute':
      return exceeds(`${limit} output tokens per minute`)
    case 'requests-per-minute':
      return exceeds(`${limit} requests per minute`)
    case 'requests-per-day':
      return exceeds(`${limit} requests per day`)
    case 'tokens-per-day':
      return 'Number of request tokens has exceeded your daily rate limit (https://docs.anthropic.com/claude/reference/rate-limits). Please reduce the prompt length or the maximum tokens requested, or try again later.'
    case 'concurrency':
      return 'Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase.'
    case 'overloaded':
      return 'Overloaded'
    case 'quota-exhausted':
      return `You have reached your specified API usage limits. You will regain access on ${nextMonth(atMs)} at 00:00 UTC.`
  }
}

/** The older sentence says that a ceiling exists; the newer one states its value. */
const accelerationMessage = (refusal: Refusal, who: string): string => {
  const gradually =
    'Please scale up your input tokens usage more gradually to stay within the acceleration limit.'
  if (refusal.currentLimit === undefined) {
    return `This request would exceed your organization's (${organization}) maximum usage increase rate for input tokens per minute. ${gradually} ${limitsPage}`
  }
  const next =
    refusal.nextLimit === undefined
      ? ''
      : `, and will increase to ${grouped(refusal.nextLimit)} at the next minute boundary`
  return `This request would exceed your organization's maximum usage increase rate for input tokens per minute ${who}. Your current limit is ${grouped(refusal.currentLimit)} input tokens per minute${next}. ${gradually} ${limitsPage}`
}

const grouped = (count: number): string => count.toLocaleString('en-US')

const nextMonth = (atMs: number): string => {
  const at = new Date(atMs)
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1)).toISOString().slice(0, 10)
}

const headerNames: Partial<Record<LimitFact['dimension'], string>> = {
  'requests-per-minute': 'requests',
  'input-tokens-per-minute': 'input-tokens',
  'output-tokens-per-minute': 'output-tokens',
}

/** `anthropic-ratelimit-*`; `tokens` repeats the tighter of input and output. */
const limitHeaders = (facts: readonly LimitFact[]): HeaderFields => {
  const fields: Record<string, string> = {}
  let tightest: LimitFact | undefined
  for (const fact of facts) {
    const name = headerNames[fact.dimension]
    if (name === undefined) continue
    addLimit(fields, name, fact)
    if (name !== 'requests' && (tightest === undefined || fact.remaining < tightest.remaining))
      tightest = fact
  }
  if (tightest !== undefined) addLimit(fields, 'tokens', tightest)
  return fields
}

const addLimit = (fields: Record<string, string>, name: string, fact: LimitFact): void => {
  // Documented: remaining tokens are rounded to the nearest thousand.
  const remaining = name === 'requests' ? fact.remaining : Math.round(fact.remaining / 1_000) * 1_000
  fields[`anthropic-ratelimit-${name}-limit`] = `${fact.limit}`
  fields[`anthropic-ratelimit-${name}-remaining`] = `${Math.min(remaining, fact.limit)}`
  fields[`anthropic-ratelimit-${name}-reset`] = toSecond(fact.resetAtMs)
}

/** RFC 3339 in whole seconds, rounded up: a reset is never announced too early. */
const toSecond = (atMs: number): string =>
  new Date(Math.ceil(atMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
