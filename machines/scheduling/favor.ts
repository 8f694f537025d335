/**
 * Run to completion: of equal calls, the one whose turn has begun goes before one whose turn has not, so that many agents
 * of several rounds each end one after another instead of all at the end. Inside one principal this is the default: its
 * seats in the queue stay where they are, and its calls take them in another order, so that no call of another principal
 * goes later for it. A call that has waited for half its pending timeout is not passed any more.
 */
import { HashMap } from 'effect'
import { fromArray, insert, peek, pop, type Queue, remove } from '../collections/queue.ts'
import type { Call } from '../model/call.ts'
import type { Policy } from '../model/policy.ts'
import type { Place, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext, without } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { noRankFavor, noRankFavors, type RankFavor } from '../state/favor.ts'
import { favorBegun, headOf, isReady, seqOf } from './fairness.ts'
import { standingRank } from './primary-order.ts'
import { pendingTimeoutMs } from './timeouts.ts'

/** Turns that are remembered at least, while they have calls. */
const rememberedTurns = 4_096

const hasBegun = ({ favor }: Pick<ScopeContext, 'favor'>, turnId: string): boolean =>
  lookup(favor.begun, turnId) === true || lookup(favor.begunBefore, turnId) === true

/** How long a call may be passed by calls of begun turns that came later, milliseconds. */
export const favorPatienceMs = (policy: Policy, lane: Call['lane']): number =>
  policy.favor === 'arrival' ? 0 : Math.ceil(pendingTimeoutMs(policy, lane) / 2)

/** Whether calls of begun turns that came later may not pass it any more. */
export const isPatient = ({ policy, at }: ScopeContext, { call, submittedAt }: Waiting): boolean =>
  at < submittedAt + favorPatienceMs(policy, call.lane)

/** A call that begins to wait: it is marked where its turn has begun. */
export const marked = (draft: Draft, waiting: Waiting): Waiting => {
  const { turnId } = waiting.call
  if (turnId === null || draft.policy.favor === 'arrival') return waiting
  if (hasBegun(draft, turnId))
    return waiting.ofBegunTurn === true ? waiting : { ...waiting, ofBegunTurn: true }
  noteFresh(draft, waiting.call)
  return waiting
}

/** A call waits whose turn has not begun, where it is of one. */
export const noteFresh = (draft: Draft, { id, turnId }: Call): void => {
  if (turnId === null || draft.policy.favor === 'arrival') return
  const { fresh } = draft.favor
  const ids = [...(lookup(fresh, turnId) ?? []), id]
  draft.favor = { ...draft.favor, fresh: HashMap.set(fresh, turnId, ids) }
}

const unmark = (draft: Draft, { call: { id, turnId } }: Waiting): void => {
  const ids = turnId === null ? undefined : lookup(draft.favor.fresh, turnId)
  if (turnId === null || ids === undefined) return
  const others = ids.filter((other) => other !== id)
  const { fresh } = draft.favor
  draft.favor = {
    ...draft.favor,
    fresh: others.length === 0 ? HashMap.remove(fresh, turnId) : HashMap.set(fresh, turnId, others),
  }
}

/** A call of the turn has its permit: those of it that wait are marked. */
export const beginTurn = (draft: Draft, { turnId }: Call): void => {
  if (turnId === null || draft.policy.favor === 'arrival') return
  const isNew = !hasBegun(draft, turnId)
  remember(draft, turnId)
  if (!isNew) return
  const ids = lookup(draft.favor.fresh, turnId) ?? []
  draft.favor = { ...draft.favor, fresh: without(draft.favor.fresh, turnId) }
  for (const id of ids) {
    const waiting = lookup(draft.waiting, id)
    if (waiting === undefined) continue
    const next: Waiting = { ...waiting, ofBegunTurn: true }
    draft.waiting = HashMap.set(draft.waiting, id, next)
    if (!isReady(next) || next.urgent) continue
    if (next.call.lane === 'primary') favorPrimary(draft, next)
    else favorBegun(draft, next)
  }
}

const remember = (draft: Draft, turnId: string): void => {
  const { favor, at, policy } = draft
  if (lookup(favor.begun, turnId) === true) return
  const isFull =
    HashMap.size(favor.begun) >= rememberedTurns || at >= favor.begunSinceMs + policy.turnTimeoutMs
  draft.favor = isFull
    ? {
        ...favor,
        begun: HashMap.make([turnId, true as const]),
        begunBefore: favor.begun,
        begunSinceMs: at,
      }
    : { ...favor, begun: HashMap.set(favor.begun, turnId, true as const) }
}

