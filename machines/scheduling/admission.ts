import type { Queue } from '../collections/queue.ts'
import { type Cost, fitsAt } from '../limits/budget.ts'
import { capacityOf, reservedOf } from '../limits/capacity.ts'
import * as pacing from '../limits/pacing.ts'
import type { PriorityClass } from '../model/call.ts'
import type { DeferReason } from '../model/decision.ts'
import type { Place, ScopeContext, Waiting } from '../state/context.ts'
import { headOf, ringFront, unservedSince } from './fairness.ts'
import { auxiliaryVerdict, primaryVerdict, type Verdict } from './planner.ts'

export const costOfCall = ({ call }: Pick<Waiting, 'call'>): Cost => ({
  requests: 1,
  inputTokens: call.inputTokens,
  outputTokens: call.outputTokens,
})

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

/** Whether primaries have kept the longest unserved principal for `maxDeferralMs`. */
export const overdue = (context: ScopeContext): boolean => {
  const { at, policy, primaryOwed, quantumEndedAt } = context
  const since = unservedSince(context)
  if (since === null || at < since + policy.maxDeferralMs) return false
  // Quanta and primaries take turns, unless the primary cannot go for that long itself.
  return !primaryOwed || at >= quantumEndedAt + policy.maxDeferralMs
}

/** Why no auxiliary may go whichever it is, or null. Whether the gate is open is the state's business. */
export const auxiliaryObstacle = (context: ScopeContext): DeferReason | null => {
  const { counts } = context
  if (waitsForProvider(context)) return 'provider-wait'
  if (counts.places >= capacityOf(context)) return 'capacity-full'
  // Every class in flight counts against the auxiliaries' places, as in the Edict's gate; but a
  // quantum that is due must not wait for a time when no primary runs, which may never come.
  const taken = primaryWanted(context) ? counts.auxiliaryInFlight : counts.places
  if (taken >= auxiliaryPlaces(context)) return 'reserve-kept'
  return context.foregroundActive && !overdue(context) ? 'foreground-active' : null
}

/** The front of the ring cannot go for a reason that lies outside this scope's own places. */
const quantumBlocked = (context: ScopeContext): boolean => {
  const obstacle = auxiliaryObstacle(context)
  if (obstacle !== null) return obstacle !== 'capacity-full' && obstacle !== 'reserve-kept'
  const front = ringFront(context)
  return front === null || auxiliaryMisfit(context, front) !== null
}

/** A principal's quantum comes before the next primary, and can be served now. */
export const fairnessDue = (context: ScopeContext): boolean =>
  context.ring.size > 0 &&
  overdue(context) &&
  primaryWanted(context) &&
  auxiliaryObstacle(context) === null &&
  !quantumBlocked(context)

/** The drain makes way for a primary: nothing is overdue, or its quantum is spent, or cannot be served. */
export const primaryDue = (context: ScopeContext): boolean =>
  primaryWanted(context) &&
  (context.ring.size === 0 || !overdue(context) || quantumSpent(context) || quantumBlocked(context))

export const isPaced = (context: ScopeContext, { call }: Waiting): boolean =>
  !pacing.paceAllows(paceOf(context, call.priorityClass), context.at)

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
  const { at, budget } = context
  if (isPaced(context, waiting)) {
    const { pausedUntilMs } = paceOf(context, waiting.call.priorityClass)
    return { reason: 'pacing', tryAtMs: pausedUntilMs > at ? pausedUntilMs : Infinity, probe: false }
  }
  const budgetMs = fitsAt(budget, costOfCall(waiting), at)
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
    fitsAt(context.budget, costOfCall(waiting), at),
  )
  const { tryAtMs, probe } = primaryVerdict(context, waiting)
  return { tryAtMs: Math.max(othersMs, tryAtMs), probe }
}

export const primaryFitsAt = (context: ScopeContext, waiting: Waiting): number =>
  primaryFit(context, waiting).tryAtMs

/** The primary whose turn it is, lowest rank, then first come; and its rank's queue, of which it is the first. */
export const nextPrimary = (
  context: ScopeContext,
): { readonly waiting: Waiting; readonly rank: number; readonly queue: Queue<Place> } | null => {
  for (let rank = 0; rank < context.primaries.length; rank += 1) {
    const found = headOf(context, context.primaries[rank]!)
    if (found !== null) return { waiting: found.head, rank, queue: found.queue }
  }
  return null
}

/** A quantum is spent: enough for a turn that began while a primary was pending. */
export const quantumSpent = ({ drain, policy }: ScopeContext): boolean =>
  drain.servedTokens >= policy.quantumTokens
