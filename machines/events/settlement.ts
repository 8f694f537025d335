/** Events after a dispatch. Each changes the call, the budget and the belief about the provider. */
import { HashMap } from 'effect'
import * as belief from '../limits/belief/learn.ts'
import { type Cost, charge, learn } from '../limits/budget.ts'
import { capacityOf, grown, shrunk } from '../limits/capacity.ts'
import { nothing, takenInTheEnd } from '../limits/charges.ts'
import * as pacing from '../limits/pacing.ts'
import type { ScopeEvent } from '../model/event.ts'
import type { Evidence, EvidenceKind } from '../model/evidence.ts'
import { end, land, leaveWindow, reject, returnToPlace } from '../scheduling/lifecycle.ts'
import type { InFlight } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'

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

/** Applies an acceptance to the lane, the class and the belief. Returns the call as accepted. */
const begin = (draft: Draft, flight: InFlight): InFlight => {
  if (flight.call.lane === 'primary') draft.counts.primaryUnaccepted -= 1
  if (flight.paced) leaveWindow(draft, flight)
  if (draft.wait?.probeId === flight.call.id) draft.wait = null
  const pace = draft.pacing[flight.call.priorityClass]
  if (pace !== undefined) {
    draft.pacing = { ...draft.pacing, [flight.call.priorityClass]: pacing.accepted(pace, flight.grantedAt) }
  }
  draft.belief = belief.accepted(draft.belief, {
    tokens: flight.call.inputTokens,
    dispatchedAtMs: flight.grantedAt,
    atMs: draft.at,
  })
  return { ...flight, stage: 'accepted' }
}

type Settled = Extract<ScopeEvent, { type: 'call.settled' }>

export const settle = (draft: Draft, event: Settled): void => {
  const flight = lookup(draft.inFlight, event.callId)
  if (flight === undefined || event.late === true) {
    draft.counters.lateSettlements += 1
    return
  }
  const now = event.outcome === 'completed' && flight.stage !== 'accepted' ? begin(draft, flight) : flight
  // Before its place goes to another, which takes from the same budget.
  account(draft, now, event)
  land(draft, now)
  if (event.evidence !== undefined) weigh(draft, event.evidence, now)
  if (event.outcome === 'throttled') return settleThrottled(draft, now, event)
  if (event.outcome === 'cancelled' && now.preempted && event.owner !== 'left')
    return returnToPlace(draft, now, 'preempted', event.owner)
  if (event.outcome === 'completed') {
    draft.counters.completed += 1
    draft.learned = grown(draft, draft.counts.places + 1)
  }
  if (event.outcome === 'unknown') draft.counters.unknownOutcomes += 1
  end(draft, now.call, event.outcome)
}

/** Any call would have got such a refusal. The pending timeout bounds how long a call meets them; `maxAttempts` does not count them. */
const saysNothingOfSize: ReadonlySet<EvidenceKind> = new Set([
  'overloaded',
  'concurrency',
  'requests-per-minute',
  'requests-per-day',
  'quota-exhausted',
])

/** A refusal before acceptance is evidence, not a result: the call keeps its place while it may succeed later. */
const settleThrottled = (draft: Draft, flight: InFlight, { evidence, owner }: Settled): void => {
  draft.counters.refusedByProvider += 1
  const kind = evidence?.kind ?? 'unknown-rate-limit'
  draft.refusalsByKind = { ...draft.refusalsByKind, [kind]: (draft.refusalsByKind[kind] ?? 0) + 1 }
  if (draft.episode !== null) draft.episode = { ...draft.episode, refusals: draft.episode.refusals + 1 }
  const retryable = evidence?.retryable ?? true
  const sizeRefusals = flight.sizeRefusals + (saysNothingOfSize.has(kind) ? 0 : 1)
  const mayRetry = retryable && flight.stage !== 'accepted' && sizeRefusals < draft.policy.maxAttempts
  if (owner === 'left') return end(draft, flight.call, 'throttled')
  if (mayRetry) return returnToPlace(draft, { ...flight, sizeRefusals }, 'refused-by-provider', owner)
  reject(draft, flight.call.id, retryable ? 'attempts-exhausted' : 'not-retryable')
  end(draft, flight.call, 'throttled')
}

/** Corrects the charge of the admission: the provider charges some calls more or less in the end. */
const account = (draft: Draft, flight: InFlight, { outcome, usage }: Settled): void => {
  const { stage, taken, call } = flight
  const cost = takenInTheEnd(draft.policy.charges, call, { outcome, stage, usage, taken })
  const wasRefused =
    stage !== 'accepted' && (outcome === 'failed' || outcome === 'cancelled' || outcome === 'throttled')
  correct(draft, flight, cost, wasRefused ? 0 : (usage?.inputTokens ?? call.inputTokens))
}