/** The turn is over. */
export const forgetTurn = (draft: Draft, turnId: string): void => {
  if (!hasBegun(draft, turnId)) return
  const { begun, begunBefore } = draft.favor
  draft.favor = {
    ...draft.favor,
    begun: without(begun, turnId),
    begunBefore: without(begunBefore, turnId),
  }
}

const keyOf = ({ favor }: Policy, { principal }: Call): string => (favor === 'begun' ? '' : principal)

const setRank = (draft: Draft, rank: number, favor: RankFavor): void => {
  const { ofBegun, aside, allAside, early } = favor
  // Without calls that gave their seats away, nobody is left to take the seats of those that went earlier.
  const next = allAside.size === 0 ? { ...noRankFavor, ofBegun } : { ofBegun, aside, allAside, early }
  const isEmpty = next.allAside.size === 0 && HashMap.isEmpty(ofBegun)
  const ranks = draft.favor.ranks.with(rank, isEmpty ? noRankFavor : next)
  const isPlain = ranks.every((one) => one === noRankFavor)
  draft.favor = { ...draft.favor, ranks: isPlain ? noRankFavors : ranks }
}

const added = (
  queues: RankFavor['ofBegun'],
  key: string,
  place: Place,
): HashMap.HashMap<string, Queue<Place>> =>
  HashMap.set(queues, key, insert(lookup(queues, key) ?? noRankFavor.allAside, place, seqOf))

/** A primary of a begun turn stands in its rank's queue: it may be preferred there. */
export const favorPrimary = (draft: Draft, waiting: Waiting): void => {
  // A scope that sheds orders primaries by deadline.
  if (waiting.ofBegunTurn !== true || draft.policy.favor === 'arrival' || draft.policy.qos !== null) return
  const rank = standingRank(draft.policy, waiting)
  const favor = draft.favor.ranks[rank]!
  const place = { seq: waiting.seq, id: waiting.call.id }
  setRank(draft, rank, { ...favor, ofBegun: added(favor.ofBegun, keyOf(draft.policy, waiting.call), place) })
}

const removed = (queues: RankFavor['ofBegun'], key: string, seq: number): RankFavor['ofBegun'] => {
  const queue = lookup(queues, key)
  if (queue === undefined) return queues
  const rest = remove(queue, seq, seqOf)
  if (rest === queue) return queues
  return rest.size === 0 ? HashMap.remove(queues, key) : HashMap.set(queues, key, rest)
}

/** A call waits no more: granted, withdrawn or expired. */
export const leaveFavor = (draft: Draft, waiting: Waiting): void => {
  if (waiting.call.turnId !== null) unmark(draft, waiting)
  const { call, seq } = waiting
  if (call.lane !== 'primary' || draft.favor.ranks === noRankFavors) return
  for (const [rank, favor] of draft.favor.ranks.entries()) {
    if (favor === noRankFavor) continue
    const ofBegun = removed(favor.ofBegun, keyOf(draft.policy, call), seq)
    const aside = removed(favor.aside, call.principal, seq)
    if (ofBegun === favor.ofBegun && aside === favor.aside) continue
    const allAside = aside === favor.aside ? favor.allAside : remove(favor.allAside, seq, seqOf)
    setRank(draft, rank, { ...favor, ofBegun, aside, allAside })
  }
}

/** Every rank is in the order of arrival again, and prefers what is of a begun turn from there. */
export const resetSeats = (draft: Draft): void => {
  draft.favor = { ...draft.favor, ranks: noRankFavors }
  for (const waiting of HashMap.values(draft.waiting))
    if (waiting.call.lane === 'primary' && isReady(waiting)) favorPrimary(draft, waiting)
}

/** A call that may go next in its rank, and the seat that it takes. */
export interface Seated {
  readonly waiting: Waiting
  /** The call that came first, by which the waiting of the rank is measured. */
  readonly first: Waiting
  /** The rank's queue. Its first is the seat. */
  readonly queue: Queue<Place>
  /** Whether the call takes that seat. */
  readonly takesSeat: boolean
  /** The call that the seat belongs to, where another one takes it. */
  readonly displaced: Waiting | null
  /** Numbers of seats before it that nobody takes any more. */
  readonly dropped: ReadonlyArray<number>
}

const headIn = (
  context: ScopeContext,
  queue: Queue<Place> | undefined,
  belongs: (waiting: Waiting) => boolean,
): Waiting | null => (queue === undefined ? null : (headOf(context, queue, belongs)?.head ?? null))

