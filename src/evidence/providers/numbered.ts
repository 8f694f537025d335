/** Providers that refuse by number: the sentence beside it comes in two languages, or says nothing. */
import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding } from '../dimension.ts'
import { acceleration, namesModel } from '../sentences.ts'

const perMinute = (noun: 'requests' | 'tokens'): Finding =>
  dimensionFinding({ noun, window: 'minute', limit: null }, 'model', {})
const spent: Finding = { kind: 'quota-exhausted', scope: 'credential', retryable: false }
const planWindow: Finding = { kind: 'quota-exhausted', scope: 'credential', retryable: true }
const concurrency: Finding = { kind: 'concurrency', scope: 'credential', retryable: true }
const overloaded: Finding = { kind: 'overloaded', scope: 'model', retryable: true }
const rejectedKey: Finding = { kind: 'not-capacity', scope: 'credential', retryable: false }
const fault: Finding = { kind: 'not-capacity', scope: 'model', retryable: false }
const transient: Finding = { kind: 'not-capacity', scope: 'provider', retryable: true }

type Numbers = ReadonlyMap<string, Finding>

const findingIn = (numbers: Numbers, signal: Signal): Finding | null => {
  const code = signal.codes.find((each) => numbers.has(each))
  return code === undefined ? null : (numbers.get(code) ?? null)
}

const zaiNumbers: Numbers = new Map([
  ['1000', rejectedKey],
  ['1001', rejectedKey],
  ['1002', rejectedKey],
  ['1003', rejectedKey],
  ['1113', spent],
  ['1211', fault],
  ['1261', fault],
  ['1301', fault],
  ['1302', concurrency],
  ['1303', perMinute('requests')],
  ['1304', { kind: 'requests-per-day', scope: 'model', retryable: true }],
  ['1305', overloaded],
  ['1308', planWindow],
  ['1309', spent],
  ['1310', planWindow],
  ['1311', fault],
  ['1312', overloaded],
  ['1313', spent],
])
/** Numbers that no other provider is known to use. */
const zaiMarks = /^(?:1113|130[23458]|1309|131[0-3])$/

/** Z.ai and Zhipu: one error for each number, in English or in Chinese. */
export const zai: ProviderReader = {
  family: 'zai',
  recognises: (signal) => signal.declared !== 'minimax' && hasCode(signal, zaiMarks),
  read: (signal) => findingIn(zaiNumbers, signal),
  overloadScope: 'model',
  rateLimitScope: 'credential',
}

const minimaxNumbers: Numbers = new Map([
  ['1000', transient],
  ['1001', transient],
  ['1002', perMinute('requests')],
  ['1004', rejectedKey],
  ['1008', spent],
  ['1013', transient],
  ['1024', transient],
  ['1026', fault],
  ['1027', fault],
  ['1033', transient],
  ['1039', perMinute('tokens')],
  ['1041', concurrency],
  ['1042', fault],
  ['2013', fault],
  ['2045', acceleration('')],
  ['2049', rejectedKey],
  ['2056', planWindow],
  ['2061', spent],
])
/** On the wires of other vendors the number ends the sentence: `… (2056)`. */
const numberAtEnd = /\((1002|1008|1039|1041|2045|2056|2061)\)\s*$/m

const readMinimax = (signal: Signal): Finding | null => {
  const atEnd = minimaxNumbers.get(numberAtEnd.exec(signal.text)?.[1] ?? '')
  return atEnd ?? findingIn(minimaxNumbers, signal)
}

/** MiniMax: `base_resp` with a number, mostly behind a 200. */
export const minimax: ProviderReader = {
  family: 'minimax',
  recognises: (signal) =>
    numberAtEnd.test(signal.text) || signal.objects.some((object) => 'status_msg' in object),
  read: readMinimax,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}

const ark = (signal: Signal): Finding | null => {
  const scope = namesModel(signal.text) ? 'model' : 'credential'
  if (hasCode(signal, /^request_burst_too_fast$/)) return acceleration(signal.text)
  // Paused by a ceiling that the operator set, or a trial that is over: neither comes back by itself.
  if (hasCode(signal, /^set_limit_exceeded$/)) return { kind: 'quota-exhausted', scope, retryable: false }
  if (hasCode(signal, /^account_overdue_error$/)) return spent
  if (hasCode(signal, /^account_quota_exceeded$/)) return planWindow
  if (hasCode(signal, /^quota_exceeded$/)) {
    return { kind: 'quota-exhausted', scope, retryable: !/\btrial\b|试用/i.test(signal.text) }
  }
  if (hasCode(signal, /^inflight_batchsize_exceeded$/)) return { ...concurrency, scope }
  const rate = signal.codes.map((code) => /(?:^|_)([tr]pm)_(?:rate_)?limit/.exec(code)?.[1]).find(Boolean)
  return rate === undefined ? null : perMinute(rate === 'tpm' ? 'tokens' : 'requests')
}

/** Volcengine's Ark: codes in camel case that name the limit. */
export const volcengine: ProviderReader = {
  family: 'volcengine',
  recognises: (signal) =>
    hasCode(
      signal,
      /^(?:request_burst_too_fast|set_limit_exceeded|account_overdue_error|account_quota_exceeded|inflight_batchsize_exceeded|\w*(?:account|endpoint)_[tr]pm_(?:rate_)?limit_exceeded)$/,
    ),
  read: ark,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
