/**
 * Makes one `Evidence` from one answer. The order: unwrap, then machine codes, the dimension sentence,
 * headers, status. The declared provider's reader comes first, then every reader that recognises the shape,
 * so that an unknown name or a proxy changes nothing.
 */
import type { Evidence, EvidenceScope } from '../../machines/model/evidence.ts'
import type { Finding, ProviderAnswer, ProviderReader, Signal } from './answer.ts'
import { hasCode } from './answer.ts'
import type { Family } from './family.ts'
import { isExhausted, type LimitReading, resetInMs } from './headers.ts'
import { anthropic } from './providers/anthropic.ts'
import { azure } from './providers/azure.ts'
import { bedrock } from './providers/bedrock.ts'
import { dashscope } from './providers/dashscope.ts'
import { gemini, isGoogle } from './providers/gemini.ts'
import { groq } from './providers/groq.ts'
import { litellm } from './providers/litellm.ts'
import { mistral } from './providers/mistral.ts'
import { moonshot } from './providers/moonshot.ts'
import { minimax, volcengine, zai } from './providers/numbered.ts'
import { openai } from './providers/openai.ts'
import { openrouter } from './providers/openrouter.ts'
import { deepseek, fireworks, vllm } from './providers/plain.ts'
import { together } from './providers/together.ts'
import { xai } from './providers/xai.ts'
import { readRetryAfterMs } from './retry-after.ts'
import { isRateLimited, namesModel, overload, readCodes, readSentences, saysRate } from './sentences.ts'
import { unwrap } from './unwrap.ts'

/** Narrow dialects first; OpenAI's is spoken by many and asked last. */
const readers: ReadonlyArray<ProviderReader> = [
  xai,
  zai,
  minimax,
  volcengine,
  moonshot,
  openrouter,
  together,
  dashscope,
  mistral,
  gemini,
  azure,
  bedrock,
  groq,
  vllm,
  fireworks,
  deepseek,
  anthropic,
  litellm,
  openai,
]

/** Relays, whose own name does not tell which provider refused. */
const relays: ReadonlySet<Family> = new Set(['litellm', 'openrouter'])

/**
 * The evidence about capacity in an answer. Pure: it reads no clock, and dates count from `receivedAt`. It
 * never throws, and reads a bounded part of any input.
 */
export const classify = (answer: ProviderAnswer): Evidence => {
  try {
    return readEvidence(answer)
  } catch {
    // A body may be a live object whose accessors throw. Such an error must not reach the caller.
    return readEvidence({ provider: '', status: Number(answer?.status) || 0, headers: {}, body: '' })
  }
}

/** Like `classify`, without its guard against accessors that throw: plain data cannot make it throw. */
export const readEvidence = (answer: ProviderAnswer): Evidence => {
  const signal = unwrap(answer)
  const finding = signal.isError ? readFinding(signal) : served
  const { kind, scope, retryable, facts = {} } = finding
  return {
    kind,
    scope,
    retryable,
    facts,
    retryAfterMs: readRetryAfterMs(signal, kind, finding.waitMs ?? null),
  }
}

const served: Finding = { kind: 'not-capacity', scope: 'model', retryable: true }

const readFinding = (signal: Signal): Finding => {
  const asked = readersFor(signal)
  for (const reader of asked) {
    const finding = reader.read(signal)
    if (finding !== null) return finding
  }
  const { overloadScope, rateLimitScope } = holds(asked)
  return (
    readCodes(signal, overloadScope) ??
    readSentences(signal, overloadScope, isGoogle(signal)) ??
    readHeaders(signal) ??
    readStatus(signal, overloadScope, rateLimitScope)
  )
}

const readersFor = (signal: Signal): ReadonlyArray<ProviderReader> => {
  const named = readers.filter(({ family }) => signal.named.includes(family))
  const declared = readers.filter(({ family }) => family === signal.declared)
  const recognised = readers.filter((reader) => reader.recognises(signal))
  const isRelay = signal.declared !== null && relays.has(signal.declared)
  return [
    ...new Set(isRelay ? [...declared, ...named, ...recognised] : [...named, ...declared, ...recognised]),
  ]
}

