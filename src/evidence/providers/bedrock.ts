import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding, readDimension, readTally } from '../dimension.ts'

/** "Too many tokens, please wait": the noun alone, because the other window says "per day". */
const tooMany = /\btoo many (tokens|requests)\b,? please wait/i

const read = (signal: Signal): Finding | null => {
  if (/\btoo many connections\b/i.test(signal.text))
    return { kind: 'overloaded', scope: 'model', retryable: true }
  if (!hasCode(signal, /^thrott/) && !tooMany.test(signal.text)) return null
  const dimension = readDimension(signal.text)
  if (dimension !== null) return dimensionFinding(dimension, 'model', readTally(signal.text))
  const noun = tooMany.exec(signal.text)?.[1]?.toLowerCase()
  if (noun === 'tokens' || noun === 'requests')
    return dimensionFinding({ noun, window: 'minute', limit: null }, 'model', {})
  const hasty = /\brequest rate is too high\b|\bfrequency of requests\b/i.test(signal.text)
  return hasty ? dimensionFinding({ noun: 'requests', window: 'minute', limit: null }, 'model', {}) : null
}

/** Amazon Bedrock: limits per model and region; it never states a wait. */
export const bedrock: ProviderReader = {
  family: 'bedrock',
  recognises: (signal) =>
    hasCode(
      signal,
      /^(?:throttling_exception|model_not_ready_exception|service_quota_exceeded_exception)$/,
    ) ||
    signal.headers.has('x-amzn-requestid') ||
    tooMany.test(signal.text),
  read,
  overloadScope: 'model',
  rateLimitScope: 'model',
}
