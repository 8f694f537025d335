/**
 * Each rule at its most generous: no other call is ever sent, a ramp has climbed at full speed, chance never
 * refuses, a bucket is full when it helps. When a relaxed rule refuses a call, the rule refuses it under
 * every schedule.
 */
import type { Latency, RuleSpec } from '../../../emulator/index.ts'
import type { SimulatedCall } from '../../world.ts'

export interface Relaxation {
  /** The call's cost under the rule. */
  readonly unitsOf: (call: SimulatedCall) => number
  /** First time from `fromMs` at which a call of this cost may be accepted; null when never. */
  readonly earliestMs: (units: number, fromMs: number) => number | null
  /** Most units that are accepted from `fromMs` to `toMs`, both included. */
  readonly capacity: (fromMs: number, toMs: number) => number
}

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const inputOf = ({ inputTokens }: SimulatedCall): number => inputTokens
/** Charges and levels are whole numbers; a product of powers may be slightly off. */
const slack = 1 + 1e-9

const bucket = (perMinute: number, burst: number, unitsOf: Relaxation['unitsOf']): Relaxation => ({
  unitsOf,
  earliestMs: (units, fromMs) => (units <= burst ? fromMs : null),
  capacity: (fromMs, toMs) => burst + ((toMs - fromMs) * perMinute) / minuteMs,
})

/** A limit that starts anew in each window of the clock; `limitIn` never falls. */
const clockWindows = (
  windowMs: number,
  limitIn: (window: number) => number,
  mostUnits: number,
): Relaxation => ({
  unitsOf: inputOf,
  earliestMs: (units, fromMs) => {
    if (units > mostUnits) return null
    let window = Math.floor(fromMs / windowMs)
    if (units <= limitIn(window)) return fromMs
    while (units > limitIn(window)) window += 1
    return window * windowMs
  },
  capacity: (fromMs, toMs) => {
    let sum = 0
    for (let window = Math.floor(fromMs / windowMs); window * windowMs <= toMs; window += 1) {
      sum += limitIn(window)
    }
    return sum
  },
})

/** A limit on every trailing window; `limitAt` never falls, and steps every `stepMs`. */
const trailing = (
  windowMs: number,
  limitAt: (atMs: number) => number,
  mostUnits: number,
  stepMs: number,
): Relaxation => ({
  unitsOf: inputOf,
  earliestMs: (units, fromMs) => {
    if (units > mostUnits) return null
    let atMs = fromMs
    while (units > limitAt(atMs)) atMs = (Math.floor(atMs / stepMs) + 1) * stepMs
    return atMs
  },
  // Windows laid end to end backwards from the end, each under the limit at its own end.
  capacity: (fromMs, toMs) => {
    let sum = 0
    for (let endMs = toMs; endMs >= fromMs; endMs -= windowMs) sum += limitAt(endMs)
    return sum
  },
})

/** Places that are all free at first, and then busy without a gap, with the longest calls last. */
const places = (bound: number, latency: Latency, longestMs: number): Relaxation => ({
  unitsOf: ({ outputTokens }) => latency.firstTokenMs + latency.perOutputTokenMs * outputTokens,
  earliestMs: (_units, fromMs) => fromMs,
  capacity: (fromMs, toMs) => bound * (toMs - fromMs + longestMs),
})

interface Rate {
  readonly atMs: number
  readonly inputTokensPerMinute: number
}

/** Tokens that flow into a bucket from the start to a time. */
const refillOf = (changes: ReadonlyArray<Rate>, everyMs: number | undefined) => {
  const within = (untilMs: number): number =>
    changes.reduce((sum, { atMs, inputTokensPerMinute }, index) => {
      const endMs = Math.min(untilMs, changes[index + 1]?.atMs ?? Number.POSITIVE_INFINITY)
      return endMs <= atMs ? sum : sum + ((endMs - atMs) * inputTokensPerMinute) / minuteMs
    }, 0)
  return (toMs: number): number => {
    if (everyMs === undefined) return within(toMs)
    const rounds = Math.floor(toMs / everyMs)
    return rounds * within(everyMs) + within(toMs - rounds * everyMs)
  }
}

type ReservedTokens = Extract<RuleSpec, { readonly rule: 'reserved-tokens' }>

