/** What each event does to the context, before anything is granted because of it. */
import { HashMap } from 'effect'
import { costOfCall, countFlight, lend } from './admission.ts'
import { charge, declare, learn, neverFits } from './budget.ts'
import type { Call } from './call.ts'
import { priorityRanks } from './call.ts'
import { capacityOf, grown, initialCapacity, shrunk } from './capacity.ts'
import { adjust, count, type Draft, type Ending, type InFlight, lookup, type Waiting } from './context.ts'
import type { DeferReason, ExpireReason, RejectReason } from './decision.ts'
import type { ScopeEvent } from './event.ts'
import type { Evidence } from './evidence.ts'
import { enqueueAuxiliary, isReady, leaveBacklog, leaveFlight, refundTurn, seqOf } from './fairness.ts'
import { add } from './heap.ts'
import * as pacing from './pacing.ts'
import { empty, insert, push } from './queue.ts'
import * as ramp from './ramp.ts'
import { noteArrival, sweepBy } from './timeouts.ts'

/** Into the lane's queue, at its own place. */
const enqueue = (draft: Draft, waiting: Waiting): void => {
  const { call, seq } = waiting
  draft.waiting = HashMap.set(draft.waiting, call.id, waiting)
  const place = { seq, id: call.id }
  const fresh = seq === draft.nextSeq - 1
  if (call.lane === 'primary') {
    adjust(draft, { primaryWaiting: 1, primaryReady: isReady(waiting) ? 1 : 0 })
    if (isReady(waiting)) enqueuePrimary(draft, waiting)
  } else {
    adjust(draft, { auxiliaryWaiting: 1 })
    if (waiting.urgent) draft.urgent = fresh ? push(draft.urgent, place) : insert(draft.urgent, place, seqOf)
    else enqueueAuxiliary(draft, waiting)
  }
}

const enqueuePrimary = (draft: Draft, { call, seq }: Waiting): void => {
  const rank = priorityRanks[call.priorityClass]
  const place = { seq, id: call.id }
  draft.primaries = draft.primaries.map((queue, index) =>
    index !== rank ? queue : seq === draft.nextSeq - 1 ? push(queue, place) : insert(queue, place, seqOf),
  )
}

/** Ends a call: remembers how, and lets go of whatever waited for it. */
export const end = (draft: Draft, callId: string, ending: Ending): void => {
  let [newer, older] = draft.ended
  newer = HashMap.set(newer, callId, ending)
  if (HashMap.size(newer) > draft.policy.settledRetention) {
    older = newer
    newer = HashMap.empty()
  }
  draft.ended = [newer, older]
  satisfy(draft, callId)
  draft.nested = HashMap.remove(draft.nested, callId)
}

/** How an ended call ended, while it is remembered. */
export const endingOf = (context: Pick<Draft, 'ended'>, callId: string): Ending | undefined =>
  lookup(context.ended[0], callId) ?? lookup(context.ended[1], callId)

const satisfy = (draft: Draft, callId: string): void => {
  const dependents = lookup(draft.dependents, callId)
  if (dependents === undefined) return
  draft.dependents = HashMap.remove(draft.dependents, callId)
  for (const id of dependents) {
    const waiting = lookup(draft.waiting, id)
    if (waiting === undefined) continue
    const waitsFor = waiting.waitsFor.filter((other) => other !== callId)
    const next = { ...waiting, waitsFor }
    draft.waiting = HashMap.set(draft.waiting, id, next)
    if (!isReady(next)) continue
    adjust(draft, { primaryReady: 1 })
    enqueuePrimary(draft, next)
    if (next.call.parentId !== null) lend(draft, next.call.parentId)
  }
}

/** Takes a waiting call out of its lane. Its queue drops the empty place when it comes to it. */
export const leaveWaiting = (draft: Draft, waiting: Waiting): void => {
  const { call, urgent } = waiting
  draft.waiting = HashMap.remove(draft.waiting, call.id)
  if (call.lane === 'primary') {
    adjust(draft, { primaryWaiting: -1, primaryReady: isReady(waiting) ? -1 : 0 })
    forget(draft, call)
  } else {
    adjust(draft, { auxiliaryWaiting: -1 })
    if (!urgent && isReady(waiting)) leaveBacklog(draft, call.principal)
  }
}

