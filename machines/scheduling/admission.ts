import { fitsAt, noBudget } from '../limits/budget.ts'
import { capacityOf, reservedOf } from '../limits/capacity.ts'
import { neededFor } from '../limits/charges.ts'
import * as pacing from '../limits/pacing.ts'
import type { PriorityClass } from '../model/call.ts'
import type { DeferReason } from '../model/decision.ts'
import type { Waiting } from '../state/calls.ts'
import type { ScopeContext } from '../state/context.ts'
import { noRankFavor } from '../state/favor.ts'
import { headOf } from './fairness.ts'
import { favoredOfRank, type Seated } from './favor.ts'
import { auxiliaryVerdict, primaryVerdict, type Verdict } from './planner.ts'
import { standingRank } from './primary-order.ts'
import { heldSince, longestUnserved, nextAuxiliary } from './turns.ts'

/** When the budget holds what the call needs, epoch milliseconds; the scope's time when it does now. */
export const budgetFitsAt = (
  { budget, policy, at }: ScopeContext,
  { call }: Pick<Waiting, 'call'>,
): number => (budget === noBudget ? at : fitsAt(budget, neededFor(policy.charges, call), at))

/** Whether the gate is closed for a primary: one waits, or the policy still holds it for one that runs, or for its turn. */
export const primaryWanted = ({ policy, counts, heldTurns }: ScopeContext): boolean =>
  counts.primaryWaiting > 0 ||
  heldTurns > 0 ||
  (policy.hold === 'untilSettled' && counts.primaryInFlight > 0) ||
  (policy.hold === 'untilAccepted' && counts.primaryUnaccepted > 0)

/** Places that auxiliaries may fill: capacity less reserve, half of it (never 0) while a primary was admitted just now. */
export const auxiliaryPlaces = (context: ScopeContext): number => {
  const { policy, primaryGrantedAt, at } = context
  const places = capacityOf(context) - reservedOf(context)
  const squeezed = policy.squeezeMs > 0 && primaryGrantedAt > 0 && at < primaryGrantedAt + policy.squeezeMs
  return squeezed ? Math.max(1, Math.floor(places / 2)) : places
}

export const waitsForProvider = ({ wait, at }: ScopeContext): boolean => wait !== null && at < wait.untilMs

const paceOf = (context: ScopeContext, priorityClass: PriorityClass): pacing.Pace =>
  context.pacing[priorityClass] ?? pacing.steady

/** A class that backs off does so alone, and the others of the lane go on. */
const backsOff =
  (context: ScopeContext) =>
  (priorityClass: PriorityClass): boolean =>
    !pacing.paceAllows(paceOf(context, priorityClass), context.at)

/** The first call, of the principal that was served least recently, whose class does not back off. */
export const turnFront = (context: ScopeContext): Waiting | null =>
  longestUnserved(context, backsOff(context))?.head ?? null

/** The call whose turn it is; null when nobody may take one. */
export const nextInTurn = (context: ScopeContext): Waiting | null => nextAuxiliary(context, backsOff(context))

/** Places that auxiliaries may have are all taken by auxiliaries. */
const fillsItsPlaces = (context: ScopeContext): boolean =>
  context.counts.auxiliaryInFlight >= auxiliaryPlaces(context)

/**
 * Whether primaries, and nothing else, keep back the auxiliary whose turn it is: they want the gate
 * closed, while it has its share of the places, the budget, no pause and no wait. Places that primaries
 * fill are places that they hold. Only then does the held clock run.
 */
export const isHeld = (context: ScopeContext): boolean => {
  if (context.lines.size === 0 || !(context.foregroundActive || primaryWanted(context))) return false
  if (waitsForProvider(context) || fillsItsPlaces(context)) return false
  const front = turnFront(context)
  return front !== null && budgetFitsAt(context, front) <= context.at
}

/** Milliseconds that the held clock has still to run before a quantum is owed; null when nobody could have it. */
export const owedInMs = (context: ScopeContext): number | null => {
  const { heldMs, policy, primaryOwed, quantumEndedHeldMs } = context
  const front = longestUnserved(context, backsOff(context))
  if (front === null) return null
  // Quanta and primaries take turns, unless the primary cannot go for that long itself.
  const sinceMs = Math.max(heldSince(front), primaryOwed ? quantumEndedHeldMs : 0)
  return Math.max(0, sinceMs + policy.maxDeferralMs - heldMs)
}

/** Whether primaries have held the principal whose turn it is for `maxDeferralMs`. */
export const overdue = (context: ScopeContext): boolean => owedInMs(context) === 0

/** Why no auxiliary may go whichever it is, or null. Whether the gate is open is the state's business. */
export const auxiliaryObstacle = (context: ScopeContext): DeferReason | null => {
  const { counts } = context
  if (waitsForProvider(context)) return 'provider-wait'
  if (counts.places >= capacityOf(context)) return 'capacity-full'
  // Every class in flight counts against the auxiliaries' places, as in the Edict's gate; but a
  // quantum that is due must not wait for a time when no primary runs, which may never come.
  const kept = primaryWanted(context) ? fillsItsPlaces(context) : counts.places >= auxiliaryPlaces(context)
  if (kept) return 'reserve-kept'
  return context.foregroundActive && !overdue(context) ? 'foreground-active' : null
}