/** Tokens are settled only after they were taken, and settled ones stay: the smaller of the two is never given back. */
const leastTakenOf =
  ({ defaultMaxTokens = 0, counts, settles, outputWeight = 1 }: ReservedTokens): Relaxation['unitsOf'] =>
  ({ inputTokens, outputTokens }) => {
    const together = (output: number): number =>
      counts === 'larger' ? Math.max(inputTokens, output) : inputTokens + output
    const reserved = together(defaultMaxTokens)
    return settles === 'none' ? reserved : Math.min(reserved, together(outputTokens * outputWeight))
  }

const growing = (floor: number, factor: number, most: number) => (steps: number) =>
  Math.min(most, floor * factor ** steps) * slack

/** The relaxed rule; null when the rule can delay no call. */
export const relax = (
  spec: RuleSpec,
  { latency, longestMs }: { readonly latency: Latency; readonly longestMs: number },
): Relaxation | null => {
  switch (spec.rule) {
    case 'token-bucket': {
      const burst = spec.burstInputTokens ?? spec.inputTokensPerMinute
      if (spec.chargedAt !== 'completion') return bucket(spec.inputTokensPerMinute, burst, inputOf)
      // Calls accepted together are all charged later, so only a call above the burst never gets in.
      return { ...bucket(0, burst, inputOf), capacity: () => Number.POSITIVE_INFINITY }
    }
    case 'reserved-tokens':
      return bucket(spec.tokensPerMinute, spec.tokensPerMinute, leastTakenOf(spec))
    case 'changing-bucket': {
      const bursts = spec.changes.map((change) => change.burstInputTokens ?? change.inputTokensPerMinute)
      const burst = Math.max(...bursts)
      const refill = refillOf(spec.changes, spec.everyMs)
      const capacity: Relaxation['capacity'] = (fromMs, toMs) => burst + refill(toMs) - refill(fromMs)
      return { ...bucket(0, burst, inputOf), capacity }
    }
    case 'token-window': {
      const { form, inputTokensPerWindow: limit, windowMs = minuteMs } = spec
      return form === 'fixed'
        ? clockWindows(windowMs, () => limit, limit)
        : trailing(windowMs, () => limit, limit, windowMs)
    }
    case 'use-growth': {
      const { floorTokensPerMinute: floor, growthPerMinute, tierTokensPerMinute: tier } = spec
      const limit = growing(floor, growthPerMinute, tier)
      const most = growthPerMinute > 1 ? tier : floor
      return trailing(minuteMs, (atMs) => limit(Math.floor(atMs / minuteMs)), most, minuteMs)
    }
    case 'slow-down': {
      const { steadyTokensPerMinute: steady, growth, windowMs } = spec
      const limit = growing(steady, growth, Number.POSITIVE_INFINITY)
      const most = growth > 1 ? Number.POSITIVE_INFINITY : steady
      return trailing(minuteMs, (atMs) => limit(Math.floor(atMs / windowMs)), most, windowMs)
    }
    case 'time-step': {
      const { floorTokensPerMinute: floor, stepTokensPerMinute: step, tierTokensPerMinute: tier } = spec
      return clockWindows(minuteMs, (minute) => Math.min(tier, floor + minute * step), tier)
    }
    case 'requests-per-minute':
      return bucket(spec.requestsPerMinute, spec.requestsPerMinute, () => 1)
    case 'daily-quota': {
      const { inputTokensPerDay: tokens, requestsPerDay = 0 } = spec
      const quota = clockWindows(dayMs, () => tokens ?? requestsPerDay, tokens ?? requestsPerDay)
      return tokens === undefined ? { ...quota, unitsOf: () => 1 } : quota
    }
    case 'spend-cap': {
      const most = spec.afterRequests ?? 0
      const earliestMs: Relaxation['earliestMs'] = (_units, fromMs) => (most === 0 ? null : fromMs)
      return { unitsOf: () => 1, earliestMs, capacity: () => most }
    }
    case 'outage': {
      const endsAt = (atMs: number): number =>
        spec.periods.find(([fromMs, untilMs]) => fromMs <= atMs && atMs < untilMs)?.[1] ?? atMs
      return {
        unitsOf: () => 0,
        earliestMs: (_units, fromMs) => endsAt(fromMs),
        capacity: () => Number.POSITIVE_INFINITY,
      }
    }
    case 'concurrency': {
      const bounds = (spec.changes ?? [spec]).map(({ maxConcurrent }) => maxConcurrent)
      return places(Math.max(...bounds), latency, longestMs)
    }
    // Output is charged when it exists, and chance may spare every call.
    case 'output-tokens-per-minute':
    case 'overload':
      return null
  }
}