/** The call that goes next in a rank some of whose calls are of begun turns. Looks only. */
export const favoredOfRank = (
  context: ScopeContext,
  rank: number,
  belongs: (waiting: Waiting) => boolean,
): Seated | null => {
  const { ofBegun, aside, allAside, early } = context.favor.ranks[rank]!
  const oldest = headIn(context, allAside, belongs)
  const dropped: number[] = []
  let queue = context.primaries[rank]!
  for (let seat = peek(queue); seat !== undefined; queue = pop(queue), seat = peek(queue)) {
    const found = lookup(context.waiting, seat.id)
    const own = found?.seq === seat.seq && isReady(found) && belongs(found) ? found : null
    const principal = own?.call.principal ?? lookup(early, String(seat.seq))
    const first = principal === undefined ? null : headIn(context, lookup(aside, principal), belongs)
    // The call that the seat is for: of those of its principal that are not of begun turns the one that came first.
    const fresh = first ?? own
    if (fresh === null) {
      dropped.push(seat.seq)
      continue
    }
    const keepsSeat = own?.ofBegunTurn === true
    const begun =
      keepsSeat || !isPatient(context, fresh)
        ? null
        : headIn(context, lookup(ofBegun, keyOf(context.policy, fresh.call)), belongs)
    const waiting = keepsSeat ? own : (begun ?? fresh)
    const takesSeat = begun === null || context.policy.favor !== 'begun'
    const displaced = takesSeat && own !== null && waiting.seq !== own.seq ? own : null
    // One that gave its seat away and has waited too long goes before those that came after it.
    return oldest !== null && oldest.seq < waiting.seq && !isPatient(context, oldest)
      ? { waiting: oldest, first: oldest, queue, takesSeat: false, displaced: null, dropped }
      : { waiting, first: fresh, queue, takesSeat, displaced, dropped }
  }
  return oldest === null
    ? null
    : { waiting: oldest, first: oldest, queue, takesSeat: false, displaced: null, dropped }
}

/** A call of `rank` goes: its seat is taken, and the call that the seat belonged to waits for another one. */
export const takeSeat = (draft: Draft, rank: number, seated: Seated): void => {
  const { waiting, queue, takesSeat, displaced, dropped } = seated
  const favor = draft.favor.ranks[rank]!
  draft.primaries = draft.primaries.with(rank, takesSeat ? pop(queue) : queue)
  if (favor === noRankFavor) return
  const { principal } = waiting.call
  let { early, aside, allAside } = favor
  for (const seq of dropped) early = without(early, String(seq))
  const seat = takesSeat ? peek(queue) : undefined
  const wasAside = removed(aside, principal, waiting.seq) !== aside
  if (seat !== undefined && seat.seq !== waiting.seq) {
    early = without(early, String(seat.seq))
    // Its own seat stays, for those of its principal that gave theirs away.
    if (!wasAside) early = HashMap.set(early, String(waiting.seq), principal)
  }
  if (displaced !== null) {
    const place = { seq: displaced.seq, id: displaced.call.id }
    aside = added(aside, principal, place)
    allAside = insert(allAside, place, seqOf)
  }
  setRank(draft, rank, { ...favor, early, aside, allAside })
}

/** Seats of one rank, as they were written. */
interface Seats {
  readonly rank: number
  readonly aside: ReadonlyArray<string>
  readonly early: ReadonlyArray<readonly [string, string]>
}

/** Takes the calls that gave their seats away out of their ranks' queues, and puts the seats that are left for them in. */
export const restoreSeats = (draft: Draft, seats: ReadonlyArray<Seats>): void => {
  resetSeats(draft)
  for (const { rank, aside, early } of seats) {
    const places = aside.flatMap((id) => {
      const waiting = lookup(draft.waiting, id)
      return waiting === undefined ? [] : [{ seq: waiting.seq, id, principal: waiting.call.principal }]
    })
    let queue = draft.primaries[rank]!
    for (const { seq } of places) queue = remove(queue, seq, seqOf)
    for (const [seq] of early) queue = insert(queue, { seq: Number(seq), id: '' }, seqOf)
    draft.primaries = draft.primaries.with(rank, queue)
    setRank(draft, rank, {
      ...draft.favor.ranks[rank]!,
      aside: places.reduce(
        (all, { principal, seq, id }) => added(all, principal, { seq, id }),
        noRankFavor.aside,
      ),
      allAside: fromArray(places.map(({ seq, id }) => ({ seq, id }))),
      early: HashMap.fromIterable(early),
    })
  }
}