/**
 * The scope of a refusal that states none: the default of the first reader that found something. A relay's
 * default comes last.
 */
const holds = (
  asked: ReadonlyArray<ProviderReader>,
): {
  overloadScope: EvidenceScope
  rateLimitScope: EvidenceScope
} => {
  const answerer = asked.find(({ family }) => !relays.has(family)) ?? asked[0]
  return answerer ?? { overloadScope: 'provider', rateLimitScope: 'credential' }
}

/** A rate limit without a sentence: an exhausted window in the headers names the dimension. */
const readHeaders = (signal: Signal): Finding | null => {
  if (!isRateLimited(signal)) return null
  const exhausted = signal.limits.filter((limit) => isExhausted(limit) && bindings.has(limit.dimension))
  const [binding] = exhausted.toSorted((left, right) => compareBinding(left, right, signal.receivedAtMs))
  if (binding === undefined) return null
  // A window of size 0 is a pool that this account has no part of.
  if (binding.limit === 0)
    return { kind: 'quota-exhausted', scope: 'model', retryable: false, facts: { limit: 0 } }
  return bindings.get(binding.dimension) ?? null
}

const bindings: ReadonlyMap<string, Finding> = new Map<string, Finding>([
  ['requests-per-day', { kind: 'requests-per-day', scope: 'model', retryable: true }],
  ['tokens-per-day', { kind: 'tokens-per-day', scope: 'model', retryable: true }],
  ['input-tokens-per-minute', { kind: 'input-tokens-per-minute', scope: 'model', retryable: true }],
  ['output-tokens-per-minute', { kind: 'output-tokens-per-minute', scope: 'model', retryable: true }],
  ['project-tokens-per-minute', { kind: 'tokens-per-minute', scope: 'credential', retryable: true }],
  ['project-requests-per-minute', { kind: 'requests-per-minute', scope: 'credential', retryable: true }],
  ['tokens-per-minute', { kind: 'tokens-per-minute', scope: 'model', retryable: true }],
  ['requests-per-minute', { kind: 'requests-per-minute', scope: 'model', retryable: true }],
])
const bindingOrder = [...bindings.keys()]

/** Orders windows: days before minutes, one side's tokens before their sum, then the later reset first. */
const compareBinding = (left: LimitReading, right: LimitReading, receivedAtMs: number | null): number => {
  const tier = (limit: LimitReading): number =>
    limit.dimension.endsWith('day') ? 0 : /^(?:in|out)put/.test(limit.dimension) ? 1 : 2
  const wait = (limit: LimitReading): number => resetInMs(limit, receivedAtMs) ?? 0
  return (
    tier(left) - tier(right) ||
    wait(right) - wait(left) ||
    bindingOrder.indexOf(left.dimension) - bindingOrder.indexOf(right.dimension)
  )
}

const readStatus = (signal: Signal, overloadScope: EvidenceScope, rateLimitScope: EvidenceScope): Finding => {
  const { status, text } = signal
  if (isRateLimited(signal) || saysRate(signal)) {
    return { kind: 'unknown-rate-limit', scope: namesModel(text) ? 'model' : rateLimitScope, retryable: true }
  }
  if (status === 402) return { kind: 'quota-exhausted', scope: 'credential', retryable: false }
  if (status === 503 || status === 529) return overload(text, overloadScope)
  // Outside Groq, 498 is a token that is invalid or has expired.
  if (status === 401 || status === 498 || status === 403)
    return { kind: 'not-capacity', scope: 'credential', retryable: false }
  // 408 and 425 ask for another try; 409 is a lock that another request holds.
  if (status >= 500 || status === 408 || status === 409 || status === 425) {
    return { kind: 'not-capacity', scope: 'provider', retryable: true }
  }
  if (status >= 400) return { kind: 'not-capacity', scope: 'model', retryable: false }
  const faulty = hasCode(signal, /^(?:invalid_|bad_request|authentication|permission|not_found|unsupported)/)
  return { kind: 'not-capacity', scope: 'model', retryable: !faulty }
}
