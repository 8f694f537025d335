/** The bounds on waiting that follow from a policy, as numbers. */
import type { PriorityClass } from '../model/call.ts'
import type { Policy } from '../model/policy.ts'
import { favorPatienceMs } from './favor.ts'
import { rankOf } from './primary-order.ts'

/** Of an auxiliary, the default. */
export interface WorstCase {
  readonly lane?: 'auxiliary'
  /** Principals with a backlog, the call's own included. Default 1. */
  readonly principals?: number
  /** Calls of its own principal before it. Default 0. */
  readonly callsAhead?: number
}

/** Of a primary. */
export interface PrimaryWorstCase {
  readonly lane: 'primary'
  readonly priorityClass: PriorityClass
  /** Primaries of its own rank before it. Default 0. */
  readonly callsAhead?: number
  /** Primaries of better ranks that wait at one time, at most. Default 0. */
  readonly betterWaiting?: number
  /** Whether calls have turns (`turnId`), so that those of begun turns may pass it. Default false. */
  readonly turns?: boolean
  /** Longest time until a place comes free for which the next primary fits, milliseconds. Default 0: there is always one. */
  readonly placeEveryMs?: number
}

/** Ranks that may age beside a call's own: there are four. */
const otherRanks = 3

/**
 * The longest time, milliseconds, that the order of calls can keep one from a permit.
 *
 * Of an auxiliary: the time that *primaries hold it* by the held clock. Waits for the provider, a budget, its quota or
 * its own lane's places come on top. Every `maxDeferralMs` at the latest a quantum begins with the first call of the
 * principal that was held longest, of any size. So each other principal goes at most once before each of its calls.
 *
 * Of a primary: it waits for those before it, for one call of a lower rank that has aged, and for a quantum of
 * background between any two of these; one of a lower rank first for `maxRankDeferralMs`, for each call of its
 * rank. Infinity for a lower rank where that is null. With turns, calls of begun turns may pass it for half its pending
 * timeout first.
 */
export const worstCaseWaitMs = (policy: Policy, ask: WorstCase | PrimaryWorstCase = {}): number =>
  ask.lane === 'primary' ? ofPrimary(policy, ask) : ofAuxiliary(policy, ask)

const ofAuxiliary = (policy: Policy, { principals = 1, callsAhead = 0 }: WorstCase): number =>
  policy.maxDeferralMs * principals * (callsAhead + 1)

const ofPrimary = (
  policy: Policy,
  { priorityClass, callsAhead = 0, betterWaiting = 0, placeEveryMs = 0, turns = false }: PrimaryWorstCase,
): number => {
  const passedMs = turns ? favorPatienceMs(policy, 'primary') : 0
  const calls = callsAhead + 1
  // Before each place that a primary gets, a quantum may take one.
  const passes = (count: number): number => 2 * count * placeEveryMs
  if (rankOf(policy, priorityClass) === 0) return passedMs + passes(calls + 1)
  if (policy.maxRankDeferralMs === null) return Number.POSITIVE_INFINITY
  return passedMs + calls * (policy.maxRankDeferralMs + passes((betterWaiting + 1) * otherRanks + 1))
}
