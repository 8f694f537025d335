/**
 * The plan that follows from what is believed of the provider's limits (`limits/belief`): for every
 * call, by its size, whether it goes now, or when time alone lets it.
 *
 * - What is believed to fit goes, in the order of the rules.
 * - A smaller primary passes a larger one that does not fit, while the larger one's forecast stays
 *   within what it was promised (EASY backfill with slack: Lifka, "The ANL/IBM SP Scheduling System",
 *   1995). Auxiliaries pass it when they do not delay it at all, or when no silence would let it in:
 *   then use is what lifts a ceiling, or does no harm.
 * - A call that is not believed to fit is tried all the same (`probe`) after a time that grows with its
 *   refusals up to `longestSilenceMs`: no belief falls silent for ever.
 */
import { type Belief, isSilent, type LayerName, layerNames, priorOf } from '../limits/belief/belief.ts'
import { minuteMs, minuteStart } from '../limits/belief/charges.ts'
import { expects, usedPerMinute } from '../limits/belief/demand.ts'
import { forecast, hopefulForecast, mayRiskAt, roomAt } from '../limits/belief/forecast.ts'
import { type Family, leaderOf, speaks } from '../limits/belief/layer.ts'
import * as belief from '../limits/belief/learn.ts'
import { isPromised, statedUntil } from '../limits/belief/stated-waits.ts'
import type { Waiting } from '../state/calls.ts'
import type { ScopeContext } from '../state/context.ts'

/** A waiting call is tried at least so often, whatever is believed, milliseconds. */
export const longestSilenceMs = 8 * 60_000
/** In a limit that forgets by the minute, kept room is lost use: at most this share of it. */
const windowReserveShare = 0.04
/** A bucket that is kept fuller than this runs over between two calls. */
const fullestShare = 0.9
/** The same where its size is stated. */
const fullestStatedShare = 1
/** The last part of the time between two primaries, or of a minute, in which none is waited for. */
const endShare = 0.25
const leastEndMs = 20_000
/** How far beyond what is sure each lane goes (0: nothing risked, 1: the best guess, 2: the most hopeful bound), with and without refusals to spare. */
const trusts = {
  primary: { spare: 1, sparing: 0.6 },
  auxiliary: { spare: 1, sparing: 0.2 },
  /** Under a ceiling that follows use, what is not tried is lost. */
  growing: { spare: 1.2, sparing: 0.5 },
} as const

export interface Verdict {
  /** When it may be tried, epoch milliseconds; now or earlier: it goes. */
  readonly tryAtMs: number
  /** It goes although it is not believed to fit. */
  readonly probe: boolean
}

export const trustOf = (held: Belief, lane: 'primary' | 'auxiliary'): number => {
  const of = lane === 'auxiliary' && bindsByWindow(held) ? 'growing' : lane
  return trusts[of][held.credit >= 1 ? 'spare' : 'sparing']
}

/** Since when the call has waited for its next try, epoch milliseconds. */
const triedOrSubmittedAt = ({ attempts, triedAtMs, submittedAt }: Waiting): number =>
  attempts === 0 ? submittedAt : triedAtMs

/**
 * When the call is tried whatever is believed, epoch milliseconds: soon where waiting is believed not to
 * help, or where nothing was accepted for as long; else the forecast has `longestSilenceMs`.
 */
const probedAt = (context: ScopeContext, waiting: Waiting, fitsMs: number | null): number => {
  const { attempts } = waiting
  const firstMs = Math.max(1_000, Math.min(context.policy.quietWindowMs, longestSilenceMs))
  // A primary is quiet for two windows at most between two tries; background can wait longer each time.
  const mostDoublings = waiting.call.lane === 'primary' ? 1 : 10
  const doublings = Math.min(Math.max(0, attempts - 1), mostDoublings)
  const pauseMs = Math.min(longestSilenceMs, firstMs * 2 ** doublings)
  const sinceMs = triedOrSubmittedAt(waiting)
  if (fitsMs === null) return sinceMs + pauseMs
  return Math.min(sinceMs + longestSilenceMs, Math.max(sinceMs, context.belief.acceptedAtMs) + pauseMs)
}

/** Whether the limit that binds is one of windows, in which what is kept is lost. */
export const bindsByWindow = (held: Belief): boolean =>
  isWindow(held, 'acceleration') || isWindow(held, 'limit')

const isFamily = (held: Belief, family: Family): boolean =>
  layerNames.every((name) => !speaks(held[name]) || leaderOf(held[name], priorOf(held, name)) === family)

/** So late in a clock minute that the room kept in it goes to auxiliaries: the chance that a primary comes is small. */
const isEnding = ({ at, demand: { everyMs } }: ScopeContext): boolean =>
  minuteStart(at) + minuteMs - at < Math.min(minuteMs, Math.max(leastEndMs, everyMs)) * endShare

const isWindow = (held: Belief, name: LayerName): boolean =>
  speaks(held[name]) && leaderOf(held[name], priorOf(held, name)) !== 'bucket'

/** Input tokens that auxiliaries leave for the next primary. */
export const tokenReserve = (context: ScopeContext, tokens: number): number => {
  const { policy, demand, at } = context
  if (policy.tokenReserve !== 'auto') return policy.tokenReserve
  if (isSilent(context.belief) || !expects(demand, at)) return 0
  if (bindsByWindow(context.belief)) {
    // What a clock minute has kept is lost at its end: shortly before, auxiliaries have it.
    if (isFamily(context.belief, 'clock') && isEnding(context)) return 0
    const most = windowReserveShare * context.belief.highestAccepted + usedPerMinute(demand)
    return Math.min(demand.largestTokens, Math.floor(most))
  }
  // The bucket must be able to hold both, and not run over meanwhile.
  const { burst, stated } = context.belief.limit.bucket
  return Math.max(
    0,
    Math.min(demand.largestTokens, Math.floor(burst * (stated ? fullestStatedShare : fullestShare)) - tokens),
  )
}

