/**
 * Budgets: what the provider allows per minute and per day, as token buckets that refill by
 * arithmetic (level + elapsed * limit / window), never by a timer. A limit is declared by the
 * operator or learned from the provider's headers; with none, a budget never refuses.
 */
import type { LimitReading } from '../model/evidence.ts'
import type { Limits } from '../model/policy.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

export const meterNames = [
  'requestsPerMinute',
  'requestsPerDay',
  'inputTokensPerMinute',
  'inputTokensPerDay',
  'outputTokensPerMinute',
  'outputTokensPerDay',
] as const
export type MeterName = (typeof meterNames)[number]

export interface Meter {
  /** Per window. */
  readonly limit: number
  /** Left at `refilledAtMs`. Negative after a settlement above its estimate. */
  readonly level: number
  /** Epoch milliseconds. */
  readonly refilledAtMs: number
  /** Declared by the operator, so that a larger call can be refused at the door. */
  readonly declared: boolean
}

export type Budget = Readonly<Partial<Record<MeterName, Meter>>>

/** What one call takes from each meter. */
export interface Cost {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
}

const windowMs = (name: MeterName): number => (name.endsWith('PerDay') ? dayMs : minuteMs)

const costOn = (name: MeterName, cost: Cost): number =>
  name.startsWith('requests')
    ? cost.requests
    : name.startsWith('input')
      ? cost.inputTokens
      : cost.outputTokens

const refilled = (name: MeterName, meter: Meter, atMs: number): number =>
  Math.min(meter.limit, meter.level + (Math.max(0, atMs - meter.refilledAtMs) * meter.limit) / windowMs(name))

/** No budget, the common case: told apart by identity so that it costs nothing. */
export const noBudget: Budget = {}

const metersOf = (budget: Budget): ReadonlyArray<readonly [MeterName, Meter]> =>
  budget === noBudget ? [] : (Object.entries(budget) as Array<[MeterName, Meter]>)

/** Full meters for the declared limits. A meter whose limit is unchanged keeps its learned values and its use. */
export const declare = (budget: Budget, limits: Limits, atMs: number): Budget => {
  const next: Partial<Record<MeterName, Meter>> = {}
  for (const name of meterNames) {
    const limit = limits[name]
    const before = budget[name]
    if (limit === null) {
      if (before !== undefined && !before.declared) next[name] = before
      continue
    }
    // A changed limit keeps the use so far: the provider has not forgotten it either.
    const spent = before === undefined ? 0 : before.limit - refilled(name, before, atMs)
    next[name] = { limit, level: limit - spent, refilledAtMs: atMs, declared: true }
  }
  return Object.keys(next).length === 0 ? noBudget : next
}

/** The declared limit that `cost` can never fit under, or null. */
export const neverFits = (
  budget: Budget,
  cost: Cost,
): { readonly name: MeterName; readonly limit: number } | null => {
  for (const [name, meter] of metersOf(budget)) {
    if (meter.declared && costOn(name, cost) > meter.limit) return { name, limit: meter.limit }
  }
  return null
}

/**
 * Epoch milliseconds from which every meter holds `cost`; `atMs` when it fits now. What headers show of
 * input tokens a minute is a belief among others (`belief/`), and binds there.
 */
export const fitsAt = (budget: Budget, cost: Cost, atMs: number): number => {
  let fits = atMs
  for (const [name, meter] of metersOf(budget)) {
    if (name === 'inputTokensPerMinute' && !meter.declared) continue
    // A learned limit below the call must not park it for ever: a full meter is the best there is.
    const needed = Math.min(costOn(name, cost), meter.limit)
    const missing = needed - refilled(name, meter, atMs)
    if (missing > 0) fits = Math.max(fits, atMs + Math.ceil((missing * windowMs(name)) / meter.limit))
  }
  return fits
}

/** Takes `cost` (or gives it back when negative). */
export const charge = (budget: Budget, cost: Cost, atMs: number): Budget => {
  const meters = metersOf(budget)
  if (meters.length === 0) return budget
  const next: Partial<Record<MeterName, Meter>> = {}
  for (const [name, meter] of meters) {
    const level = Math.min(meter.limit, refilled(name, meter, atMs) - costOn(name, cost))
    next[name] = { ...meter, level, refilledAtMs: atMs }
  }
  return next
}

/** The meter that a header's dimension feeds. A combined token limit bounds input tokens too. */
const meterOfDimension: Readonly<Record<LimitReading['dimension'], MeterName>> = {
  'requests-per-minute': 'requestsPerMinute',
  'requests-per-day': 'requestsPerDay',
  'tokens-per-minute': 'inputTokensPerMinute',
  'tokens-per-day': 'inputTokensPerDay',
  'input-tokens-per-minute': 'inputTokensPerMinute',
  'output-tokens-per-minute': 'outputTokensPerMinute',
}

/** The provider's own view wins, downwards and upwards; a declared limit stays the operator's. */
export const learn = (budget: Budget, readings: ReadonlyArray<LimitReading>, atMs: number): Budget => {
  const next: Partial<Record<MeterName, Meter>> = { ...budget }
  for (const reading of readings) {
    const name = meterOfDimension[reading.dimension]
    const before = next[name]
    const limit = before?.declared ? before.limit : (reading.limit ?? before?.limit)
    if (limit === undefined || limit <= 0) continue
    const known = before === undefined ? limit : Math.min(limit, refilled(name, before, atMs))
    const shown = reading.remaining ?? known
    // Output is charged when it exists: the provider does not see yet what calls in flight will take.
    const isForeseen = name.startsWith('output') && before !== undefined
    next[name] = {
      limit,
      level: Math.min(limit, isForeseen ? Math.min(shown, known) : shown),
      refilledAtMs: atMs,
      declared: before?.declared ?? false,
    }
  }
  return next
}
