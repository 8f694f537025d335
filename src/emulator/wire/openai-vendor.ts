import type { LimitFact, Refusal } from '../rules/rule.ts'
import type { Answer, HeaderFields, JsonObject, Vendor } from './dialect.ts'

const organization = 'org-emulator'
const limitsPage = 'Visit https://platform.openai.com/account/rate-limits to learn more.'

/** The error of an overloaded OpenAI, as a whole answer or inside a stream. */
export const openaiOverloaded = {
  message: 'Our servers are currently overloaded. Please try again later.',
  type: 'service_unavailable_error',
  param: null,
  code: 'server_is_overloaded',
} as const

/** The headers, errors and model list around every answer of OpenAI. */
export const openaiVendor: Vendor = {
  hasKey: (headers) =>
    typeof headers['authorization'] === 'string' && /^Bearer \S/i.test(headers['authorization']),
  headers: (facts, requestId, atMs) => ({
    'x-request-id': requestId,
    'openai-organization': organization,
    'openai-version': '2020-10-01',
    ...limitHeaders(facts, atMs),
  }),
  refused: (refusal, model) => ({ ...refusalAnswer(refusal, model), headers: retryHeaders(refusal) }),
  unauthenticated: () =>
    problem(401, {
      message:
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
      type: 'invalid_request_error',
      param: null,
      code: null,
    }),
  badJson: () => problem(400, invalidRequest('We could not parse the JSON body of your request.', null)),
  badField: (invalid) => problem(400, invalidRequest(invalid.message, invalid.field)),
  tooLarge: () => problem(413, invalidRequest('The request body is too large.', null)),
  notFound: (path) => problem(404, invalidRequest(`Invalid URL (${path})`, null)),
  failed: () =>
    problem(500, {
      message: 'The server had an error while processing your request. Sorry about that!',
      type: 'server_error',
      param: null,
      code: null,
    }),
  models: (ids) => ({
    object: 'list',
    data: ids.map((id) => ({ id, object: 'model', created: 1_767_225_600, owned_by: 'emulator' })),
  }),
}

const invalidRequest = (message: string, param: string | null): JsonObject => ({
  message,
  type: 'invalid_request_error',
  param,
  code: null,
})

const problem = (status: number, error: JsonObject): Answer => ({ status, headers: {}, body: { error } })

const retryHeaders = (refusal: Refusal): HeaderFields => ({
  'x-should-retry': refusal.permanent ? 'false' : 'true',
  ...(refusal.retryAfterMs === null
    ? {}
    : {
        'retry-after': `${Math.ceil(refusal.retryAfterMs / 1_000)}`,
        'retry-after-ms': `${refusal.retryAfterMs}`,
      }),
})

/** The documented codes and sentences: clients and classifiers read the dimension from them. */
const refusalAnswer = (refusal: Refusal, model: string): Answer => {
  const limited = (type: string, dimension: string): Answer =>
    problem(429, {
      message: reached(refusal, model, dimension),
      type,
      param: null,
      code: 'rate_limit_exceeded',
    })
  switch (refusal.kind) {
    case 'acceleration':
      return problem(503, {
        message: 'Slow Down',
        type: 'service_unavailable_error',
        param: null,
        code: 'slow_down',
      })
    case 'input-tokens-per-minute':
    case 'output-tokens-per-minute':
      // OpenAI has one budget for both directions.
      return limited('tokens', 'tokens per min (TPM)')
    case 'tokens-per-day':
      return limited('tokens', 'tokens per day (TPD)')
    case 'requests-per-minute':
      return limited('requests', 'requests per min (RPM)')
    case 'requests-per-day':
      return limited('requests', 'requests per day (RPD)')
    case 'concurrency':
      // OpenAI documents no such limit. The sentence comes from compatible providers that have one.
      return problem(429, {
        message: `Your request reached organization max concurrency: ${refusal.limit}, please try again later.`,
        type: 'rate_limit_reached_error',
        param: null,
        code: 'rate_limit_exceeded',
      })
    case 'overloaded':
      return problem(503, openaiOverloaded)
    case 'quota-exhausted':
      return problem(429, {
        message:
          'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
        type: 'insufficient_quota',
        param: null,
        code: 'insufficient_quota',
      })
  }
}

const reached = (refusal: Refusal, model: string, dimension: string): string => {
  const where = `for ${model} in organization ${organization} on ${dimension}`
  if (refusal.permanent) {
    return `Request too large ${where}: Limit ${refusal.limit}, Requested ${refusal.requested}. The input or output tokens must be reduced in order to run successfully. ${limitsPage}`
  }
  const wait =
    refusal.retryAfterMs === null ? '' : ` Please try again in ${goDuration(refusal.retryAfterMs)}.`
  return `Rate limit reached ${where}: Limit ${refusal.limit}, Used ${refusal.used}, Requested ${refusal.requested}.${wait} ${limitsPage}`
}

const headerNames: Partial<Record<LimitFact['dimension'], string>> = {
  'requests-per-minute': 'requests',
  'input-tokens-per-minute': 'tokens',
  'output-tokens-per-minute': 'tokens',
}

/** `x-ratelimit-*`. Resets are relative, so they need the time at which the facts were taken. */
const limitHeaders = (facts: readonly LimitFact[], atMs: number): HeaderFields => {
  const fields: Record<string, string> = {}
  const tightest = new Map<string, LimitFact>()
  for (const fact of facts) {
    const name = headerNames[fact.dimension]
    if (name === undefined) continue
    const known = tightest.get(name)
    if (known === undefined || fact.remaining < known.remaining) tightest.set(name, fact)
  }
  for (const [name, fact] of tightest) {
    fields[`x-ratelimit-limit-${name}`] = `${fact.limit}`
    fields[`x-ratelimit-remaining-${name}`] = `${fact.remaining}`
    fields[`x-ratelimit-reset-${name}`] = goDuration(fact.resetAtMs - atMs)
  }
  return fields
}

/** A duration as Go prints it and OpenAI sends it: `120ms`, `59.874s`, `6m0s`, `11h2m3s`. */
export const goDuration = (durationMs: number): string => {
  const wholeMs = Math.max(0, Math.ceil(durationMs))
  if (wholeMs < 1_000) return wholeMs === 0 ? '0s' : `${wholeMs}ms`
  const hours = Math.floor(wholeMs / 3_600_000)
  const minutes = Math.floor((wholeMs % 3_600_000) / 60_000)
  const seconds = `${(wholeMs % 60_000) / 1_000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
