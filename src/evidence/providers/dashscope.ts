import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding } from '../dimension.ts'

const allocated = /\ballocated quota exceeded\b/i

/** "week allocated quota exceeded", "concurrency allocated quota exceeded": the word before tells which quota. */
const subject = /\b([\w-]{1,24})\s+allocated quota exceeded\b/i
const planWindow = /^(?:\d{1,3}[-_]?h(?:ours?)?|hour|hourly|day|daily|week|weekly|month|monthly|session)$/i

const read = (signal: Signal): Finding | null => {
  const word = subject.exec(signal.text)?.[1] ?? ''
  if (/^concurren/i.test(word)) return { kind: 'concurrency', scope: 'credential', retryable: true }
  if (planWindow.test(word)) return { kind: 'quota-exhausted', scope: 'credential', retryable: true }
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
