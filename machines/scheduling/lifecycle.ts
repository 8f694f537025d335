/** Where a call stands: in its queue, in flight, or ended; and the moves between these. */
import { HashMap } from 'effect'
import { type Ending, endingOf as endingIn, remember } from '../collections/ended-log.ts'
import { add } from '../collections/heap.ts'
import { insert, push } from '../collections/queue.ts'
import * as pacing from '../limits/pacing.ts'
import { departed } from '../limits/shed-limits.ts'
import type { Call } from '../model/call.ts'
import type { DeferReason, ExpireReason, RejectReason } from '../model/decision.ts'
import type { OwnerStance } from '../model/event.ts'
import type { InFlight, TakenTurn, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext, without } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { lend } from './dispatch.ts'
import {
  enqueueAuxiliary,
  isNewest,
  isReady,
  leaveBacklog,
  leaveFlight,
  returnTurn,
  seqOf,
} from './fairness.ts'
import { favorPrimary, leaveFavor, marked } from './favor.ts'
import { countFlight, setDependents } from './grant.ts'
import { checkEntered, checkLeft } from './invariants.ts'
import { inheritedFrom, placed, standingRank } from './primary-order.ts'
import { noteArrival, sweepBy } from './timeouts.ts'

/** Into the lane's queue, at its own place; with its turn, where it took one and gets it back. */
export const enqueue = (draft: Draft, comes: Waiting, turn: TakenTurn | null = null): void => {
  const waiting = marked(draft, comes)
  const { call, seq } = waiting
  const before = draft.waiting
  draft.waiting = HashMap.set(before, call.id, waiting)
  checkEntered(before, draft.waiting, call.id)
  const place = { seq, id: call.id }
  if (call.lane === 'primary') {
    draft.counts.primaryWaiting += 1
    if (!isReady(waiting)) return
    draft.counts.primaryReady += 1
    enqueuePrimary(draft, waiting)
  } else {
    draft.counts.auxiliaryWaiting += 1
    if (!isReady(waiting)) return
    if (waiting.urgent)
      draft.urgent = isNewest(draft, waiting) ? push(draft.urgent, place) : insert(draft.urgent, place, seqOf)
    else if (turn !== null) returnTurn(draft, waiting, turn)
    else enqueueAuxiliary(draft, waiting)
  }
}

export const enqueuePrimary = (draft: Draft, waiting: Waiting): void => {
  const rank = standingRank(draft.policy, waiting)
  draft.primaries = draft.primaries.with(rank, placed(draft, draft.primaries[rank]!, waiting))
  favorPrimary(draft, waiting)
}

/** Ends a call: remembers how, and lets go of whatever waited for it. */
export const end = (draft: Draft, call: Call, ending: Ending): void => {
  const callId = call.id
  if (ending === 'unknown') keepUnknown(draft, callId)
  else note(draft, callId, ending)
  if (draft.qos !== null) draft.qos = departed(draft.qos, call)
  satisfy(draft, callId)
  if (call.lane === 'primary') forget(draft, call)
  draft.nested = without(draft.nested, callId)
}

const note = (draft: Draft, callId: string, ending: Ending): void => {
  const { settledRetention: count, settledRetentionMs: ms } = draft.policy
  draft.ended = remember(draft.ended, callId, ending, draft.at, { count, ms })
}

/** Apart from the others, whose number would push it out: it is never sent again until its owner has heard. */
export const keepUnknown = (draft: Draft, callId: string): void => {
  const { at, policy } = draft
  const kept = HashMap.filter(draft.unknown, (untilMs) => untilMs > at)
  draft.unknown = HashMap.set(kept, callId, at + policy.unknownRetentionMs)
}

/** How a call ended that is no longer live, while it is remembered. */
export const endingOf = (
  context: Pick<ScopeContext, 'ended' | 'unknown' | 'at'>,
  callId: string,
): Ending | undefined => {
  const untilMs = lookup(context.unknown, callId)
  return untilMs !== undefined && untilMs > context.at ? 'unknown' : endingIn(context, callId)
}

/** The owner of a call hears that its outcome is unknown: from now on it is remembered as others are. */
export const tellUnknown = (draft: Draft, callId: string): void => {
  if (lookup(draft.unknown, callId) === undefined) return
  draft.unknown = HashMap.remove(draft.unknown, callId)
  note(draft, callId, 'unknown')
}

const satisfy = (draft: Draft, callId: string): void => {
  const dependents = lookup(draft.dependents, callId)
  if (dependents === undefined) return
  draft.dependents = HashMap.remove(draft.dependents, callId)
  for (const id of dependents) {
    const waiting = lookup(draft.waiting, id)
    // A snapshot of an older version may list a primary twice: it becomes ready once, and may be granted by then.
    if (waiting === undefined || !waiting.waitsFor.includes(callId)) continue
    const waitsFor = waiting.waitsFor.filter((other) => other !== callId)
    const next = { ...waiting, waitsFor }
    draft.waiting = HashMap.set(draft.waiting, id, next)
    if (!isReady(next)) continue
    draft.counts.primaryReady += 1
    enqueuePrimary(draft, next)
    if (next.call.parentId !== null) lend(draft, next.call.parentId)
  }
}

