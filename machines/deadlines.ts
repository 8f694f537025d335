/** Every deadline is data: what is due is swept by the next event, and `wakeAt` says when that must be at the latest. */
import { HashMap } from 'effect'
import { auxiliaryMisfit, costOfCall, primaryWanted, waitsForProvider } from './admission.ts'
import { fitsAt } from './budget.ts'
import type { Lane } from './call.ts'
import {
  count,
  type Draft,
  type InFlight,
  lookup,
  type Place,
  type ScopeContext,
  type Waiting,
} from './context.ts'

import { end, endTurn, expire, land, leaveWaiting } from './facts.ts'
import { ringFront, unservedSince } from './fairness.ts'
import { type Due, type Heap, rest } from './heap.ts'
import type { Policy } from './policy.ts'
import { empty, peek, pop, push, type Queue } from './queue.ts'

const pendingTimeoutMs = (policy: Policy, lane: Lane): number =>
  lane === 'primary' ? policy.primaryPendingTimeoutMs : policy.auxiliaryPendingTimeoutMs

const activeTimeoutMs = (policy: Policy, lane: Lane): number =>
  lane === 'primary' ? policy.primaryActiveTimeoutMs : policy.auxiliaryActiveTimeoutMs

const bothLanes: ReadonlyArray<Lane> = ['primary', 'auxiliary']

type Granted = Place & { readonly grantedAt: number }

const isWaiting = (context: ScopeContext, place: Place): boolean =>
  lookup(context.waiting, place.id)?.seq === place.seq

const isInFlight = (context: ScopeContext, place: Granted): boolean =>
  lookup(context.inFlight, place.id)?.grantedAt === place.grantedAt

/** Drops places of calls that are gone: from the front always, all of them once they are the greater part. */
const trimmed = <T>(queue: Queue<T>, live: number, isLive: (place: T) => boolean): Queue<T> => {
  let rest = queue
  for (let place = peek(rest); place !== undefined && !isLive(place); place = peek(rest)) rest = pop(rest)
  if (rest.size <= 2 * live + 1_024) return rest
  let kept = empty<T>()
  for (; rest.size > 0; rest = pop(rest)) {
    const place = peek(rest) as T
    if (isLive(place)) kept = push(kept, place)
  }
  return kept
}

const liveOf = (
  { counts }: ScopeContext,
  lane: Lane,
): { readonly waiting: number; readonly inFlight: number } =>
  lane === 'primary'
    ? { waiting: counts.primaryWaiting, inFlight: counts.primaryInFlight }
    : { waiting: counts.auxiliaryWaiting, inFlight: counts.auxiliaryInFlight }

const trimLane = (draft: Draft, lane: Lane): void => {
  const live = liveOf(draft, lane)
  const arrivals = trimmed(draft.arrivals[lane], live.waiting, (place) => isWaiting(draft, place))
  if (arrivals !== draft.arrivals[lane]) draft.arrivals = { ...draft.arrivals, [lane]: arrivals }
  const grants = trimmed(draft.grants[lane], live.inFlight, (place) => isInFlight(draft, place))
  if (grants !== draft.grants[lane]) draft.grants = { ...draft.grants, [lane]: grants }
}

const expireWaiting = (
  draft: Draft,
  waiting: Waiting,
  reason: 'deadline' | 'pending-timeout' | 'unclaimed',
): void => {
  leaveWaiting(draft, waiting)
  draft.unannounced = draft.unannounced.filter((id) => id !== waiting.call.id)
  expire(draft, waiting.call.id, reason)
  end(draft, waiting.call.id, 'expired')
}

const expireInFlight = (draft: Draft, flight: InFlight, reason: 'deadline' | 'active-timeout'): void => {
  land(draft, flight)
  expire(draft, flight.call.id, reason)
  end(draft, flight.call.id, 'timedOut')
}

const sweepLane = (draft: Draft, lane: Lane): void => {
  const pendingMs = pendingTimeoutMs(draft.policy, lane)
  const activeMs = activeTimeoutMs(draft.policy, lane)
  for (;;) {
    trimLane(draft, lane)
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
        call.lane === 'auxiliary' && grant !== 'dependency' && grant !== 'nested' && preempted === wanted,
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
    count(draft, 'preemptions')
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
    count(draft, 'abandoned')
    end(draft, flight.call.id, 'abandoned')
  }
}

