/**
 * The door for whatever becomes an event beside calls and policies. A caller's bad value is refused
 * and named (`InvalidInput`); a provider's is brought into range and counted, since nothing that a
 * provider says may stop a scope.
 */
import {
  type Evidence,
  type EvidenceFacts,
  evidenceKinds,
  evidenceScopes,
  InvalidInput,
  type LimitReading,
  maxEpochMs,
  maxTokens,
  type SettlementCause,
  type Usage,
} from '../../machines/index.ts'
import type { Settlement } from './settlement.ts'

/** Longest wait that a provider can state, ms: a hundred years. It is shown as stated and believed for a day (`holding.ts`). */
export const longestRetryAfterMs = 100 * 366 * 86_400_000
/** Largest of the numbers that a provider states of its limits. */
const maxFact = 1_000_000_000_000
const mostReadings = 64

/** A provider's value as an event may hold it, and how many of its parts had to be changed or left out. */
export interface Cleaned<A> {
  readonly value: A
  readonly corrections: number
}

class Cleaner {
  corrections = 0

  /** A whole number in `[0, most]`; null where there is none. A fraction is no fault: weights make them. */
  count(value: unknown, most: number): number | null {
    if (value === null || value === undefined) return null
    const stated = typeof value === 'bigint' ? Number(value) : value
    if (typeof stated !== 'number' || Number.isNaN(stated) || stated < 0) {
      this.corrections += 1
      return null
    }
    if (stated !== value || stated > most) this.corrections += 1
    return Math.min(Math.ceil(stated), most)
  }