/** A primary that is gone lets nothing through any more. */
const forget = (draft: Draft, call: Call): void => {
  for (const id of call.dependsOn) {
    const expectedBy = lookup(draft.expected, id)
    if (expectedBy === undefined) continue
    draft.expected =
      expectedBy <= 1 ? HashMap.remove(draft.expected, id) : HashMap.set(draft.expected, id, expectedBy - 1)
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
  count(draft, 'expired')
}

const reject = (draft: Draft, callId: string, reason: RejectReason): void => {
  decide(draft, callId, 'reject', reason)
  count(draft, 'rejected')
}

export const submit = (draft: Draft, call: Call): void => {
  const waiting = lookup(draft.waiting, call.id)
  if (waiting !== undefined) return askAgain(draft, waiting, call.deadlineAt)
  if (HashMap.has(draft.inFlight, call.id)) return
  const ending = endingOf(draft, call.id)
  if (ending !== undefined && ending !== 'withdrawn') {
    return reject(draft, call.id, ending === 'unknown' ? 'outcome-unknown' : 'already-settled')
  }
  count(draft, 'submitted')
  if (neverFits(draft.budget, costOfCall({ call })) !== null) {
    reject(draft, call.id, 'exceeds-limit')
    return
  }
  const seq = draft.nextSeq
  draft.nextSeq += 1
  noteArrival(draft, call.lane, draft.at, push(draft.arrivals[call.lane], { seq, id: call.id }))
  if (call.deadlineAt !== null) {
    sweepBy(draft, call.deadlineAt)
    draft.deadlines = add(draft.deadlines, { at: call.deadlineAt, callId: call.id })
  }
  beginEpisode(draft, call)
  enqueue(draft, {
    call,
    seq,
    submittedAt: draft.at,
    attempts: 0,
    reason: 'behind-others',
    urgent: isUrgent(draft, call),
    waitsFor: call.lane === 'primary' ? dependOn(draft, call) : [],
    unclaimedUntilMs: null,
  })
  draft.unannounced = [...draft.unannounced, call.id]
  if (call.parentId !== null && HashMap.has(draft.inFlight, call.parentId))
    nest(draft, call, call.parentId, seq)
}

/** The owner of a waiting call asks for it again, after a restart or because its client came back: its deadline is the newer one. */
const askAgain = (draft: Draft, waiting: Waiting, deadlineAt: number | null): void => {
  const { call } = waiting
  claim(draft, waiting)
  const claimed = lookup(draft.waiting, call.id)
  if (claimed === undefined || call.deadlineAt === deadlineAt) return
  draft.waiting = HashMap.set(draft.waiting, call.id, { ...claimed, call: { ...call, deadlineAt } })
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

/** Named by a waiting primary, or part of a turn that holds the gate: what it waits for inherits its right of way. */
const isUrgent = (draft: Draft, call: Call): boolean =>
  call.lane === 'auxiliary' &&
  (HashMap.has(draft.expected, call.id) ||
    HashMap.has(draft.dependents, call.id) ||
    (call.turnId !== null && lookup(draft.turns, call.turnId)?.betweenRounds === 'hold'))

/** The live ones of its dependencies, which are promoted; those that have not come yet are expected. */
const dependOn = (draft: Draft, call: Call): ReadonlyArray<string> => {
  const live: string[] = []
  for (const id of call.dependsOn) {
    // Neither itself nor the call that it runs in can end before it.
    if (id === call.id || id === call.parentId) continue
    const waiting = lookup(draft.waiting, id)
    if (waiting !== undefined) promote(draft, waiting)
    if (waiting !== undefined || HashMap.has(draft.inFlight, id)) {
      live.push(id)
      draft.dependents = HashMap.set(draft.dependents, id, [...(lookup(draft.dependents, id) ?? []), call.id])
    } else if (endingOf(draft, id) === undefined) {
      draft.expected = HashMap.set(draft.expected, id, (lookup(draft.expected, id) ?? 0) + 1)
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
    adjust(draft, { primaryReady: 1 })
    enqueuePrimary(draft, claimed)
  } else if (claimed.urgent) {
    draft.urgent = insert(draft.urgent, { seq: claimed.seq, id: claimed.call.id }, seqOf)
  } else enqueueAuxiliary(draft, claimed)
}

/** Back to its own place, with its age. */
export const returnToPlace = (draft: Draft, flight: InFlight, reason: DeferReason): void => {
  const { call, seq, submittedAt, attempts } = flight
  if (call.lane === 'auxiliary' && flight.grant !== 'dependency' && flight.grant !== 'nested') {
    refundTurn(draft, call.principal, call.inputTokens)
  }
  enqueue(draft, {
    call,
    seq,
    submittedAt,
    attempts,
    reason,
    urgent: flight.grant === 'dependency' || isUrgent(draft, call),
    waitsFor: [],
    unclaimedUntilMs: null,
  })
  noteArrival(draft, call.lane, submittedAt, insert(draft.arrivals[call.lane], { seq, id: call.id }, seqOf))
  draft.unannounced = [...draft.unannounced, call.id]
}

/** Takes a call out of flight; its place is free, its parent's place returns to the parent. */
export const land = (draft: Draft, flight: InFlight): void => {
  draft.inFlight = HashMap.remove(draft.inFlight, flight.call.id)
  countFlight(draft, flight, -1)
  if (flight.call.lane === 'auxiliary') leaveFlight(draft, flight.call.principal)
  else forget(draft, flight.call)
  if (flight.paced && flight.stage !== 'accepted') leaveWindow(draft, flight)
  const { parentId } = flight.call
  const children = parentId === null ? undefined : lookup(draft.nested, parentId)
  if (parentId !== null && children?.lent === flight.call.id) {
    draft.nested = HashMap.set(draft.nested, parentId, { ...children, lent: null })
    lend(draft, parentId)
  }
}

const leaveWindow = (draft: Draft, { call }: InFlight): void => {
  const pace = draft.pacing[call.priorityClass]
  if (pace === undefined) return
  draft.pacing = { ...draft.pacing, [call.priorityClass]: pacing.counted(pace, -1) }
}

export const dispatched = (draft: Draft, callId: string): void => {
  const flight = lookup(draft.inFlight, callId)
  if (flight?.stage === 'admitted') {
    draft.inFlight = HashMap.set(draft.inFlight, callId, { ...flight, stage: 'dispatched' })
  }
}

export const accepted = (draft: Draft, callId: string): void => {
  const flight = lookup(draft.inFlight, callId)
  if (flight === undefined || flight.stage === 'accepted') return
  draft.inFlight = HashMap.set(draft.inFlight, callId, begin(draft, flight))
}

/** What the acceptance of a call says of its lane, its class and the ceiling; answers the call as accepted. */
const begin = (draft: Draft, flight: InFlight): InFlight => {
  if (flight.call.lane === 'primary') adjust(draft, { primaryUnaccepted: -1 })
  if (flight.paced) leaveWindow(draft, flight)
  const pace = draft.pacing[flight.call.priorityClass]
  if (pace !== undefined) {
    draft.pacing = { ...draft.pacing, [flight.call.priorityClass]: pacing.accepted(pace, flight.grantedAt) }
  }
  draft.ramp = ramp.acceptedUnder(draft.ramp, flight.call.inputTokens, flight.grantedAt, draft.at)
  return { ...flight, stage: 'accepted' }
}

type Settled = Extract<ScopeEvent, { type: 'call.settled' }>

export const settle = (draft: Draft, event: Settled): void => {
  const flight = lookup(draft.inFlight, event.callId)
  if (flight === undefined) {
    count(draft, 'lateSettlements')
    return
  }
  const now = event.outcome === 'completed' && flight.stage !== 'accepted' ? begin(draft, flight) : flight
  land(draft, now)
  account(draft, now, event)
  if (event.evidence !== undefined) weigh(draft, event.evidence, now)
  if (event.outcome === 'throttled') return settleThrottled(draft, now, event.evidence)
  if (event.outcome === 'cancelled' && now.preempted) return returnToPlace(draft, now, 'preempted')
  if (event.outcome === 'completed') {
    count(draft, 'completed')
    draft.learned = grown(draft, draft.counts.places + 1)
  }
  if (event.outcome === 'unknown') count(draft, 'unknownOutcomes')
  end(draft, event.callId, event.outcome)
}

/** A refusal before acceptance is evidence, not a result: the call keeps its place while it may succeed later. */
const settleThrottled = (draft: Draft, flight: InFlight, evidence: Evidence | undefined): void => {
  count(draft, 'refusedByProvider')
  const kind = evidence?.kind ?? 'unknown-rate-limit'
  draft.refusalsByKind = { ...draft.refusalsByKind, [kind]: (draft.refusalsByKind[kind] ?? 0) + 1 }
  if (draft.episode !== null) draft.episode = { ...draft.episode, refusals: draft.episode.refusals + 1 }
  const retryable = evidence?.retryable ?? true
  const mayRetry = retryable && flight.stage !== 'accepted' && flight.attempts < draft.policy.maxAttempts
  if (mayRetry) return returnToPlace(draft, flight, 'refused-by-provider')
  reject(draft, flight.call.id, retryable ? 'attempts-exhausted' : 'not-retryable')
  end(draft, flight.call.id, 'throttled')
}

/** Corrects the estimate by what was used; what the provider never accepted it did not charge. */
const account = (draft: Draft, flight: InFlight, { outcome, usage }: Settled): void => {
  const estimated = costOfCall(flight)
  const refund =
    flight.stage !== 'accepted' &&
    (outcome === 'failed' || outcome === 'cancelled' || outcome === 'throttled')
  const actual = refund
    ? { requests: 0, inputTokens: 0, outputTokens: 0 }
    : {
        requests: 1,
        inputTokens: usage?.inputTokens ?? estimated.inputTokens,
        outputTokens: usage?.outputTokens ?? estimated.outputTokens,
      }
  correct(draft, flight, actual)
}

const correct = (draft: Draft, flight: InFlight, actual: ReturnType<typeof costOfCall>): void => {
  const estimated = costOfCall(flight)
  const inputTokens = actual.inputTokens - estimated.inputTokens
  const outputTokens = actual.outputTokens - estimated.outputTokens
  const requests = actual.requests - estimated.requests
  if (inputTokens === 0 && outputTokens === 0 && requests === 0) return
  draft.budget = charge(draft.budget, { requests, inputTokens, outputTokens }, draft.at)
  draft.ramp = ramp.use(draft.ramp, inputTokens, flight.grantedAt, draft.at)
}

/** What a refusal says of this class and of the ceiling. */
const weigh = (draft: Draft, evidence: Evidence, flight: InFlight): void => {
  // What waiting cannot mend says nothing about when others may go, unless it is the whole credential's quota.
  if (!evidence.retryable) {
    if (evidence.kind === 'quota-exhausted' && evidence.scope !== 'model') {
      holdUntil(draft, draft.at + (evidence.retryAfterMs ?? draft.policy.quotaHoldMs), evidence.kind)
    }
    return
  }
  const { call, grantedAt } = flight
  const pace = draft.pacing[call.priorityClass] ?? pacing.steady
  if (grantedAt < pace.epochMs) count(draft, 'lateEvidence')
  const before = draft.ramp
  draft.ramp = ramp.refusedUnder(before, {
    tokens: call.inputTokens,
    evidence,
    atMs: draft.at,
    dispatchedAtMs: grantedAt,
  })
  holdScope(draft, evidence)
  const capacity = capacityOf(draft)
  const stillInUse = draft.counts.places
  draft.learned = shrunk(draft, { kind: evidence.kind, stillInUse, grantedAt, at: draft.at })
  // Fewer places are the answer to too many calls; a pause would only waste those that are left.
  if (evidence.kind === 'concurrency' && capacityOf(draft) < capacity) return
  // A primary refused for its tokens is the ramp's business: backing off its class would only add to it.
  if (call.lane === 'primary' && draft.ramp !== before) {
    draft.ramp = ramp.replan(draft.ramp, draft.policy)
    return
  }
  const next = pacing.refused(pace, draft.policy, {
    atMs: draft.at,
    dispatchedAtMs: grantedAt,
    statedMs: null,
    salt: flight.seq + pace.refusals,
  })
  draft.pacing = { ...draft.pacing, [call.priorityClass]: next }
}

/** A stated wait holds the scope; a later, shorter one never shortens it. */
const holdScope = (draft: Draft, evidence: Evidence): void => {
  if (evidence.retryAfterMs === null || !evidence.retryable) return
  holdUntil(draft, draft.at + evidence.retryAfterMs, evidence.kind)
}

const holdUntil = (draft: Draft, untilMs: number, kind: string): void => {
  if (untilMs > Math.max(draft.at, draft.wait?.untilMs ?? 0)) draft.wait = { untilMs, kind }
}

export const absorbEvidence = (
  draft: Draft,
  event: Extract<ScopeEvent, { type: 'provider.evidence' }>,
): void => {
  if (event.evidence !== undefined) holdScope(draft, event.evidence)
  if (event.limits !== undefined) draft.budget = learn(draft.budget, event.limits, draft.at)
}

export const withdraw = (draft: Draft, callId: string): void => {
  const waiting = lookup(draft.waiting, callId)
  if (waiting !== undefined) {
    leaveWaiting(draft, waiting)
    draft.unannounced = draft.unannounced.filter((id) => id !== callId)
    return end(draft, callId, 'withdrawn')
  }
  // Its host never used the permit, so nothing reached the provider.
  const flight = lookup(draft.inFlight, callId)
  if (flight?.stage !== 'admitted') return
  land(draft, flight)
  correct(draft, flight, { requests: 0, inputTokens: 0, outputTokens: 0 })
  end(draft, callId, 'withdrawn')
}

export const beginTurn = (draft: Draft, turnId: string, betweenRounds: 'hold' | 'yield'): void => {
  const before = lookup(draft.turns, turnId)
  draft.turns = HashMap.set(draft.turns, turnId, { betweenRounds, beganAt: before?.beganAt ?? draft.at })
  sweepBy(draft, draft.at + draft.policy.turnTimeoutMs)
  draft.heldTurns += (betweenRounds === 'hold' ? 1 : 0) - (before?.betweenRounds === 'hold' ? 1 : 0)
}

export const endTurn = (draft: Draft, turnId: string): void => {
  const turn = lookup(draft.turns, turnId)
  if (turn === undefined) return
  draft.turns = HashMap.remove(draft.turns, turnId)
  if (turn.betweenRounds === 'hold') draft.heldTurns -= 1
}

export const changePolicy = (draft: Draft, policy: Draft['policy']): void => {
  draft.budget = declare(draft.budget, policy.limits, draft.at)
  draft.policy = policy
  draft.learned = initialCapacity(policy)
  sweepBy(draft, draft.at)
}

/** The host that held the permits is gone: what was not sent returns, what was sent is unknown, what waits needs its owner. */
export const recover = (draft: Draft): void => {
  draft.nested = HashMap.empty()
  draft.unannounced = []
  const flights = [...HashMap.values(draft.inFlight)].sort((one, other) => one.seq - other.seq)
  for (const flight of flights) {
    land(draft, flight)
    if (flight.stage === 'admitted' || draft.policy.unknownAfterRestart === 'dispatchAgain') {
      if (flight.stage === 'admitted')
        correct(draft, flight, { requests: 0, inputTokens: 0, outputTokens: 0 })
      returnToPlace(draft, flight, 'recovered')
    } else {
      count(draft, 'unknownOutcomes')
      reject(draft, flight.call.id, 'outcome-unknown')
      end(draft, flight.call.id, 'unknown')
    }
  }
  const untilMs = draft.at + draft.policy.unclaimedExpiryMs
  const orphans = [...HashMap.values(draft.waiting)].sort((one, other) => one.seq - other.seq)
  for (const waiting of orphans) {
    if (waiting.unclaimedUntilMs !== null) continue
    if (waiting.call.lane === 'primary') adjust(draft, { primaryReady: isReady(waiting) ? -1 : 0 })
    else if (!waiting.urgent) leaveBacklog(draft, waiting.call.principal)
    draft.waiting = HashMap.set(draft.waiting, waiting.call.id, { ...waiting, unclaimedUntilMs: untilMs })
    sweepBy(draft, untilMs)
    draft.unclaimed = add(draft.unclaimed, { at: untilMs, callId: waiting.call.id })
  }
}
