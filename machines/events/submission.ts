/** A call comes: into its queue, past a closed gate because somebody depends on it, or out again. */
import { HashMap } from 'effect'
import { add } from '../collections/heap.ts'
import { empty, insert, push } from '../collections/queue.ts'
import { came } from '../limits/belief/demand.ts'
import { neverFits } from '../limits/budget.ts'
import { neededFor } from '../limits/charges.ts'
import type { Call } from '../model/call.ts'
import type { ScopeEvent } from '../model/event.ts'
import { lend } from '../scheduling/dispatch.ts'
import { enqueueAuxiliary, isReady, leaveBacklog, seqOf } from '../scheduling/fairness.ts'
import { setDependents } from '../scheduling/grant.ts'
import {
  end,
  endingOf,
  enqueue,
  enqueuePrimary,
  isUrgent,
  land,
  leaveWaiting,
  reject,
  tellUnknown,
} from '../scheduling/lifecycle.ts'
import { rankOf, reorderPrimaries, standingRank } from '../scheduling/primary-order.ts'
import { turnAway } from '../scheduling/shedding.ts'
import { noteArrival, sweepBy } from '../scheduling/timeouts.ts'
import type { Waiting } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { giveBack } from './settlement.ts'

type Submitted = Extract<ScopeEvent, { type: 'call.submitted' }>

export const submit = (draft: Draft, { call, dispatchAtOnce = false }: Submitted): void => {
  const waiting = lookup(draft.waiting, call.id)
  if (waiting !== undefined) return askAgain(draft, waiting, call.deadlineAt, dispatchAtOnce)
  if (HashMap.has(draft.inFlight, call.id)) return
  const ending = endingOf(draft, call.id)
  if (ending !== undefined && ending !== 'withdrawn') {
    reject(draft, call.id, ending === 'unknown' ? 'outcome-unknown' : 'already-settled')
    return tellUnknown(draft, call.id)
  }
  draft.counters.submitted += 1
  if (neverFits(draft.budget, neededFor(draft.policy.charges, call)) !== null) {
    reject(draft, call.id, 'exceeds-limit')
    return
  }
  if (turnAway(draft, call)) return
  const seq = draft.nextSeq
  draft.nextSeq += 1
  noteArrival(draft, call.lane, draft.at, push(draft.arrivals[call.lane], { seq, id: call.id }))
  if (call.deadlineAt !== null) {
    sweepBy(draft, call.deadlineAt)
    draft.deadlines = add(draft.deadlines, { at: call.deadlineAt, callId: call.id })
  }
  if (call.lane === 'primary') draft.demand = came(draft.demand, call.inputTokens, draft.at)
  beginEpisode(draft, call)
  enqueue(draft, {
    call,
    seq,
    submittedAt: draft.at,
    attempts: 0,
    triedAtMs: 0,
    sizeRefusals: 0,
    // What it most often waits for; corrected before anybody sees it.
    reason: 'capacity-full',
    urgent: isUrgent(draft, call),
    // Whoever named it before it came only expects it: nobody waits for it yet.
    inheritedRank: null,
    waitsFor: call.lane === 'primary' ? dependOn(draft, call) : [],
    unclaimedUntilMs: null,
    dispatchAtOnce,
    heldFromMs: draft.heldMs,
  })
  draft.unannounced = [...draft.unannounced, call.id]
  if (call.parentId !== null && HashMap.has(draft.inFlight, call.parentId))
    nest(draft, call, call.parentId, seq)
}

/** The owner of a waiting call asks for it again, after a restart or because its client came back: its deadline is the newer one. */
const askAgain = (
  draft: Draft,
  waiting: Waiting,
  deadlineAt: number | null,
  dispatchAtOnce: boolean,
): void => {
  const { call } = waiting
  claim(draft, waiting)
  const claimed = lookup(draft.waiting, call.id) as Waiting
  const asked = { ...claimed, call: { ...call, deadlineAt }, dispatchAtOnce }
  draft.waiting = HashMap.set(draft.waiting, call.id, asked)
  if (deadlineAt === call.deadlineAt) return
  if (draft.qos !== null) reorderPrimaries(draft)
  if (deadlineAt === null) return
  sweepBy(draft, deadlineAt)
  draft.deadlines = add(draft.deadlines, { at: deadlineAt, callId: call.id })
}

