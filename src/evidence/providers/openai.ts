import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { hasCode } from '../answer.ts'
import { dimensionFinding, readDimension, readTally } from '../dimension.ts'
import { parseDecimal, wholeMs } from '../duration.ts'
import { isExhausted, parseReset } from '../headers.ts'
import { isRateLimited, readCodes } from '../sentences.ts'

const read = (signal: Signal): Finding | null => {
  // The allowance of a subscription, which comes back at a time that the body states.
  if (hasCode(signal, /^usage_limit_reached$/)) return planFinding(signal)
  // The flex tier has no place just now: no limit of the account was met.
  if (hasCode(signal, /^resource_unavailable$/))
    return { kind: 'overloaded', scope: 'model', retryable: true }
  // The code decides before the type: a spend limit also says `type: requests`.
  const coded = readCodes(signal, openai.overloadScope)
  if (coded !== null || !isRateLimited(signal)) return coded
  const dimension = readDimension(signal.text)
  if (dimension === null) return typedFinding(signal)
  const finding = dimensionFinding(dimension, 'model', readTally(signal.text))
  // A passing refusal has the same code and type, but this request alone is above the limit.
  return /\brequest too large\b/i.test(signal.text) ? { ...finding, retryable: false } : finding
}

const headerOf = (signal: Signal, name: string): string | undefined =>
  signal.headers.get(name) ?? signal.innerHeaders.get(name)

/** The whole plan, or the bucket that one class of models has beside it: then the answer names that bucket. */
const planFinding = (signal: Signal): Finding => {
  const bucket = headerOf(signal, 'x-codex-limit-name') ?? ''
  const scope = /[a-z]\W?\d/i.test(bucket) || bucketWords.test(signal.text) ? 'model' : 'credential'
  return { kind: 'quota-exhausted', scope, retryable: true, waitMs: planResetMs(signal) }
}

const bucketWords = /\b(?:usage )?limit (?:reached )?for [`'"]?[a-z][\w./:-]{0,60}\d/i

/** Of the windows that are used up, when the last is whole again. */
const planResetMs = (signal: Signal): number | null => {
  const waits = ['primary', 'secondary'].map((window) => {
    const used = parseDecimal(headerOf(signal, `x-codex-${window}-used-percent`) ?? '')
    if (used === null || used < 100) return null
    const after = parseDecimal(headerOf(signal, `x-codex-${window}-reset-after-seconds`) ?? '')
    if (after !== null) return wholeMs(after * 1000)
    const atMs = parseReset(headerOf(signal, `x-codex-${window}-reset-at`) ?? '')?.atMs ?? null
    return atMs === null || signal.receivedAtMs === null ? null : Math.max(0, atMs - signal.receivedAtMs)
  })
  const stated = waits.filter((wait) => wait !== null)
  return stated.length === 0 ? null : Math.max(...stated)
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
