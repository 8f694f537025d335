/** Every deadline is data. The next event ends the calls that are due, and `wakeAt` names the latest time of that event. */
import { HashMap } from 'effect'
import { rest } from '../collections/heap.ts'
import { peek } from '../collections/queue.ts'
import { noBudget } from '../limits/budget.ts'
import type { Lane } from '../model/call.ts'
import {
  budgetFitsAt,
  isHeld,
  nextInTurn,
  owedInMs,
  primaryWanted,
  ranksAgeAt,
  turnFront,
  waitsForProvider,
} from '../scheduling/admission.ts'
import { end, expire, land, leaveWaiting } from '../scheduling/lifecycle.ts'
import { activeTimeoutMs, firstTimeout, never, pendingTimeoutMs, trim } from '../scheduling/timeouts.ts'
import type { InFlight, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { endTurn } from './operations.ts'

const bothLanes: ReadonlyArray<Lane> = ['primary', 'auxiliary']

const expireWaiting = (
  draft: Draft,
  waiting: Waiting,
  reason: 'deadline' | 'pending-timeout' | 'unclaimed',
): void => {
  leaveWaiting(draft, waiting)
  expire(draft, waiting.call.id, reason)
  end(draft, waiting.call, 'expired')
}

const expireInFlight = (draft: Draft, flight: InFlight, reason: 'deadline' | 'active-timeout'): void => {
  land(draft, flight)
  expire(draft, flight.call.id, reason)
  end(draft, flight.call, 'timedOut')
}

const sweepLane = (draft: Draft, lane: Lane): void => {
  const pendingMs = pendingTimeoutMs(draft.policy, lane)
  const activeMs = activeTimeoutMs(draft.policy, lane)
  for (;;) {
    trim(draft, lane)
    const oldest = peek(draft.arrivals[lane])
    const waiting = oldest === undefined ? undefined : lookup(draft.waiting, oldest.id)
    if (waiting !== undefined && draft.at >= waiting.submittedAt + pendingMs) {
      expireWaiting(draft, waiting, 'pending-timeout')
      continue
    }
    const longest = peek(draft.grants[lane])
    const flight = longest === undefined ? undefined : lookup(draft.inFlight, longest.id)
    if (flight === undefined || draft.at < flight.grantedAt + activeMs) return
    expireInFlight(draft, flight, 'active-timeout')
  }
}

const sweepDeadlines = (draft: Draft): void => {
  while (draft.deadlines !== null && draft.at >= draft.deadlines.due.at) {
    const { callId, at } = draft.deadlines.due
    draft.deadlines = rest(draft.deadlines)
    const waiting = lookup(draft.waiting, callId)
    const flight = lookup(draft.inFlight, callId)
    if (waiting?.call.deadlineAt === at) expireWaiting(draft, waiting, 'deadline')
    if (flight?.call.deadlineAt === at) expireInFlight(draft, flight, 'deadline')
  }
}

const sweepUnclaimed = (draft: Draft): void => {
  while (draft.unclaimed !== null && draft.at >= draft.unclaimed.due.at) {
    const { callId, at } = draft.unclaimed.due
    draft.unclaimed = rest(draft.unclaimed)
    const waiting = lookup(draft.waiting, callId)
    if (waiting?.unclaimedUntilMs === at) expireWaiting(draft, waiting, 'unclaimed')
  }
}

const sweepTurns = (draft: Draft): void => {
  if (HashMap.isEmpty(draft.turns)) return
  for (const [turnId, turn] of HashMap.toEntries(draft.turns)) {
    if (draft.at >= turn.beganAt + draft.policy.turnTimeoutMs) endTurn(draft, turnId)
  }
}

const preemptedFlights = (context: ScopeContext, wanted: boolean): InFlight[] =>
  [...HashMap.values(context.inFlight)]
    .filter(
      ({ call, grant, preempted }) =>
        call.lane === 'auxiliary' &&
        grant !== 'dependency' &&
        grant !== 'nested' &&
        preempted === wanted &&
        // A primary waits for it: taking its place back would help nobody.
        (wanted || !HashMap.has(context.dependents, call.id)),
    )
    .sort((one, other) => one.seq - other.seq)

/** Asks for the places of auxiliaries in flight; those that fairness let go are spared until patience ends. */
export const preempt = (draft: Draft, spareFairness: boolean): void => {
  for (const flight of preemptedFlights(draft, false)) {
    if (spareFairness && flight.grant === 'fairness') continue
    draft.inFlight = HashMap.set(draft.inFlight, flight.call.id, { ...flight, preempted: true })
    draft.decisions.push({
      callId: flight.call.id,
      verdict: 'cancel',
      reason: 'preempted',
      at: draft.at,
      state: draft.state,
    })
    draft.counters.preemptions += 1
    if (draft.episode !== null) {
      draft.episode = { ...draft.episode, auxiliariesCancelled: draft.episode.auxiliariesCancelled + 1 }
    }
    draft.phase = { ...draft.phase, graceUntilMs: draft.at + draft.policy.graceMs }
  }
}

const abandon = (draft: Draft): void => {
  for (const flight of preemptedFlights(draft, true)) {
    land(draft, flight)
    expire(draft, flight.call.id, 'abandoned')
    draft.counters.abandoned += 1
    end(draft, flight.call, 'abandoned')
  }
}

/** Patience and grace that are over: also those of no length, as soon as they begin. */
export const sweepPending = (draft: Draft): void => {
  const { policy } = draft
  const impatient =
    policy.inFlight === 'cancel' || (policy.inFlight === 'settle' && policy.afterPatience === 'cancel')
  if (impatient && draft.at >= draft.phase.patienceUntilMs) preempt(draft, false)
  const { graceUntilMs } = draft.phase
  if (graceUntilMs > 0 && draft.at >= graceUntilMs) {
    abandon(draft)
    draft.phase = { ...draft.phase, graceUntilMs: 0 }
  }
}

/** Ends everything whose time has come. */
export const sweep = (draft: Draft): void => {
  if (draft.state === 'primaryPending') sweepPending(draft)
  if (draft.at < draft.sweepAt) return
  for (const lane of bothLanes) sweepLane(draft, lane)
  sweepDeadlines(draft)
  sweepUnclaimed(draft)
  sweepTurns(draft)
  draft.sweepAt = firstTimeout(draft)
}

/** The earlier of two times, but only a time to come counts. */
const sooner = (context: ScopeContext, earliest: number, time: number): number =>
  time > context.at && time < earliest ? time : earliest

/** When time alone may let an auxiliary go. */
const firstAuxiliaryTime = (context: ScopeContext): number => {
  const { at, policy, drain } = context
  if (context.lines.size === 0) return never
  let earliest = never
  if (waitsForProvider(context)) earliest = sooner(context, earliest, context.wait!.untilMs)
  if (context.budget !== noBudget) {
    const next = nextInTurn(context)
    if (next !== null) earliest = sooner(context, earliest, budgetFitsAt(context, next))
    // Beside a primary, the held clock runs from the time at which this call fits.
    const front = primaryWanted(context) || context.foregroundActive ? turnFront(context) : null
    if (front !== null) earliest = sooner(context, earliest, budgetFitsAt(context, front))
  }
  // Who backs off may stand behind a front that waits for something else.
  for (const pace of Object.values(context.pacing)) {
    earliest = sooner(context, earliest, pace.pausedUntilMs)
  }
  earliest = sooner(context, earliest, context.phase.lookAgainMs)
  if (isHeld(context)) earliest = sooner(context, earliest, at + (owedInMs(context) as number))
  if (policy.squeezeMs > 0) earliest = sooner(context, earliest, context.primaryGrantedAt + policy.squeezeMs)
  // A window that is not spent holds no call. Whatever holds calls then has a time of its own, or ends with an event.
  if (context.state === 'auxiliaryDraining' && drain.windowTokens >= policy.quantumTokens) {
    earliest = sooner(context, earliest, drain.windowStartMs + policy.drainIntervalMs)
  }
  return earliest
}

/**
 * When the scope must be told the time, epoch milliseconds; null when only an event can change
 * anything. Derived from the context alone, so a restored scope wakes as the lost one would have.
 */
export const wakeAt = (context: ScopeContext): number | null => {
  const { phase, counts, state } = context
  // A restored scope has not looked at its timeouts yet.
  const timeout = context.sweepAt > context.at ? context.sweepAt : firstTimeout(context)
  let earliest = sooner(context, firstAuxiliaryTime(context), timeout)
  if (state === 'primaryPending') {
    earliest = sooner(context, earliest, phase.patienceUntilMs)
    earliest = sooner(context, earliest, phase.graceUntilMs)
  }
  if (state.startsWith('quietRamp') && counts.primaryReady > 0) {
    earliest = sooner(context, earliest, phase.quietUntilMs)
    earliest = sooner(context, earliest, phase.lookAgainMs)
    for (const time of ranksAgeAt(context)) earliest = sooner(context, earliest, time)
  }
  if (state === 'settled') earliest = sooner(context, earliest, phase.lingerUntilMs)
  if (context.urgent.size > 0 && waitsForProvider(context)) {
    earliest = sooner(context, earliest, context.wait!.untilMs)
  }
  return earliest === never ? null : earliest
}
