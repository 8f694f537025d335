/**
 * Codes and sentences that more than one provider uses, or that gateways relay without their provider's
 * name. Each pattern needs the words that carry the meaning together; a single word never decides.
 */
import type { EvidenceFacts, EvidenceScope } from '../../machines/model/evidence.ts'
import { type Finding, hasCode, type Signal } from './answer.ts'
import { dimensionFinding, readDimension, readNumber, readTally } from './dimension.ts'
import { readPlanWindow } from './plan-window.ts'

const requestFault: Finding = { kind: 'not-capacity', scope: 'model', retryable: false }
const spent: Finding = { kind: 'quota-exhausted', scope: 'credential', retryable: false }
const concurrency: Finding = { kind: 'concurrency', scope: 'credential', retryable: true }

const requestFaultCodes =
  /^(?:context_length_exceeded|context_window_exceeded(?:_error)?|string_above_max_length|content_filter|content_policy_violation(?:_error)?|responsible_ai_policy_violation|request_too_large|data_inspection_failed)$/
const accelerationCodes = /^(?:slow_down|limit_burst_rate|throttling_burst_rate|.*acceleration_limit.*)$/
const concurrencyCodes =
  /in_flight_budget|^(?:max_parallel_requests|parallel_requests)$|concurren(?:cy|t)(?:_requests?|_connections?)?_(?:limit|limited|exceeded|limit_exceeded|limit_reached)$/
const spentCodes =
  /^(?:insufficient_(?:quota|balance|credits?|funds|user_quota)|credit_balance_(?:exhausted|too_low)|exceeded_current_quota(?:_error)?|service_quota_exceeded_exception|openrouter_(?:credits|key_limit)|arrearage|budget_exceeded|payment_required|out_of_credits?|account_(?:suspended|deactivated|overdue(?:_error)?)|(?:pre_consume_)?token_quota_(?:failed|reached)|billing_\w+|\w*_billing_error)$|spend(?:ing)?_(?:limit|cap)|usage_limit_(?:exceeded|reached)$|free_tier_only$/
const overloadCodes =
  /overloaded|^(?:no_capacity|resource_unavailable|queue_exceeded|model_not_ready_exception|service_unavailable_exception|3505)$|capacity_(?:exceeded|exhausted)$/

/** Codes with which providers refuse for a rate, under any status. */
export const rateCodes =
  /^(?:rate_limit|rate_limit_error|rate_limit_exceeded|rate_limited|rate_limit_reached(?:_error)?|model_rate_limit|too_many_requests(?:_error|_exception)?|thrott\w+|resource_(?:has_been_)?exhausted|some_resource_has_been_exhausted|\w+_rate_limited|dynamic_\w+_limited|limit_requests|1300)$/

export const isRateLimited = (signal: Signal): boolean => {
  return signal.status === 429 || hasCode(signal, rateCodes)
}