  oneOf<A extends string>(value: unknown, known: ReadonlyArray<A>, otherwise: A): A {
    if (known.includes(value as A)) return value as A
    this.corrections += 1
    return otherwise
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** A getter of the value may throw; then nothing of it is believed. */
const cleaned = <A>(work: (cleaner: Cleaner) => A, otherwise: A): Cleaned<A> => {
  const cleaner = new Cleaner()
  try {
    const value = work(cleaner)
    return { value, corrections: cleaner.corrections }
  } catch {
    return { value: otherwise, corrections: cleaner.corrections + 1 }
  }
}

const usageIn = (cleaner: Cleaner, stated: Readonly<Record<string, unknown>>): Usage | null => {
  const inputTokens = cleaner.count(stated['inputTokens'], maxTokens)
  const outputTokens = cleaner.count(stated['outputTokens'], maxTokens)
  if (inputTokens === null && outputTokens === null) return null
  const all = cleaner.count(stated['allInputTokens'], maxTokens)
  const fromCache = cleaner.count(stated['cacheReadTokens'], maxTokens)
  return { inputTokens, outputTokens, ...cacheReadsOf(inputTokens, all, fromCache) }
}

/** The members of a usage that tell of a cache; none where the cache served nothing. */
const cacheReadsOf = (
  inputTokens: number | null,
  allInputTokens: number | null,
  cacheReadTokens: number | null,
): Pick<Usage, 'allInputTokens' | 'cacheReadTokens'> => {
  if (allInputTokens === null) return {}
  if (allInputTokens === inputTokens && (cacheReadTokens ?? 0) === 0) return {}
  return { allInputTokens, ...(cacheReadTokens === null ? {} : { cacheReadTokens }) }
}

const isCount = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokens

/** Usage as a provider, or a reader of its answers, stated it. */
export const providerUsage = (stated: unknown): Cleaned<Usage | null> =>
  cleaned((cleaner) => {
    if (stated === null || stated === undefined) return null
    if (isObject(stated)) return usageIn(cleaner, stated)
    cleaner.corrections += 1
    return null
  }, null)

const factNames = ['currentLimit', 'nextLimit', 'limit', 'used', 'requested', 'actual'] as const

const factsIn = (cleaner: Cleaner, stated: unknown): EvidenceFacts => {
  if (!isObject(stated)) {
    cleaner.corrections += 1
    return {}
  }
  const facts: Record<string, number | string> = {}
  for (const name of factNames) {
    const value = cleaner.count(stated[name], maxFact)
    if (value !== null) facts[name] = value
  }
  const { unit } = stated
  if (typeof unit === 'string' && /^[\x20-\x7e]{1,64}$/.test(unit)) facts['unit'] = unit
  else if (unit !== undefined) cleaner.corrections += 1
  return facts
}

const evidenceIn = (cleaner: Cleaner, stated: Readonly<Record<string, unknown>>): Evidence => {
  const { kind, scope, retryAfterMs, retryable, facts } = stated
  if (typeof retryable !== 'boolean') cleaner.corrections += 1
  return {
    kind: cleaner.oneOf(kind, evidenceKinds, 'unknown-rate-limit'),
    scope: cleaner.oneOf(scope, evidenceScopes, 'model'),
    retryAfterMs: cleaner.count(retryAfterMs, longestRetryAfterMs),
    retryable: retryable === true,
    facts: factsIn(cleaner, facts),
  }
}

/** Evidence as a reader of a provider's answers gave it; null when it is none. */
export const providerEvidence = (stated: unknown): Cleaned<Evidence | null> =>
  cleaned((cleaner) => {
    if (stated === null || stated === undefined) return null
    if (isObject(stated)) return evidenceIn(cleaner, stated)
    cleaner.corrections += 1
    return null
  }, null)

const dimensions: ReadonlyArray<LimitReading['dimension']> = [
  'requests-per-minute',
  'requests-per-day',
  'tokens-per-minute',
  'tokens-per-day',
  'input-tokens-per-minute',
  'output-tokens-per-minute',
]

/** Limits as headers showed them. */
export const providerLimits = (stated: unknown): Cleaned<ReadonlyArray<LimitReading>> =>
  cleaned((cleaner) => {
    const readings: LimitReading[] = []
    for (const reading of Array.isArray(stated) ? stated.slice(0, mostReadings) : [null]) {
      if (!isObject(reading) || !dimensions.includes(reading['dimension'] as LimitReading['dimension'])) {
        cleaner.corrections += 1
        continue
      }
      readings.push({
        dimension: reading['dimension'] as LimitReading['dimension'],
        limit: cleaner.count(reading['limit'], maxFact),
        remaining: cleaner.count(reading['remaining'], maxFact),
        resetAtMs: cleaner.count(reading['resetAtMs'], maxEpochMs),
      })
    }
    return readings
  }, [])

/** What the driver of a call made of a provider's answer. The outcome counts, whatever the answer said of numbers. */
export const providerSettlement = ({ outcome, usage, evidence, cause }: Settlement): Cleaned<Settlement> => {
  const [used, said] = [providerUsage(usage), providerEvidence(evidence)]
  // A refusal that says nothing to go by is a failure.
  const isEmpty = outcome === 'throttled' && evidence !== undefined && said.value === null
  const value: Settlement = {
    outcome: isEmpty ? 'failed' : outcome,
    ...(used.value === null ? {} : { usage: used.value }),
    ...(said.value === null ? {} : { evidence: said.value }),
    ...(cause === undefined ? {} : { cause }),
  }
  return { value, corrections: used.corrections + said.corrections }
}

const outcomes: ReadonlyArray<Settlement['outcome']> = [
  'completed',
  'failed',
  'cancelled',
  'timedOut',
  'throttled',
]

const shown = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80))
  return isObject(value) ? 'an object' : String(value)
}

const refuse = (field: string, expected: string, value: unknown): never => {
  throw new InvalidInput([{ field, expected, got: shown(value) }])
}

/** Tokens that a caller states: fractions, which weights make, are rounded up. Throws `InvalidInput`. */
const tokensOf = (field: string, value: unknown): number | null => {
  if (value === null || value === undefined) return null
  if (typeof value === 'number' && value >= 0 && value <= maxTokens) return Math.ceil(value)
  return refuse(field, `null or a number in [0, ${maxTokens}]`, value)
}