export const isPaced = (context: ScopeContext, { call }: Waiting): boolean =>
  backsOff(context)(call.priorityClass)

/** When an auxiliary may be tried, and why not before; its turn is the state's business. */
export interface Misfit {
  readonly reason: 'pacing' | 'budget' | 'forecast' | null
  /** Epoch milliseconds; Infinity when an answer must come first. */
  readonly tryAtMs: number
  /** It goes although it is not believed to fit. */
  readonly probe: boolean
}

/** Why this auxiliary does not fit, though the lane may go. */
export const auxiliaryFit = (context: ScopeContext, waiting: Waiting): Misfit => {
  const { at } = context
  if (isPaced(context, waiting)) {
    const { pausedUntilMs } = paceOf(context, waiting.call.priorityClass)
    return { reason: 'pacing', tryAtMs: pausedUntilMs > at ? pausedUntilMs : Infinity, probe: false }
  }
  const budgetMs = budgetFitsAt(context, waiting)
  if (budgetMs > at) return { reason: 'budget', tryAtMs: budgetMs, probe: false }
  const { tryAtMs, probe } = auxiliaryVerdict(context, waiting)
  return tryAtMs > at ? { reason: 'forecast', tryAtMs, probe: false } : { reason: null, tryAtMs: at, probe }
}

export const auxiliaryMisfit = (context: ScopeContext, waiting: Waiting): Misfit['reason'] =>
  auxiliaryFit(context, waiting).reason

/** When this primary may be tried, epoch milliseconds, by what the provider said, the budget, its class and the planner. */
export const primaryFit = (context: ScopeContext, waiting: Waiting): Verdict => {
  const { at, wait } = context
  const pace = paceOf(context, waiting.call.priorityClass)
  const othersMs = Math.max(
    at,
    wait?.untilMs ?? 0,
    pace.refusals > 0 ? pace.pausedUntilMs : 0,
    budgetFitsAt(context, waiting),
  )
  const { tryAtMs, probe } = primaryVerdict(context, waiting)
  return { tryAtMs: Math.max(othersMs, tryAtMs), probe }
}

export const primaryFitsAt = (context: ScopeContext, waiting: Waiting): number =>
  primaryFit(context, waiting).tryAtMs

/** The primary that goes next, its rank and its seat. */
export interface NextPrimary extends Seated {
  readonly rank: number
  /** It goes before primaries of better rank, which have held it for `maxRankDeferralMs`. */
  readonly aged: boolean
}

const noSeats: ReadonlyArray<number> = []

const firstOfRank = (context: ScopeContext, rank: number): NextPrimary | null => {
  // One that has inherited a better rank since has left an empty place behind.
  const belongs = (one: Waiting): boolean => standingRank(context.policy, one) === rank
  if (context.favor.ranks[rank] !== noRankFavor) {
    const seated = favoredOfRank(context, rank, belongs)
    return seated === null ? null : { ...seated, rank, aged: false }
  }
  const found = headOf(context, context.primaries[rank]!, belongs)
  if (found === null) return null
  const { head, queue } = found
  return {
    waiting: head,
    first: head,
    rank,
    queue,
    takesSeat: true,
    displaced: null,
    dropped: noSeats,
    aged: false,
  }
}

const bestOfRanks = (context: ScopeContext, from: number): NextPrimary | null => {
  for (let rank = from; rank < context.primaries.length; rank += 1) {
    const found = firstOfRank(context, rank)
    if (found !== null) return found
  }
  return null
}

/** When better ranks have held a primary for as long as they may, epoch milliseconds: since it came, or since its rank had its last turn. */
const agedAt = ({ policy, rankServedAt }: ScopeContext, { first, rank }: NextPrimary): number =>
  Math.max(first.submittedAt, rankServedAt[rank]!) + (policy.maxRankDeferralMs ?? Number.POSITIVE_INFINITY)

/** When the first primaries of lower ranks are held for as long as they may be, epoch milliseconds. */
export const ranksAgeAt = (context: ScopeContext): ReadonlyArray<number> => {
  if (context.policy.maxRankDeferralMs === null || context.counts.primaryReady < 2) return []
  const times: number[] = []
  for (let next = bestOfRanks(context, 0); next !== null; next = bestOfRanks(context, next.rank + 1))
    times.push(agedAt(context, next))
  return times.slice(1)
}

/**
 * The primary whose turn it is: of the best rank the first; or the first of a lower rank that better ones have
 * held for `maxRankDeferralMs`, where it fits and does not pass any of them a second time.
 */
export const nextPrimary = (context: ScopeContext): NextPrimary | null => {
  const best = bestOfRanks(context, 0)
  if (best === null || context.policy.maxRankDeferralMs === null || context.counts.primaryReady < 2)
    return best
  if (best.first.seq < context.passedBefore) return best
  let chosen = best
  for (
    let next = bestOfRanks(context, best.rank + 1);
    next !== null;
    next = bestOfRanks(context, next.rank + 1)
  ) {
    const ages = agedAt(context, next)
    const first = !chosen.aged || ages < agedAt(context, chosen)
    if (first && context.at >= ages && primaryFitsAt(context, next.waiting) <= context.at)
      chosen = { ...next, aged: true }
  }
  return chosen
}