/** The text speaks of one model rather than of the whole service. */
export const namesModel = (text: string): boolean => {
  return (
    /\bmodel\b/i.test(text) ||
    /\brate limit (?:reached|exceeded) for [`'"]?[a-z][\w./:-]{0,60}\d/i.test(text) ||
    /\b(?:requests?|access) to [`'"]?[a-z][\w./:-]{0,60}\d[\w.-]{0,30}\b/i.test(text)
  )
}

/**
 * The finding from machine codes alone. The narrower code comes first: `slow_down` also carries a 503 type.
 */
export const readCodes = (signal: Signal, overloadScope: EvidenceScope): Finding | null => {
  if (hasCode(signal, requestFaultCodes)) return requestFault
  if (hasCode(signal, accelerationCodes)) return acceleration(signal.text)
  if (hasCode(signal, concurrencyCodes)) return concurrency
  if (hasCode(signal, spentCodes)) return spent
  if (hasCode(signal, overloadCodes)) return overload(signal.text, overloadScope)
  return null
}

/** More than the account's rest pays for: this prompt is too large, and a smaller one passes. */
const tooLargeForCredit =
  /\b(?:prompt|input|output|completion|max) tokens? limit exceeded: ?\d[\d,]{0,15} ?> ?[1-9]|\bcan only afford [1-9]/i

const requestFaultSentences = [
  tooLargeForCredit,
  /\bmaximum context length\b/i,
  /\bprompt is too long\b/i,
  /\bexceeds? (?:the )?(?:model'?s? )?(?:maximum )?context (?:limit|window|length)/i,
  /\binput token count\b.{0,40}\bexceeds\b/i,
  /\bmaximum number of tokens allowed\b/i,
  /\binput is too long for\b/i,
  /\bexceeds? (?:the )?(?:available )?context size\b/i,
]

const accelerationSentences = [
  /\busage increase rate\b/i,
  /\bacceleration limit/i,
  /\b(?:request|traffic|token|usage) rate (?:has )?increased too (?:quickly|fast)/i,
  /^slow down\b/im,
  /\bslow down (?:the )?(?:traffic|request|token)s? growth\b/i,
  /\b(?:rate|traffic) growth (?:limit|too fast)\b|\brequest burst\b|\btraffic (?:surge|burst)\b/i,
  /\bincrease (?:requests|traffic|the rate|your (?:traffic|requests)) (?:more )?gradually\b/i,
  /(?:流量|请求|調用|调用)(?:速率|频率)?(?:增长|增速|突增|激增)(?:过快|太快|限制|过高)?/,
  /\bcurrent limit is \d[\d,]{0,20} .{0,48}\bincreases? to \d/i,
]

const concurrencySentences = [
  /\bconcurrent (?:connection|request|call|session|stream)s?\b.{0,60}\b(?:exceed|limit|reached)/i,
  /\b(?:too many|maximum(?: number of)?|exceed\w*|reached)\b.{0,40}\bconcurrent\b/i,
  /\b(?:max(?:imum)?(?: organization)? concurrency|concurrency (?:limit|quota))\b/i,
  /\bhigh concurrency\b/i,
  /(?:并发|併發|並發)(?:数|数量|请求|量)?[^。\n]{0,12}(?:超|上限|过高|过大|限制|达到)|(?:超|达到)[^。\n]{0,12}(?:并发|併發|並發)/,
  /\bcredits\b.{0,60}\bin-flight requests\b/i,
  /\bmax parallel request limit reached\b/i,
]

const spentSentences = [
  /\bcredit balance (?:is )?too low\b/i,
  /\binsufficient (?:account )?(?:balance|credits?|funds)\b/i,
  /\b(?:no|out of|used all(?: of)?(?: your| the)?(?: available)?|not enough|(?:does not|doesn'?t|do not|don'?t) have (?:any|enough)) (?:prepaid |prepayment |remaining |available )?credits?\b/i,
  /\bcredits?\b[^.\n]{0,30}\b(?:depleted|exhausted|used up)\b/i,
  /\b(?:reached|reaching|exceeded|exceeding|hit|over)\b[^.\n]{0,60}\b(?:spend|spending|budget|billing) (?:hard )?(?:limit|cap)\b/i,
  /\b(?:spend|spending|budget|billing)(?: hard)? (?:limit|cap)\b[^.\n]{0,30}\b(?:reached|exceeded|hit|exhausted)\b/i,
  /\bspecified (?:\w+ ){0,3}usage limits?\b/i,
  /\b(?:requires? more credits|can only afford)\b/i,
  /\b(?:account )?(?:balance|credits?|funds?) (?:is|are) (?:insufficient|too low|not enough|negative|zero|empty)\b/i,
  /\boverdue (?:balance|payment|bill|invoice)s?\b|\baccount (?:is )?(?:overdue|in arrears)\b/i,
  /\btoken (?:remain )?quota\b[^.\n]{0,40}\b(?:failed|not enough|insufficient)\b/i,
  /\b(?:check your billing details|issue with your billing|payment (?:is )?(?:required|overdue)|past[- ]due|unpaid invoices?)\b/i,
  /\baccount\b[^.\n]{0,80}\b(?:is|has been|was) (?:suspended|deactivated|not active)\b/i,
  /\b(?:budget has been exceeded|over budget|key limit exceeded)\b/i,
]

/** An empty account in Chinese. A plan's window says almost the same and is looked for first. */
const spentElsewhere =
  /(?:余额|餘額|额度|額度|资源包|積分|积分)[^。\n]{0,6}(?:不足|已用完|已用尽|耗尽)|欠费|欠費|(?:请|請)(?:先)?充值/

const overloadSentences = [
  /\boverloaded\b/i,
  /\bhigh (?:demand|traffic|load)\b/i,
  /\b(?:at|over|no|out of|insufficient) capacity\b/i,
  /\bcapacity (?:is )?(?:exceeded|exhausted|limited)\b/i,
  /\b(?:server|service|system|engine|model)s? (?:is |are )?(?:currently |too )?busy\b/i,
  /\bno available model provider\b/i,
  /\btoo many connections\b/i,
  /\bcapacity (?:is )?(?:currently )?unavailable\b/i,
  /\b(?:request )?queue is full\b/i,
  /\b(?:did not|didn'?t|could not) (?:generate|produce|return) (?:the |its )?first token\b/i,
  /(?:过载|過載|负载过高|服务繁忙|系统繁忙|服務繁忙|系統繁忙|访问量过大|拥挤|算力不足|混み合|과부하)/,
]

/** A rate that is refused without a number: enough where no status says it, inside a success or a server's fault. */
const rateSentences = [
  /\btoo many (?:requests|calls|queries)\b/i,
  /\brate[- ]limit(?:ed|s)?\b[^.\n]{0,40}\b(?:reached|exceeded|hit)\b|\b(?:reached|exceeded|exceeds|hit|over)\b[^.\n]{0,40}\brate[- ]limit/i,
  /\b(?:request|call|query|access) (?:frequency|rate) (?:is )?(?:too (?:high|fast)|exceed\w*|over)\b/i,
  /\b(?:requests?|calls?) (?:was|were|is|are|has been|have been) (?:throttled|rate[- ]limited)\b/i,
  /(?:请求|請求|调用|調用|访问|訪問)[^。\n]{0,8}(?:过于频繁|過於頻繁|频繁|頻繁)|(?:频率|頻率|频次|速率)[^。\n]{0,8}(?:过高|過高|过快|過快|超|限制)|限流|流控/,
]

/** The words refuse a rate, and the status says nothing of its own. */
export const saysRate = (signal: Signal): boolean => {
  const { status, text } = signal
  if ((status >= 400 && status < 500) || hasCode(signal, /^(?:invalid_|bad_request)/)) return false
  return rateSentences.some((pattern) => pattern.test(text))
}

/** A rate that depends on the account's balance is the account's. */
const balanceBound =
  /\bless than \$ ?\d[\d.,]{0,12} (?:in|of) credits?\b|\b(?:based on|depends on|due to) your (?:\w{1,12} )?balance\b/i

/** Google uses these words for a minute's quota; other providers use the same words for an empty account. */
const currentQuota = /\bexceeded your current quota\b/i

/** The finding from sentences. `isGoogle` switches off the sentence that Google means differently. */
export const readSentences = (
  signal: Signal,
  overloadScope: EvidenceScope,
  isGoogle: boolean,
): Finding | null => {
  const { text } = signal
  const says = (patterns: ReadonlyArray<RegExp>): boolean => patterns.some((pattern) => pattern.test(text))
  if (says(requestFaultSentences)) return requestFault
  if (says(accelerationSentences)) return acceleration(text)
  if (says(concurrencySentences)) return { ...concurrency, facts: concurrencyFacts(text) }
  if (says(spentSentences)) return spent
  const plan = readPlanWindow(text)
  if (plan !== null) return plan
  if (spentElsewhere.test(text) || (!isGoogle && currentQuota.test(text))) return spent
  const dimension = mayNameDimension(signal) ? readDimension(text) : null
  if (dimension !== null) {
    return dimensionFinding(dimension, balanceBound.test(text) ? 'credential' : 'model', readTally(text))
  }
  const mayOverload = isRateLimited(signal) || signal.status >= 498 || signal.status < 300
  return mayOverload && says(overloadSentences) ? overload(text, overloadScope) : null
}

const refusalWords =
  /\brate[- ]limit|\bquota\b.{0,24}\bexceed|\bexceed\w*\b.{0,48}\bquota\b|\blimit (?:reached|exceeded)|\btoo many\b/i

/**
 * A faulty request may quote any text. Without a rate limit's own code or status, the words themselves must
 * refuse.
 */
const mayNameDimension = (signal: Signal): boolean => {
  const { status, text } = signal
  if (isRateLimited(signal) || status === 413) return true
  if (hasCode(signal, /^(?:invalid_|bad_request)/)) return false
  return status < 400 || status >= 500 || refusalWords.test(text)
}

/** The ceiling now and after its next step, where the provider states both. The step is not constant. */
export const acceleration = (text: string): Finding => {
  const found =
    /\bcurrent limit is (\d[\d,]{0,20}) (?:(input|output) )?(tokens|requests) per (second|minute|hour)(?:.{0,48}?\bincreases? to (\d[\d,]{0,20}))?/i.exec(
      text,
    )
  const currentLimit = readNumber(found?.[1])
  if (found === null || currentLimit === null)
    return { kind: 'acceleration', scope: 'model', retryable: true }
  const nextLimit = readNumber(found[5])
  const unit = [found[2], found[3], 'per', found[4]]
    .filter((word) => word !== undefined)
    .join('_')
    .toLowerCase()
  const facts: EvidenceFacts = { currentLimit, ...(nextLimit === null ? {} : { nextLimit }), unit }
  return { kind: 'acceleration', scope: 'model', retryable: true, facts }
}

const concurrencyFacts = (text: string): EvidenceFacts => {
  // "Your current concurrency is 8, above your limit of 7": the limit's own words come first.
  const stated =
    /\bconcurren(?:cy|t \w{1,20}) (?:limit|quota)(?: of|:| is)\s{0,2}(\d[\d,]{0,12})/i.exec(text) ??
    /\bconcurren(?:cy|t \w{1,20})\b(?: of|:| is)\s{0,2}(\d[\d,]{0,12})/i.exec(text)
  const limit = readNumber(stated?.[1])
  return limit === null ? {} : { limit }
}

/** Load across users. The scope is the model if the words name one, else the provider's default. */
export const overload = (text: string, scope: EvidenceScope): Finding => {
  return { kind: 'overloaded', scope: namesModel(text) ? 'model' : scope, retryable: true }
}
