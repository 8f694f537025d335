/** When waiting and running calls time out. Calls come and go in order, so the first to time out is the oldest. */
import { HashMap } from 'effect'
import { type Due, type Heap, rest } from '../collections/heap.ts'
import { empty, peek, pop, push, type Queue } from '../collections/queue.ts'
import type { Lane } from '../model/call.ts'
import type { Policy } from '../model/policy.ts'
import type { InFlight, Place, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'

export const never = Number.POSITIVE_INFINITY

export const pendingTimeoutMs = (policy: Policy, lane: Lane): number =>
  lane === 'primary' ? policy.primaryPendingTimeoutMs : policy.auxiliaryPendingTimeoutMs

export const activeTimeoutMs = (policy: Policy, lane: Lane): number =>
  lane === 'primary' ? policy.primaryActiveTimeoutMs : policy.auxiliaryActiveTimeoutMs

type Granted = Place & { readonly grantedAt: number }

const isWaiting = (context: ScopeContext, place: Place): boolean =>
  lookup(context.waiting, place.id)?.seq === place.seq

const isInFlight = (context: ScopeContext, place: Granted): boolean =>
  lookup(context.inFlight, place.id)?.grantedAt === place.grantedAt

/** Places of ended calls in a queue, beyond as many as live ones, before they are dropped. */
const slack = 1_024

const compacted = <T>(queue: Queue<T>, live: number, isLive: (place: T) => boolean): Queue<T> => {
  if (queue.size <= 2 * live + slack) return queue
  let kept = empty<T>()
  for (let rest = queue; rest.size > 0; rest = pop(rest)) {
    const place = peek(rest) as T
    if (isLive(place)) kept = push(kept, place)
  }
  return kept
}

const withLane = <T>(lanes: Readonly<Record<Lane, T>>, lane: Lane, value: T): Readonly<Record<Lane, T>> =>
  lane === 'primary'
    ? { primary: value, auxiliary: lanes.auxiliary }
    : { primary: lanes.primary, auxiliary: value }

/** Makes sure that timeouts are looked at at `atMs` at the latest. */
export const sweepBy = (draft: Draft, atMs: number): void => {
  if (atMs < draft.sweepAt) draft.sweepAt = atMs
}

/** Keeps the lane's order of submission; `arrivals` has the call in it. */
export const noteArrival = (draft: Draft, lane: Lane, submittedAt: number, arrivals: Queue<Place>): void => {
  const live = lane === 'primary' ? draft.counts.primaryWaiting : draft.counts.auxiliaryWaiting
  draft.arrivals = withLane(
    draft.arrivals,
    lane,
    compacted(arrivals, live, (place) => isWaiting(draft, place)),
  )
  sweepBy(draft, submittedAt + pendingTimeoutMs(draft.policy, lane))
}

/** Keeps the lane's order of grants. */
export const noteGrant = (draft: Draft, lane: Lane, place: Granted): void => {
  const live = lane === 'primary' ? draft.counts.primaryInFlight : draft.counts.auxiliaryInFlight
  const grants = compacted(push(draft.grants[lane], place), live, (one) => isInFlight(draft, one))
  draft.grants = withLane(draft.grants, lane, grants)
  sweepBy(draft, draft.at + activeTimeoutMs(draft.policy, lane))
}

const firstLive = <T>(queue: Queue<T>, isLive: (place: T) => boolean): Queue<T> => {
  let rest = queue
  for (let place = peek(rest); place !== undefined && !isLive(place); place = peek(rest)) rest = pop(rest)
  return rest
}

/** Drops the places of calls that are gone from the fronts of the lane's orders. */
export const trim = (draft: Draft, lane: Lane): void => {
  draft.arrivals = withLane(
    draft.arrivals,
    lane,
    firstLive(draft.arrivals[lane], (place) => isWaiting(draft, place)),
  )
  draft.grants = withLane(
    draft.grants,
    lane,
    firstLive(draft.grants[lane], (place) => isInFlight(draft, place)),
  )
}

/** The call of a lane that has waited longest. */
export const oldestWaiting = (context: ScopeContext, lane: Lane): Waiting | undefined => {
  const place = peek(firstLive(context.arrivals[lane], (one) => isWaiting(context, one)))
  return place === undefined ? undefined : lookup(context.waiting, place.id)
}

/** The call of a lane that has run longest. */
export const longestInFlight = (context: ScopeContext, lane: Lane): InFlight | undefined => {
  const place = peek(firstLive(context.grants[lane], (one) => isInFlight(context, one)))
  return place === undefined ? undefined : lookup(context.inFlight, place.id)
}

/** When the first of a lane's calls times out, waiting or running. */
const laneTimeout = (context: ScopeContext, lane: Lane): number => {
  const { policy } = context
  const first = oldestWaiting(context, lane)
  const flight = longestInFlight(context, lane)
  return Math.min(
    first === undefined ? never : first.submittedAt + pendingTimeoutMs(policy, lane),
    flight === undefined ? never : flight.grantedAt + activeTimeoutMs(policy, lane),
  )
}

const firstDue = (heap: Heap | null, isLive: (due: Due) => boolean): number => {
  let later = heap
  while (later !== null && !isLive(later.due)) later = rest(later)
  return later?.due.at ?? never
}

/** When the first timeout, deadline or expiry of any call or turn is due, epoch milliseconds. */
export const firstTimeout = (context: ScopeContext): number => {
  const { waiting, inFlight, deadlines, unclaimed, turns, policy } = context
  const lives = ({ callId }: Due) => HashMap.has(waiting, callId) || HashMap.has(inFlight, callId)
  const orphaned = ({ callId, at }: Due) => lookup(waiting, callId)?.unclaimedUntilMs === at
  let earliest = Math.min(
    laneTimeout(context, 'primary'),
    laneTimeout(context, 'auxiliary'),
    firstDue(deadlines, lives),
    firstDue(unclaimed, orphaned),
  )
  for (const turn of HashMap.values(turns)) earliest = Math.min(earliest, turn.beganAt + policy.turnTimeoutMs)
  return earliest
}
