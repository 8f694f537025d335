import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { hasCode } from '../answer.ts'
import { dimensionFinding, readDimension, readTally } from '../dimension.ts'
import { isExhausted } from '../headers.ts'
import { isRateLimited, readCodes } from '../sentences.ts'

const read = (signal: Signal): Finding | null => {
  // The allowance of a subscription, which comes back at a time that the body states.
  if (hasCode(signal, /^usage_limit_reached$/))
    return { kind: 'quota-exhausted', scope: 'credential', retryable: true }
  // The code decides before the type: a spend limit also says `type: requests`.
  const coded = readCodes(signal, openai.overloadScope)
  if (coded !== null || !isRateLimited(signal)) return coded
  const dimension = readDimension(signal.text)
  if (dimension === null) return typedFinding(signal)
  const finding = dimensionFinding(dimension, 'model', readTally(signal.text))
  // A passing refusal has the same code and type, but this request alone is above the limit.
  return /\brequest too large\b/i.test(signal.text) ? { ...finding, retryable: false } : finding
}

/** A short message, with the noun only in `type`. Compound models say `compound` and keep the sentence. */
const typedFinding = (signal: Signal): Finding | null => {
  const noun = hasCode(signal, /^tokens$/) ? 'tokens' : hasCode(signal, /^requests$/) ? 'requests' : null
  if (noun === null) return null
  const shared = signal.limits.some(
    (limit) => limit.dimension === `project-${noun}-per-minute` && isExhausted(limit),
  )
  const daily = signal.limits.some((limit) => limit.dimension === `${noun}-per-day` && isExhausted(limit))
  const dimension = { noun, window: daily ? 'day' : 'minute', limit: null } as const
  return dimensionFinding(dimension, shared ? 'credential' : 'model', {})
}

/**
 * OpenAI and the many providers with its wire: `type: tokens | requests` beside `code: rate_limit_exceeded`.
 */
export const openai: ProviderReader = {
  family: 'openai',
  recognises: (signal) =>
    hasCode(signal, /^usage_limit_reached$/) ||
    (hasCode(signal, /^rate_limit_exceeded$/) && hasCode(signal, /^(?:tokens|requests|compound)$/)),
  read,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}
