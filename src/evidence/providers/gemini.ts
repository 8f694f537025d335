import {
  type Finding,
  hasCode,
  isObject,
  type JsonObject,
  type ProviderReader,
  type Signal,
} from '../answer.ts'
import { type Dimension, dimensionFinding, readNumber, windowOf, windowOrder } from '../dimension.ts'
import { parseDecimal, parseDurationMs, parseInstantMs, wholeMs } from '../duration.ts'
import { proseWaitMs } from '../retry-after.ts'
import { overload } from '../sentences.ts'

const googleMark = /\b(?:generativelanguage|aiplatform)\.googleapis\.com\b|\bRESOURCE_EXHAUSTED\b|\bquota_id:/
/** A money rate over ten minutes; unlike a spend cap it clears by itself. */
const spendRate = /\bspend(?:ing)? rate limit\b/i
/** The shared pool of pay-as-you-go, not the quota of one key. */
const sharedPool = /\bresource exhausted\b[.,]\s+please try again/i
/** An allowance that a client program manages and that comes back at a stated time. */
const renewedQuota = /\bquota will reset after\b/i

const read = (signal: Signal): Finding | null => {
  const { text } = signal
  if (spendRate.test(text)) return { kind: 'unknown-rate-limit', scope: 'credential', retryable: true }
  if (hasCode(signal, /^model_capacity_exhausted$/)) return overload(text, 'model')
  const waitMs = longestOf(textDelayMs(text), quotaResetMs(signal))
  const violated = violations(signal)
  // Without any allocation no wait helps, even if the answer also states a retry time.
  if (violated.some(({ limit }) => limit === 0) || /\blimit: ?0(?![\d.])/.test(text)) {
    return { kind: 'quota-exhausted', scope: 'model', retryable: false, facts: { limit: 0 }, waitMs }
  }
  const [longest] = violated.toSorted((left, right) => rank(right) - rank(left))
  if (longest !== undefined) {
    const facts = longest.limit === null ? {} : { limit: longest.limit }
    return { ...dimensionFinding({ ...longest, limit: null }, 'model', facts), waitMs }
  }
  if (renewedQuota.test(text) || isQuotaReset(signal)) {
    return {
      kind: 'quota-exhausted',
      scope: 'model',
      retryable: true,
      waitMs: longestOf(waitMs, proseWaitMs(text)),
    }
  }
  return sharedPool.test(text) ? { kind: 'overloaded', scope: 'model', retryable: true } : null
}

/** The allowance of a client program: `quotaResetDelay` beside the reason, or only a time. */
const isQuotaReset = (signal: Signal): boolean =>
  hasCode(signal, /^quota_exhausted$/) ||
  signal.objects.some((object) => 'quotaResetDelay' in object || 'quotaResetTimeStamp' in object)

const quotaResetMs = ({ objects, receivedAtMs }: Signal): number | null => {
  for (const { quotaResetDelay: delay, quotaResetTimeStamp: time } of objects) {
    const wait = typeof delay === 'string' ? parseDurationMs(delay.slice(0, 64)) : null
    if (wait !== null) return wait
    const atMs = typeof time === 'string' ? parseInstantMs(time) : null
    if (atMs !== null && receivedAtMs !== null) return Math.max(0, atMs - receivedAtMs)
  }
  return null
}

/** Of two stated waits the longer is safe. */
const longestOf = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? (left ?? right) : Math.max(left, right)

const rank = ({ window }: Dimension): number => {
  return windowOrder.indexOf(window)
}

/** Violated quotas: from the structured details, else from the metrics that the text names. */
const violations = (signal: Signal): ReadonlyArray<Dimension> => {
  const listed = signal.objects.flatMap((object) => {
    const items = Array.isArray(object['violations']) ? object['violations'].slice(0, 24) : []
    return [...items.filter(isObject), ...(typeof object['quota_limit'] === 'string' ? [object] : [])]
  })
  const structured = listed.map(violationOf).filter((each) => each !== null)
  if (structured.length > 0) return structured
  const named = [...signal.text.matchAll(/\bquota_id: ?"([\w-]{3,120})"/g)].map(([, id]) =>
    quotaOf(id ?? '', null),
  )
  if (named.some((each) => each !== null)) return named.filter((each) => each !== null)
  return [
    ...signal.text
      .slice(0, 4096)
      .matchAll(
        /googleapis\.com\/([\w-]{3,120})|\bmetric:? '([\w -]{3,80})'|\b(\w{0,60}_(?:requests|token_count)), ?limit/g,
      ),
  ]
    .map(([sentence, path, metric, bare]) => quotaOf(path ?? metric ?? bare ?? sentence, null))
    .filter((each) => each !== null)
}

const violationOf = (violation: JsonObject): Dimension | null => {
  const id =
    violation['quotaId'] ?? violation['quota_limit'] ?? violation['quotaMetric'] ?? violation['quota_metric']
  const value = violation['quotaValue'] ?? violation['quota_limit_value']
  const limit = typeof value === 'number' ? value : readNumber(typeof value === 'string' ? value : undefined)
  return typeof id === 'string' && id.length <= 200 ? quotaOf(id, limit) : null
}

/** A quota's name, in camel case or snake case, holds its noun and its window; Google's default is the minute. */
const quotaOf = (name: string, limit: number | null): Dimension | null => {
  const words = name.replace(/([a-z])([A-Z])/g, '$1_$2').toLowerCase()
  const window = windowOf(/per[_ -](second|minute|hour|day|month)/.exec(words)?.[1])
  if (/input[_ -]token/.test(words)) return { noun: 'input-tokens', window, limit }
  if (/output[_ -]token/.test(words)) return { noun: 'output-tokens', window, limit }
  if (/token/.test(words)) return { noun: 'tokens', window, limit }
  return /request/.test(words) ? { noun: 'requests', window, limit } : null
}

/** The protobuf text form that the Python client prints: `retry_delay { seconds: 38 }`. */
const textDelayMs = (text: string): number | null => {
  const seconds = parseDecimal(/\bretry_delay \{\s{0,8}seconds: (\d{1,9})/.exec(text)?.[1] ?? '')
  return seconds === null ? null : wholeMs(seconds * 1000)
}

/** Whether this answer speaks Google's dialect, in which "current quota" is a rate and not money. */
export const isGoogle = (signal: Signal): boolean => {
  return (
    signal.declared === 'gemini' ||
    signal.named.includes('gemini') ||
    googleMark.test(signal.text) ||
    signal.objects.some(
      (object) => object['status'] === 'RESOURCE_EXHAUSTED' || Array.isArray(object['violations']),
    )
  )
}

/** Gemini and Vertex AI: quotas per model and project, named in `QuotaFailure` or in the metric's path. */
export const gemini: ProviderReader = {
  family: 'gemini',
  recognises: isGoogle,
  read,
  overloadScope: 'model',
  rateLimitScope: 'model',
}