/** The provider never saw it: the budget is as if it had not been granted. */
export const giveBack = (draft: Draft, flight: InFlight): void => correct(draft, flight, nothing, 0)

const correct = (draft: Draft, flight: InFlight, cost: Cost, acceptedTokens: number): void => {
  const { taken, call } = flight
  const requests = cost.requests - taken.requests
  const inputTokens = cost.inputTokens - taken.inputTokens
  const outputTokens = cost.outputTokens - taken.outputTokens
  if (requests !== 0 || inputTokens !== 0 || outputTokens !== 0)
    draft.budget = charge(draft.budget, { requests, inputTokens, outputTokens }, draft.at)
  // The belief is of what is accepted, whatever the provider charges for it.
  const beyondEstimate = acceptedTokens - call.inputTokens
  if (beyondEstimate !== 0)
    draft.belief = belief.sent(draft.belief, beyondEstimate, flight.grantedAt, draft.at)
}

/** Applies a refusal to the call's class and to the belief. */
const weigh = (draft: Draft, evidence: Evidence, flight: InFlight): void => {
  // A fault of this request alone says nothing about other calls. An exhausted quota of the credential does.
  if (!evidence.retryable) {
    if (evidence.kind === 'quota-exhausted' && evidence.scope !== 'model') {
      holdFor(draft, evidence, evidence.retryAfterMs ?? draft.policy.quotaHoldMs)
    }
    return
  }
  const { call, grantedAt } = flight
  const pace = draft.pacing[call.priorityClass] ?? pacing.steady
  // A refusal by a token limit binds calls by their size: it goes to the belief, and the planner reads it there.
  if (belief.layerOf(evidence.kind) !== null) {
    // A wait too long to be believed holds the whole scope until one call finds out.
    const isHeld = evidence.holdMs !== undefined
    if (isHeld) holdScope(draft, evidence)
    draft.belief = belief.refused(
      draft.belief,
      { tokens: call.inputTokens, dispatchedAtMs: grantedAt, atMs: draft.at },
      isHeld ? { ...evidence, retryAfterMs: null } : evidence,
    )
    return
  }
  if (grantedAt < pace.epochMs) draft.counters.lateEvidence += 1
  holdScope(draft, evidence)
  const capacity = capacityOf(draft)
  const stillInUse = draft.counts.places
  draft.learned = shrunk(draft, { kind: evidence.kind, stillInUse, grantedAt, at: draft.at })
  // Fewer places are the answer to too many calls; a pause would only waste those that are left.
  if (evidence.kind === 'concurrency' && capacityOf(draft) < capacity) return
  const refusal = { atMs: draft.at, dispatchedAtMs: grantedAt, salt: flight.seq + pace.refusals }
  draft.pacing = { ...draft.pacing, [call.priorityClass]: pacing.refused(pace, draft.policy, refusal) }
}

/** A stated wait holds the scope; a later, shorter one never shortens it. */
const holdScope = (draft: Draft, evidence: Evidence): void => {
  const ofHost = evidence.holdMs !== undefined
  const stated = evidence.retryAfterMs !== null && evidence.retryable
  if (ofHost || stated) holdFor(draft, evidence, evidence.retryAfterMs ?? 0)
}

const holdFor = (
  draft: Draft,
  { kind, scope, holdMs, retryAfterMs }: Evidence,
  otherwiseMs: number,
): void => {
  const untilMs = draft.at + (holdMs ?? otherwiseMs)
  if (untilMs <= Math.max(draft.at, draft.wait?.untilMs ?? 0)) return
  const statedUntilMs = draft.at + (retryAfterMs ?? 0)
  draft.wait = {
    untilMs,
    kind,
    probeId: null,
    ...(statedUntilMs > untilMs ? { statedUntilMs } : {}),
    ...(scope === 'model' ? {} : { reach: scope }),
  }
}

export const absorbEvidence = (
  draft: Draft,
  event: Extract<ScopeEvent, { type: 'provider.evidence' }>,
): void => {
  if (event.evidence !== undefined) holdScope(draft, event.evidence)
  if (event.limits === undefined) return
  draft.budget = learn(draft.budget, event.limits, draft.at)
  for (const reading of event.limits)
    if (reading.dimension === 'input-tokens-per-minute' || reading.dimension === 'tokens-per-minute')
      draft.belief = belief.read(draft.belief, reading, draft.at)
}
