import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding } from '../dimension.ts'

const allocated = /\ballocated quota exceeded\b/i

const read = (signal: Signal): Finding | null => {
  // Its "allocated quota" is a token rate, even under the code that other providers use for an empty account.
  if (hasCode(signal, /^throttling_allocation_quota$/) || allocated.test(signal.text)) {
    return dimensionFinding({ noun: 'tokens', window: 'minute', limit: null }, 'model', {})
  }
  if (hasCode(signal, /^(?:throttling_rate_quota|limit_requests|throttling)$/)) {
    return dimensionFinding({ noun: 'requests', window: 'minute', limit: null }, 'model', {})
  }
  return null
}

/** DashScope: dotted throttling codes, or their short names on its OpenAI-like wire. */
export const dashscope: ProviderReader = {
  family: 'dashscope',
  recognises: (signal) =>
    hasCode(signal, /^(?:throttling(?:_\w+_(?:quota|rate))?|limit_requests|limit_burst_rate)$/) ||
    allocated.test(signal.text),
  read,
  overloadScope: 'model',
  rateLimitScope: 'model',
}