const usageOf = (usage: unknown): Usage => {
  if (!isObject(usage))
    return refuse('settlement.usage', 'an object with inputTokens and outputTokens', usage)
  const { inputTokens, outputTokens } = usage
  if (isCount(inputTokens) && isCount(outputTokens) && Object.keys(usage).length === 2)
    return usage as unknown as Usage
  const input = tokensOf('settlement.usage.inputTokens', inputTokens)
  const all = tokensOf('settlement.usage.allInputTokens', usage['allInputTokens'])
  const fromCache = tokensOf('settlement.usage.cacheReadTokens', usage['cacheReadTokens'])
  return {
    inputTokens: input,
    outputTokens: tokensOf('settlement.usage.outputTokens', outputTokens),
    ...cacheReadsOf(input, all, fromCache),
  }
}

const evidenceOf = (evidence: unknown): Evidence => {
  if (!isObject(evidence)) return refuse('settlement.evidence', 'an Evidence object', evidence)
  const { kind, scope, retryAfterMs, retryable, facts } = evidence
  if (!evidenceKinds.includes(kind as Evidence['kind']))
    return refuse('settlement.evidence.kind', `one of ${evidenceKinds.join(', ')}`, kind)
  if (!evidenceScopes.includes(scope as Evidence['scope']))
    return refuse('settlement.evidence.scope', `one of ${evidenceScopes.join(', ')}`, scope)
  if (typeof retryable !== 'boolean')
    return refuse('settlement.evidence.retryable', 'true or false', retryable)
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0 && retryAfterMs <= longestRetryAfterMs
  if (retryAfterMs !== null && !isWait) {
    const expected = `null or milliseconds in [0, ${longestRetryAfterMs}]`
    return refuse('settlement.evidence.retryAfterMs', expected, retryAfterMs)
  }
  const cleaner = new Cleaner()
  const known = factsIn(cleaner, facts)
  if (cleaner.corrections > 0) {
    const expected = `an object of finite numbers in [0, ${maxFact}] and a unit`
    return refuse('settlement.evidence.facts', expected, facts)
  }
  return { ...evidenceIn(cleaner, evidence), facts: known }
}

/** A permit holder's report on its dispatch. Throws `InvalidInput` that names field, range and value; nothing is settled then. */
export const settlementOf = (stated: Settlement): Settlement => {
  if (!isObject(stated)) return refuse('settlement', 'an object with an outcome', stated)
  const { outcome, usage, evidence, cause } = stated
  if (!outcomes.includes(outcome))
    return refuse('settlement.outcome', `one of ${outcomes.join(', ')}`, outcome)
  return {
    outcome,
    ...(usage === undefined || usage === null ? {} : { usage: usageOf(usage) }),
    ...(evidence === undefined || evidence === null ? {} : { evidence: evidenceOf(evidence) }),
    ...(cause === undefined ? {} : { cause: wordOf('settlement.cause', cause, settlementCauses) }),
  }
}

const settlementCauses = [
  'truncated',
  'stalled-client',
  'never-sent',
] as const satisfies ReadonlyArray<SettlementCause>

/** Limits that a caller read from headers: a list; its numbers are the provider's. Throws `InvalidInput`. */
export const limitsOf = (stated: unknown): ReadonlyArray<LimitReading> =>
  Array.isArray(stated) ? stated : refuse('limits', 'a list of limit readings', stated)

/** The id of a call or a turn, as a caller says it. Throws `InvalidInput`. */
export const idOf = (field: string, value: unknown): string =>
  typeof value === 'string' && value.length >= 1 && value.length <= 256 && !/\p{Cc}/u.test(value)
    ? value
    : refuse(field, '1 to 256 printable characters', value)

/** One of the words that a caller may say. Throws `InvalidInput`. */
export const wordOf = <A extends string>(field: string, value: unknown, known: ReadonlyArray<A>): A =>
  known.includes(value as A) ? (value as A) : refuse(field, `one of ${known.join(', ')}`, value)

/** Throws `InvalidInput`. */
export const flagOf = (field: string, value: unknown): boolean =>
  typeof value === 'boolean' ? value : refuse(field, 'true or false', value)
