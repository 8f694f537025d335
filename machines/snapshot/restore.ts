/** Builds again what a snapshot leaves out: queues, heaps and counts, which follow from the calls. */
import { HashMap } from 'effect'
import { add, addAll, type Due } from '../collections/heap.ts'
import { fromArray, push } from '../collections/queue.ts'
import { readBack } from '../collections/ring.ts'
import type { Lane } from '../model/call.ts'
import { isReady, parkAtQuota } from '../scheduling/fairness.ts'
import { countFlight } from '../scheduling/grant.ts'
import { standingRank } from '../scheduling/primary-order.ts'
import type { InFlight, Place, ScopeContext, Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import type { EncodedScope } from './encoded.ts'

/**
 * Before `dispatchAtOnce` was written, nobody's grant meant a dispatch; before there was a held clock, the
 * time of day was it; and every refusal counted, whatever it was for.
 */
const completed = (waiting: Waiting): Waiting =>
  waiting.dispatchAtOnce === undefined ||
  waiting.heldFromMs === undefined ||
  waiting.sizeRefusals === undefined ||
  waiting.inheritedRank === undefined
    ? {
        ...waiting,
        inheritedRank: waiting.inheritedRank ?? null,
        sizeRefusals: waiting.sizeRefusals ?? waiting.attempts,
        dispatchAtOnce: waiting.dispatchAtOnce ?? false,
        heldFromMs: waiting.heldFromMs ?? waiting.submittedAt,
      }
    : waiting

const completedFlight = (flight: InFlight): InFlight =>
  flight.turn === undefined || flight.heldFromMs === undefined || flight.sizeRefusals === undefined
    ? {
        ...flight,
        heldFromMs: flight.heldFromMs ?? flight.submittedAt,
        sizeRefusals: flight.sizeRefusals ?? flight.attempts - 1,
        turn: flight.turn ?? null,
      }
    : flight

export const restoreWaiting = (draft: Draft, calls: ReadonlyArray<Waiting>): void => {
  const primaries: Place[][] = draft.primaries.map(() => [])
  const arrivals: Record<Lane, Place[]> = { primary: [], auxiliary: [] }
  const urgents: Place[] = []
  const dependents = new Map<string, string[]>()
  const unclaimed: Due[] = []
  for (const row of calls) {
    const waiting = completed(row)
    const { call, seq, urgent, waitsFor, unclaimedUntilMs } = waiting
    const { id, lane, deadlineAt } = call
    const place = { seq, id }
    const ready = isReady(waiting)
    arrivals[lane].push(place)
    if (urgent && ready) urgents.push(place)
    if (lane === 'primary' && ready) primaries[standingRank(draft.policy, waiting)]!.push(place)
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

/** Where an older version wrote only how many expect an id, those that name it do. */
export const restoreExpected = ({ expected, waiting, inFlight }: EncodedScope): ScopeContext['expected'] =>
  HashMap.fromIterable(
    expected.map(([id, by]) => {
      if (typeof by !== 'number') return [id, by] as const
      const naming = [...waiting, ...inFlight].filter(({ call }) => call.dependsOn.includes(id))
      return [id, naming.map(({ call }) => call.id)] as const
    }),
  )

export const restorePrincipals = (
  draft: Draft,
  { principals, ring, nextPlace, waiting, inFlight }: EncodedScope,
): void => {
  const placed = ring.map((turn, index) => (typeof turn === 'string' ? ([turn, index] as const) : turn))
  draft.ring = readBack(placed, nextPlace ?? placed.length)
  const queued = Map.groupBy(
    waiting.filter((one) => one.call.lane === 'auxiliary' && !one.urgent && isReady(one)),
    ({ call }) => call.principal,
  )
  const flying = Map.groupBy(
    inFlight.filter(({ call }) => call.lane === 'auxiliary'),
    ({ call }) => call.principal,
  )
  draft.principals = HashMap.fromIterable(
    principals.map(([name, { deficitTokens, servedAt, turns = 0, heldFromMs = servedAt }]) => {
      const places = (queued.get(name) ?? []).map(({ seq, call }) => ({ seq, id: call.id }))
      const inFlightCount = flying.get(name)?.length ?? 0
      return [
        name,
        {
          queue: fromArray(places),
          waiting: places.length,
          inFlight: inFlightCount,
          deficitTokens,
          turns,
          servedAt,
          heldFromMs,
        },
      ] as const
    }),
  )
  parkAtQuota(draft)
}

export const restoreFlights = (draft: Draft, rows: ReadonlyArray<InFlight>): void => {
  const flights = rows.map(completedFlight)
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