/** A call that nobody estimated is one that takes something. */
const sizeOf = ({ call }: Waiting): number => Math.max(1, call.inputTokens)

/** A call that was refused is not sent again before this, epoch milliseconds; each time it is longer while nothing was accepted. */
const backedOffAt = ({ policy, belief: held }: ScopeContext, { attempts, triedAtMs }: Waiting): number => {
  if (attempts === 0) return 0
  const doublings = held.acceptedAtMs === 0 ? Math.min(attempts - 1, 20) : 0
  return triedAtMs + Math.min(policy.pacingMaxMs, policy.pacingBaseMs * 2 ** doublings)
}

const judged = (context: ScopeContext, waiting: Waiting, reserve: number, ambition = 0): Verdict => {
  const { at, policy } = context
  const { lane } = waiting.call
  const inputTokens = sizeOf(waiting)
  const held = context.belief
  if (isSilent(held)) return { tryAtMs: at, probe: false }
  const statedMs = statedUntil(held, inputTokens, at)
  if (waiting.attempts > 0 && statedMs > at) return { tryAtMs: statedMs, probe: false }
  if (waiting.attempts > 0 && isPromised(held, inputTokens, at)) return { tryAtMs: at, probe: false }
  const trust = Math.max(ambition, trustOf(held, lane))
  let fitsMs = forecast(held, inputTokens, at, trust)
  // Room is kept by the best guess: where that is wrong, it is the room that suffers.
  const isKept = fitsMs !== null && fitsMs <= at && reserve > 0
  if (fitsMs !== null && reserve > 0)
    fitsMs = Math.max(fitsMs, forecast(held, inputTokens + reserve, at, Math.max(1, trust)) ?? fitsMs)
  const backedOffMs = backedOffAt(context, waiting)
  const riskMs = Math.max(backedOffMs, mayRiskAt(held, policy.pacingBaseMs, policy.pacingMaxMs))
  if (fitsMs !== null && fitsMs <= at) {
    const sure = roomAt(held, at, 0) >= inputTokens
    return { tryAtMs: Math.max(at, sure ? backedOffMs : riskMs), probe: false }
  }
  // Only room that is kept for a primary is missing: that is no doubt, and a try tells nothing. Where the
  // room comes back slower than the longest silence, the call goes without it.
  if (isKept) {
    const longestMs = triedOrSubmittedAt(waiting) + longestSilenceMs
    return { tryAtMs: Math.max(at, Math.min(fitsMs as number, longestMs)), probe: false }
  }
  // After a refusal that says nothing only time can tell, each time longer, while refusals are to spare.
  const saysNothing = held.credit >= 1 && held.refusal?.kind === 'unknown-rate-limit'
  if (saysNothing && waiting.attempts > 0) return { tryAtMs: Math.max(statedMs, riskMs), probe: true }
  // Nothing was accepted since the first refusal: of a primary that never went, one try tells most.
  if (saysNothing && lane === 'primary' && held.acceptedAtMs === 0 && held.credit >= 2)
    return { tryAtMs: Math.max(statedMs, riskMs, at), probe: true }
  const spare = held.credit >= (lane === 'primary' ? 1 : 2)
  // Background finds out for all of its calls together, not for each.
  const lastMs = lane === 'auxiliary' && held.refusal !== null ? held.refusal.atMs + policy.quietWindowMs : 0
  const hopedMs = spare ? hopefulForecast(held, inputTokens, at) : null
  const probedMs = Math.max(statedMs, lastMs, probedAt(context, waiting, fitsMs))
  const probeMs = Math.max(riskMs, Math.min(probedMs, hopedMs ?? probedMs))
  return fitsMs === null || probeMs < fitsMs
    ? { tryAtMs: Math.max(at, probeMs), probe: true }
    : { tryAtMs: fitsMs, probe: false }
}

/** What is believed of a primary. */
export const primaryVerdict = (context: ScopeContext, waiting: Waiting): Verdict =>
  judged(context, waiting, 0)

/** What is believed of an auxiliary, room for the next primary left out. */
export const auxiliaryVerdict = (context: ScopeContext, waiting: Waiting): Verdict =>
  judged(context, waiting, tokenReserve(context, waiting.call.inputTokens))

/** How far a minute is filled that is to lift a ceiling: a refusal costs less than a minute half empty, but not refusals in a row. */
export const buildingTrust = ({ refusals }: Belief): number => (refusals < 2 ? 1.5 : 1)

/** The same for one that is to lift a ceiling. */
export const buildingVerdict = (context: ScopeContext, waiting: Waiting): Verdict =>
  judged(context, waiting, 0, buildingTrust(context.belief))

/** When silence lets a call in, epoch milliseconds; null when it does not. */
export const forecastOf = (context: ScopeContext, waiting: Waiting): number | null =>
  forecast(context.belief, sizeOf(waiting), context.at, trustOf(context.belief, waiting.call.lane))

/** The same, when `tokens` are sent now. */
export const forecastAfter = (context: ScopeContext, waiting: Waiting, tokens: number): number | null =>
  forecast(
    belief.sent(context.belief, tokens, context.at, context.at),
    sizeOf(waiting),
    context.at,
    trustOf(context.belief, waiting.call.lane),
  )
