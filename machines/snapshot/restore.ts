/** Rebuilds the parts that a snapshot leaves out: queues, heaps and counts. They follow from the calls. */
import { HashMap } from 'effect'
import { add, addAll, type Due } from '../collections/heap.ts'
import { fromArray, push } from '../collections/queue.ts'
import { takenAtAdmission } from '../limits/charges.ts'
import type { Lane } from '../model/call.ts'
import { defaultCharges } from '../model/charges.ts'
import type { Policy } from '../model/policy.ts'
import { weightOf } from '../model/shares.ts'
import { readBack as readBackDebts } from '../scheduling/debts.ts'
import { costOf, isReady, standAsRead } from '../scheduling/fairness.ts'
import { noteFresh, restoreSeats } from '../scheduling/favor.ts'
import { countFlight } from '../scheduling/grant.ts'
import { standingRank } from '../scheduling/primary-order.ts'
import type { InFlight, Place, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import type { EncodedPrincipal, EncodedScope } from './encoded.ts'

/**
 * Older versions did not write `dispatchAtOnce`: for them a grant was never a dispatch. Without a held clock,
 * they used the time of day. They counted every refusal, of any kind, and did not record when a call was
 * tried.
 */
const completed = (waiting: Waiting): Waiting =>
  waiting.dispatchAtOnce === undefined ||
  waiting.heldFromMs === undefined ||
  waiting.sizeRefusals === undefined ||
  waiting.inheritedRank === undefined ||
  waiting.triedAtMs === undefined
    ? {
        ...waiting,
        inheritedRank: waiting.inheritedRank ?? null,
        sizeRefusals: waiting.sizeRefusals ?? waiting.attempts,
        triedAtMs: waiting.triedAtMs ?? (waiting.attempts > 0 ? waiting.submittedAt : 0),
        dispatchAtOnce: waiting.dispatchAtOnce ?? false,
        heldFromMs: waiting.heldFromMs ?? waiting.submittedAt,
      }
    : waiting

const completedFlight = (flight: InFlight): InFlight =>
  flight.turn === undefined ||
  flight.heldFromMs === undefined ||
  flight.sizeRefusals === undefined ||
  flight.taken === undefined
    ? {
        ...flight,
        heldFromMs: flight.heldFromMs ?? flight.submittedAt,
        sizeRefusals: flight.sizeRefusals ?? flight.attempts - 1,
        turn: flight.turn ?? null,
        // Before a policy could say what counts, it was what the caller had said.
        taken: flight.taken ?? takenAtAdmission(defaultCharges, flight.call),
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
  for (const { call, ofBegunTurn } of calls) if (ofBegunTurn !== true) noteFresh(draft, call)
  draft.counts.primaryWaiting += arrivals.primary.length
  draft.counts.auxiliaryWaiting += arrivals.auxiliary.length
  draft.primaries = primaries.map(fromArray)
  draft.arrivals = { primary: fromArray(arrivals.primary), auxiliary: fromArray(arrivals.auxiliary) }
  draft.urgent = fromArray(urgents)
  draft.unclaimed = addAll(draft.unclaimed, unclaimed)
  draft.dependents = HashMap.fromIterable(dependents)
}

/** The seats as they were, and the turns that have begun. Older versions favored no turn. */
export const restoreFavor = (draft: Draft, { favor }: EncodedScope): void => {
  if (favor === undefined) return restoreSeats(draft, [])
  const begun = (names: ReadonlyArray<string>) =>
    HashMap.fromIterable(names.map((name) => [name, true as const]))
  draft.favor = {
    ...draft.favor,
    begun: begun(favor.begun),
    begunBefore: begun(favor.begunBefore),
    begunSinceMs: favor.begunSinceMs,
  }
  restoreSeats(draft, favor.seats)
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

/** A principal's left-over tokens of deficit round robin become the lead of virtual time before its next call. */
const tagOf = (policy: Policy, name: string, { tag, deficitTokens = 0 }: EncodedPrincipal): number =>
  tag ?? 0 - deficitTokens / weightOf(policy, name)

export const restorePrincipals = (
  draft: Draft,
  { principals, ring, nextPlace, waiting, inFlight, virtualTokens, debts = [] }: EncodedScope,
): void => {
  const tags = new Map(principals.map(([name, row]) => [name, tagOf(draft.policy, name, row)]))
  draft.virtualTokens = virtualTokens ?? [...tags.values()].reduce((least, tag) => Math.min(least, tag), 0)
  draft.debts = readBackDebts(debts)
  const placed = ring.map((turn, index) => (typeof turn === 'string' ? ([turn, index] as const) : turn))
  const queued = Map.groupBy(
    waiting.filter((one) => one.call.lane === 'auxiliary' && !one.urgent && isReady(one)),
    ({ call }) => call.principal,
  )
  const flying = Map.groupBy(
    inFlight.filter(({ call }) => call.lane === 'auxiliary'),
    ({ call }) => call.principal,
  )
  draft.principals = HashMap.fromIterable(
    principals.map(([name, { servedAt, heldFromMs = servedAt }]) => {
      const places = (queued.get(name) ?? []).map(({ seq, call }) => ({ seq, id: call.id }))
      const inFlightCount = flying.get(name)?.length ?? 0
      return [
        name,
        {
          queue: fromArray(places),
          begun: fromArray(places.filter(({ id }) => lookup(draft.waiting, id)?.ofBegunTurn === true)),
          waiting: places.length,
          inFlight: inFlightCount,
          stands: null,
          tag: tags.get(name) as number,
          servedAt,
          heldFromMs,
        },
      ] as const
    }),
  )
  standAsRead(draft, placed, nextPlace ?? placed.length)
}

/** Older versions wrote no tags with a turn: it ended where its principal stands. */
const withTags = (draft: Draft, flight: InFlight): InFlight => {
  const { turn, call } = flight
  if (turn === null || turn.endTag !== undefined) return flight
  const { place, servedAt, heldFromMs } = turn
  const endTag = lookup(draft.principals, call.principal)?.tag ?? draft.virtualTokens
  const tag = endTag - costOf(flight) / weightOf(draft.policy, call.principal)
  return { ...flight, turn: { place, tag, endTag, servedAt, heldFromMs } }
}

/** The order of grants as times and places tell it. */
export const byGrant = (one: InFlight, other: InFlight): number =>
  one.grantedAt - other.grantedAt || one.seq - other.seq

export const restoreFlights = (
  draft: Draft,
  rows: ReadonlyArray<InFlight>,
  granted: ReadonlyArray<string> = [],
): void => {
  const flights = rows.map((row) => withTags(draft, completedFlight(row)))
  draft.inFlight = HashMap.fromIterable(flights.map((flight) => [flight.call.id, flight] as const))
  const grants = { ...draft.grants }
  const places = new Map(granted.map((id, index) => [id, index]))
  const placeOf = ({ call }: InFlight): number => places.get(call.id) ?? Number.MAX_SAFE_INTEGER
  const inOrder = [...flights].sort((one, other) => placeOf(one) - placeOf(other) || byGrant(one, other))
  for (const flight of inOrder) {
    const { call, seq, grantedAt } = flight
    grants[call.lane] = push(grants[call.lane], { seq, id: call.id, grantedAt })
    if (call.deadlineAt !== null)
      draft.deadlines = add(draft.deadlines, { at: call.deadlineAt, callId: call.id })
    countFlight(draft, flight, 1)
  }
  draft.grants = grants
}
