/** Rebuilds the parts that a snapshot leaves out: queues, heaps and counts. They follow from the calls. */
import { HashMap } from 'effect'
import { add, addAll, type Due } from '../collections/heap.ts'
import { fromArray, push } from '../collections/queue.ts'
import { fromNames } from '../collections/ring.ts'
import type { Lane } from '../model/call.ts'
import { isReady } from '../scheduling/fairness.ts'
import { countFlight } from '../scheduling/grant.ts'
import { rankOf } from '../scheduling/primary-order.ts'
import type { InFlight, Place, Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import type { EncodedScope } from './encoded.ts'

/** Older versions did not write `dispatchAtOnce`: for them a grant was never a dispatch. */
const completed = (waiting: Waiting): Waiting =>
  waiting.dispatchAtOnce === undefined ? { ...waiting, dispatchAtOnce: false } : waiting

export const restoreWaiting = (draft: Draft, calls: ReadonlyArray<Waiting>): void => {
  const primaries: Place[][] = draft.primaries.map(() => [])
  const arrivals: Record<Lane, Place[]> = { primary: [], auxiliary: [] }
  const urgents: Place[] = []
  const dependents = new Map<string, string[]>()
  const unclaimed: Due[] = []
  for (const waiting of calls) {
    const { call, seq, urgent, waitsFor, unclaimedUntilMs } = waiting
    const { id, lane, deadlineAt } = call
    const place = { seq, id }
    const ready = isReady(waiting)
    arrivals[lane].push(place)
    if (urgent && ready) urgents.push(place)
    if (lane === 'primary' && ready) primaries[rankOf(draft.policy, call.priorityClass)]!.push(place)
    if (lane === 'primary' && ready) draft.counts.primaryReady += 1
    if (deadlineAt !== null) draft.deadlines = add(draft.deadlines, { at: deadlineAt, callId: id })
    if (unclaimedUntilMs !== null) unclaimed.push({ at: unclaimedUntilMs, callId: id })
    for (const other of waitsFor) dependents.set(other, [...(dependents.get(other) ?? []), id])
  }
  draft.waiting = HashMap.mutate(HashMap.empty<string, Waiting>(), (map) => {
    for (const waiting of calls) HashMap.set(map, waiting.call.id, completed(waiting))
  })
  draft.counts.primaryWaiting += arrivals.primary.length
  draft.counts.auxiliaryWaiting += arrivals.auxiliary.length
  draft.primaries = primaries.map(fromArray)
  draft.arrivals = { primary: fromArray(arrivals.primary), auxiliary: fromArray(arrivals.auxiliary) }
  draft.urgent = fromArray(urgents)
  draft.unclaimed = addAll(draft.unclaimed, unclaimed)
  draft.dependents = HashMap.fromIterable(dependents)
}

export const restorePrincipals = (
  draft: Draft,
  { principals, ring, waiting, inFlight }: EncodedScope,
): void => {
  draft.ring = fromNames(ring)
  const queued = Map.groupBy(
    waiting.filter((one) => one.call.lane === 'auxiliary' && !one.urgent && isReady(one)),
    ({ call }) => call.principal,
  )
  const flying = Map.groupBy(
    inFlight.filter(({ call }) => call.lane === 'auxiliary'),
    ({ call }) => call.principal,
  )
  draft.principals = HashMap.fromIterable(
    principals.map(([name, { deficitTokens, servedAt }]) => {
      const places = (queued.get(name) ?? []).map(({ seq, call }) => ({ seq, id: call.id }))
      const inFlightCount = flying.get(name)?.length ?? 0
      return [
        name,
        {
          queue: fromArray(places),
          waiting: places.length,
          inFlight: inFlightCount,
          deficitTokens,
          servedAt,
        },
      ] as const
    }),
  )
}

export const restoreFlights = (draft: Draft, flights: ReadonlyArray<InFlight>): void => {
  draft.inFlight = HashMap.fromIterable(flights.map((flight) => [flight.call.id, flight] as const))
  const grants = { ...draft.grants }
  const inOrder = [...flights].sort((one, other) => one.grantedAt - other.grantedAt || one.seq - other.seq)
  for (const flight of inOrder) {
    const { call, seq, grantedAt } = flight
    grants[call.lane] = push(grants[call.lane], { seq, id: call.id, grantedAt })
    if (call.deadlineAt !== null)
      draft.deadlines = add(draft.deadlines, { at: call.deadlineAt, callId: call.id })
    countFlight(draft, flight, 1)
  }
  draft.grants = grants
}