const beginEpisode = (draft: Draft, call: Call): void => {
  if (call.lane !== 'primary' || draft.episode !== null) return
  draft.episode = {
    startedAt: draft.at,
    primariesAdmitted: 0,
    primaryWaitMaxMs: 0,
    auxiliariesDeferred: draft.counts.auxiliaryWaiting,
    auxiliariesReleased: 0,
    auxiliariesCancelled: 0,
    refusals: 0,
    fairnessQuanta: 0,
  }
}

/** The live ones of its dependencies, which are promoted; those that have not come yet are expected. */
const dependOn = (draft: Draft, call: Call): ReadonlyArray<string> => {
  const live: string[] = []
  const rank = rankOf(draft.policy, call.priorityClass)
  // A call may be named twice, and is waited for once.
  for (const id of new Set(call.dependsOn)) {
    // Neither itself nor the call that it runs in can end before it.
    if (id === call.id || id === call.parentId) continue
    const waiting = lookup(draft.waiting, id)
    if (waiting !== undefined) inherit(draft, waiting, rank)
    if (waiting !== undefined || HashMap.has(draft.inFlight, id)) {
      live.push(id)
      setDependents(draft, id, [...(lookup(draft.dependents, id) ?? []), call.id])
    } else if (endingOf(draft, id) === undefined) {
      draft.expected = HashMap.set(draft.expected, id, [...(lookup(draft.expected, id) ?? []), call.id])
    }
  }
  return live
}

const nest = (draft: Draft, call: Call, parentId: string, seq: number): void => {
  const children = lookup(draft.nested, parentId) ?? { queue: empty(), lent: null }
  const queue = push(children.queue, { seq, id: call.id })
  draft.nested = HashMap.set(draft.nested, parentId, { ...children, queue })
  lend(draft, parentId)
}

/** A primary of `rank` waits for it: an auxiliary goes past the gate, a primary of lower rank with that rank, and so does what it waits for itself. */
const inherit = (draft: Draft, waiting: Waiting, rank: number): void => {
  if (waiting.call.lane === 'auxiliary') return promote(draft, waiting)
  if (standingRank(draft.policy, waiting) <= rank) return
  const next = { ...waiting, inheritedRank: rank }
  draft.waiting = HashMap.set(draft.waiting, waiting.call.id, next)
  if (isReady(next)) enqueuePrimary(draft, next)
  for (const id of next.waitsFor) {
    const other = lookup(draft.waiting, id)
    if (other !== undefined) inherit(draft, other, rank)
  }
}

export const promote = (draft: Draft, waiting: Waiting): void => {
  if (waiting.call.lane !== 'auxiliary' || waiting.urgent) return
  draft.waiting = HashMap.set(draft.waiting, waiting.call.id, { ...waiting, urgent: true })
  if (!isReady(waiting)) return
  leaveBacklog(draft, waiting.call.principal)
  draft.urgent = insert(draft.urgent, { seq: waiting.seq, id: waiting.call.id }, seqOf)
}

export const claim = (draft: Draft, waiting: Waiting): void => {
  if (waiting.unclaimedUntilMs === null) return
  const claimed = { ...waiting, unclaimedUntilMs: null }
  draft.waiting = HashMap.set(draft.waiting, waiting.call.id, claimed)
  if (!isReady(claimed)) return
  if (claimed.call.lane === 'primary') {
    draft.counts.primaryReady += 1
    enqueuePrimary(draft, claimed)
  } else if (claimed.urgent) {
    draft.urgent = insert(draft.urgent, { seq: claimed.seq, id: claimed.call.id }, seqOf)
  } else enqueueAuxiliary(draft, claimed)
}

export const withdraw = (draft: Draft, callId: string): void => {
  const waiting = lookup(draft.waiting, callId)
  if (waiting !== undefined) {
    leaveWaiting(draft, waiting)
    return end(draft, waiting.call, 'withdrawn')
  }
  // Its host never used the permit, so nothing reached the provider.
  const flight = lookup(draft.inFlight, callId)
  if (flight?.stage !== 'admitted') return
  giveBack(draft, flight)
  land(draft, flight)
  end(draft, flight.call, 'withdrawn')
}
