import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding, dimensionOfAbbreviation, windowOf } from '../dimension.ts'

/** The account's allowance over all free models: `free-models-per-day`. */
const freeModels = /\bfree-models-per-(min|minute|day)\b/i
/** One model's limit on this account: `limit_rpm/vendor/model`. */
const modelLimit = /\blimit_([rt]p[md])\b/i
const upstream = /\brate-limited upstream\b/i

const read = (signal: Signal): Finding | null => {
  // This 402 passes: calls that still run hold the credits.
  if (hasCode(signal, /in_flight_budget/))
    return { kind: 'concurrency', scope: 'credential', retryable: true }
  if (hasCode(signal, /^openrouter_\w*(?:credits|key_limit)$/)) {
    return { kind: 'quota-exhausted', scope: 'credential', retryable: false }
  }
  const free = freeModels.exec(signal.text)?.[1] ?? freeTierWindow(signal)
  if (free !== null)
    return dimensionFinding({ noun: 'requests', window: windowOf(free), limit: null }, 'credential', {})
  const limited = modelLimit.exec(signal.text)?.[1]
  if (limited !== undefined)
    return dimensionFinding({ ...dimensionOfAbbreviation(limited), limit: null }, 'model', {})
  return upstream.test(signal.text) ? { kind: 'unknown-rate-limit', scope: 'model', retryable: true } : null
}

const freeTierWindow = (signal: Signal): string | null => {
  if (hasCode(signal, /^openrouter_free_\w*(?:daily|day)$/)) return 'day'
  return hasCode(signal, /^openrouter_free_\w*(?:minute|minutely|min|rpm)$/) ? 'minute' : null
}

/** OpenRouter: its own limits carry `limit_source`; a provider's refusal lies in `metadata.raw`. */
export const openrouter: ProviderReader = {
  family: 'openrouter',
  recognises: (signal) =>
    hasCode(signal, /^openrouter_|in_flight_budget/) ||
    freeModels.test(signal.text) ||
    modelLimit.test(signal.text) ||
    upstream.test(signal.text),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