const sweepPending = (draft: Draft): void => {
  const { phase, policy } = draft
  if (phase.graceUntilMs > 0 && draft.at >= phase.graceUntilMs) {
    abandon(draft)
    draft.phase = { ...draft.phase, graceUntilMs: 0 }
  }
  const impatient =
    policy.inFlight === 'cancel' || (policy.inFlight === 'settle' && policy.afterPatience === 'cancel')
  if (impatient && draft.at >= phase.patienceUntilMs) preempt(draft, false)
}

/** Ends everything whose time has come. */
export const sweep = (draft: Draft): void => {
  for (const lane of bothLanes) sweepLane(draft, lane)
  sweepDeadlines(draft)
  sweepUnclaimed(draft)
  sweepTurns(draft)
  if (draft.state === 'primaryPending') sweepPending(draft)
}

const firstLive = (heap: Heap | null, isLive: (due: Due) => boolean): number => {
  let later = heap
  while (later !== null && !isLive(later.due)) later = rest(later)
  return later?.due.at ?? Number.POSITIVE_INFINITY
}

const timeoutsOf = (context: ScopeContext): number[] => {
  const { policy, waiting, inFlight } = context
  const times: number[] = []
  for (const lane of bothLanes) {
    const oldest = peek(context.arrivals[lane])
    const first = oldest === undefined ? undefined : lookup(waiting, oldest.id)
    if (first !== undefined) times.push(first.submittedAt + pendingTimeoutMs(policy, lane))
    const longest = peek(context.grants[lane])
    const flight = longest === undefined ? undefined : lookup(inFlight, longest.id)
    if (flight !== undefined) times.push(flight.grantedAt + activeTimeoutMs(policy, lane))
  }
  if (context.deadlines !== null) {
    times.push(
      firstLive(
        context.deadlines,
        ({ callId }) => HashMap.has(waiting, callId) || HashMap.has(inFlight, callId),
      ),
    )
  }
  if (context.unclaimed !== null) {
    times.push(
      firstLive(context.unclaimed, ({ callId, at }) => lookup(waiting, callId)?.unclaimedUntilMs === at),
    )
  }
  for (const turn of HashMap.values(context.turns)) times.push(turn.beganAt + policy.turnTimeoutMs)
  return times
}

/** When time alone may let an auxiliary go. */
const auxiliaryTimes = (context: ScopeContext): number[] => {
  const { at, policy, drain } = context
  if (context.ring.size === 0) return []
  const times: number[] = []
  if (waitsForProvider(context)) times.push(context.wait!.untilMs)
  const front = ringFront(context)
  if (front !== null && auxiliaryMisfit(context, front) !== null) {
    times.push(fitsAt(context.budget, costOfCall(front), at))
    for (const pace of Object.values(context.pacing)) times.push(pace.pausedUntilMs)
  }
  const since = unservedSince(context)
  if (since !== null && (primaryWanted(context) || context.foregroundActive)) {
    times.push(since + policy.maxDeferralMs)
    if (context.primaryOwed) times.push(context.quantumEndedAt + policy.maxDeferralMs)
  }
  if (policy.squeezeMs > 0) times.push(context.primaryGrantedAt + policy.squeezeMs)
  if (context.state === 'auxiliaryDraining') times.push(drain.windowStartMs + policy.drainIntervalMs)
  return times
}

/**
 * When the scope must be told the time, epoch milliseconds; null when only an event can change
 * anything. Derived from the context alone, so a restored scope wakes as the lost one would have.
 */
export const wakeAt = (context: ScopeContext): number | null => {
  const { at, phase, policy, counts } = context
  const times = [...timeoutsOf(context), ...auxiliaryTimes(context)]
  if (context.state === 'primaryPending') times.push(phase.patienceUntilMs, phase.graceUntilMs)
  if (context.state.startsWith('quietRamp') && counts.primaryReady > 0) times.push(phase.quietUntilMs)
  if (context.state === 'settled') times.push(phase.lingerUntilMs)
  if (context.urgent.size > 0 && waitsForProvider(context)) times.push(context.wait!.untilMs)
  if (policy.inFlight === 'settle' && phase.graceUntilMs > at) times.push(phase.graceUntilMs)
  let earliest = Number.POSITIVE_INFINITY
  for (const time of times) if (time > at && time < earliest) earliest = time
  return earliest === Number.POSITIVE_INFINITY ? null : earliest
}