/** Takes a waiting call out of its lane. Its queue drops the empty place when it comes to it. */
export const leaveWaiting = (draft: Draft, waiting: Waiting): void => {
  const { call, urgent } = waiting
  draft.waiting = HashMap.remove(draft.waiting, call.id)
  leaveFavor(draft, waiting)
  if (call.lane === 'primary') {
    draft.counts.primaryWaiting -= 1
    if (isReady(waiting)) draft.counts.primaryReady -= 1
    waitNoMore(draft, waiting)
  } else {
    draft.counts.auxiliaryWaiting -= 1
    if (!urgent && isReady(waiting)) leaveBacklog(draft, call.principal)
  }
}

const waitNoMore = (draft: Draft, { call, waitsFor }: Waiting): void => {
  for (const id of waitsFor) {
    setDependents(
      draft,
      id,
      (lookup(draft.dependents, id) ?? []).filter((other) => other !== call.id),
    )
  }
}

/** A primary that has ended expects no call any more; calls that other primaries expect stay expected. */
const forget = (draft: Draft, call: Call): void => {
  for (const id of call.dependsOn) {
    const expectedBy = lookup(draft.expected, id)
    if (expectedBy === undefined || !expectedBy.includes(call.id)) continue
    const others = expectedBy.filter((other) => other !== call.id)
    draft.expected =
      others.length === 0 ? HashMap.remove(draft.expected, id) : HashMap.set(draft.expected, id, others)
  }
}

const decide = (
  draft: Draft,
  callId: string,
  verdict: 'reject' | 'expire' | 'cancel',
  reason: RejectReason | ExpireReason | 'preempted',
): void => {
  draft.decisions.push({ callId, verdict, reason, at: draft.at, state: draft.state })
}

export const expire = (draft: Draft, callId: string, reason: ExpireReason): void => {
  decide(draft, callId, 'expire', reason)
  draft.counters.expired += 1
}

export const reject = (draft: Draft, callId: string, reason: RejectReason): void => {
  decide(draft, callId, 'reject', reason)
  draft.counters.rejected += 1
}

/** Named by a waiting primary, or part of a turn that holds the gate: what it waits for inherits its right of way. */
export const isUrgent = (draft: Draft, call: Call): boolean =>
  call.lane === 'auxiliary' &&
  (lookup(draft.expected, call.id) !== undefined ||
    lookup(draft.dependents, call.id) !== undefined ||
    (call.turnId !== null && lookup(draft.turns, call.turnId)?.betweenRounds === 'hold'))

/** Back to its own place, with its age. There an owner that is away is waited for as after a restart. */
export const returnToPlace = (
  draft: Draft,
  flight: InFlight,
  reason: DeferReason,
  owner?: Exclude<OwnerStance, 'left'>,
): void => {
  const { call, seq, submittedAt, attempts, sizeRefusals, heldFromMs } = flight
  const unclaimedUntilMs = owner === 'away' ? draft.at + draft.policy.unclaimedExpiryMs : null
  const waiting: Waiting = {
    call,
    seq,
    submittedAt,
    attempts,
    triedAtMs: flight.grantedAt,
    sizeRefusals,
    reason,
    urgent: flight.grant === 'dependency' || isUrgent(draft, call),
    inheritedRank: call.lane === 'primary' ? inheritedFrom(draft, call) : null,
    waitsFor: [],
    unclaimedUntilMs,
    dispatchAtOnce: owner === 'sends',
    heldFromMs,
  }
  enqueue(draft, waiting, flight.turn)
  if (unclaimedUntilMs !== null) {
    sweepBy(draft, unclaimedUntilMs)
    draft.unclaimed = add(draft.unclaimed, { at: unclaimedUntilMs, callId: call.id })
  }
  noteArrival(draft, call.lane, submittedAt, insert(draft.arrivals[call.lane], { seq, id: call.id }, seqOf))
  draft.unannounced = [...draft.unannounced, call.id]
}

/** Takes a call out of flight; its place is free, its parent's place returns to the parent. */
export const land = (draft: Draft, flight: InFlight): void => {
  // A probe that ended without an acceptance told nothing: the next call is one.
  if (draft.wait?.probeId === flight.call.id) draft.wait = { ...draft.wait, untilMs: draft.at, probeId: null }
  const before = draft.inFlight
  draft.inFlight = HashMap.remove(before, flight.call.id)
  checkLeft(before, draft.inFlight, flight.call.id)
  countFlight(draft, flight, -1)
  if (flight.call.lane === 'auxiliary') leaveFlight(draft, flight.call.principal)
  if (flight.paced && flight.stage !== 'accepted') leaveWindow(draft, flight)
  const { parentId } = flight.call
  const children = parentId === null ? undefined : lookup(draft.nested, parentId)
  if (parentId !== null && children?.lent === flight.call.id) {
    draft.nested = HashMap.set(draft.nested, parentId, { ...children, lent: null })
    lend(draft, parentId)
  }
}

export const leaveWindow = (draft: Draft, { call }: InFlight): void => {
  const pace = draft.pacing[call.priorityClass]
  if (pace === undefined) return
  draft.pacing = { ...draft.pacing, [call.priorityClass]: pacing.counted(pace, -1) }
}
