/** What an operator, a turn or a restart does to the context. */
import { HashMap } from 'effect'
import { addAll } from '../collections/heap.ts'
import * as belief from '../limits/belief/learn.ts'
import { declare } from '../limits/budget.ts'
import { initialCapacity } from '../limits/capacity.ts'
import { isReady, leaveBacklog, reviewQuotas } from '../scheduling/fairness.ts'
import { forgetTurn, resetSeats } from '../scheduling/favor.ts'
import { end, keepUnknown, land, leaveWaiting, reject, returnToPlace } from '../scheduling/lifecycle.ts'
import { reorderPrimaries } from '../scheduling/primary-order.ts'
import { adopt } from '../scheduling/shedding.ts'
import { sweepBy } from '../scheduling/timeouts.ts'
import type { Waiting } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { giveBack } from './settlement.ts'

export const beginTurn = (draft: Draft, turnId: string, betweenRounds: 'hold' | 'yield'): void => {
  const before = lookup(draft.turns, turnId)
  draft.turns = HashMap.set(draft.turns, turnId, { betweenRounds, beganAt: before?.beganAt ?? draft.at })
  sweepBy(draft, draft.at + draft.policy.turnTimeoutMs)
  draft.heldTurns += (betweenRounds === 'hold' ? 1 : 0) - (before?.betweenRounds === 'hold' ? 1 : 0)
}

export const endTurn = (draft: Draft, turnId: string): void => {
  forgetTurn(draft, turnId)
  const turn = lookup(draft.turns, turnId)
  if (turn === undefined) return
  draft.turns = HashMap.remove(draft.turns, turnId)
  if (turn.betweenRounds === 'hold') draft.heldTurns -= 1
}

export const changePolicy = (draft: Draft, policy: Draft['policy']): void => {
  draft.budget = declare(draft.budget, policy.limits, draft.at)
  const { policy: before } = draft
  const shedsOtherwise = (policy.qos === null) !== (before.qos === null)
  draft.policy = policy
  reviewQuotas(draft, before)
  if (shedsOtherwise) adopt(draft)
  if (shedsOtherwise || policy.favor !== before.favor) {
    reorderPrimaries(draft)
    resetSeats(draft)
  }
  draft.learned = initialCapacity(policy)
  sweepBy(draft, draft.at)
}

/** An operator ends the waits. Whether an exhausted quota is back only the provider knows: one call asks first. */
export const releaseWait = (draft: Draft): void => {
  const { wait, at } = draft
  draft.wait = wait?.kind === 'quota-exhausted' ? { ...wait, untilMs: at, probeId: null } : null
  draft.pacing = {}
  draft.belief = belief.released(draft.belief)
}

/** No owner is left that would send as soon as its call is granted: a grant is no dispatch any more. */
export const close = (draft: Draft, unused: ReadonlyArray<string>): void => {
  for (const callId of unused) {
    const flight = lookup(draft.inFlight, callId)
    if (flight?.stage !== 'dispatched') continue
    draft.inFlight = HashMap.set(draft.inFlight, callId, { ...flight, stage: 'admitted' })
  }
  draft.waiting = HashMap.map(draft.waiting, (waiting) =>
    waiting.dispatchAtOnce ? { ...waiting, dispatchAtOnce: false } : waiting,
  )
}

/** The host that held the permits is gone. A call that was not sent goes back to its place, a call that was sent has an unknown outcome, and a waiting call needs its owner. */
export const recover = (draft: Draft): void => {
  draft.nested = HashMap.empty()
  draft.unannounced = []
  const flights = [...HashMap.values(draft.inFlight)].sort((one, other) => one.seq - other.seq)
  for (const flight of flights) {
    if (flight.stage === 'admitted') giveBack(draft, flight)
    land(draft, flight)
    if (flight.stage === 'admitted' || draft.policy.unknownAfterRestart === 'dispatchAgain') {
      returnToPlace(draft, flight, 'recovered')
    } else {
      draft.counters.unknownOutcomes += 1
      reject(draft, flight.call.id, 'outcome-unknown')
      end(draft, flight.call, 'unknown')
    }
  }
  // Seats are taken anew as owners come back.
  resetSeats(draft)
  disown(draft)
}

/** A part of the history is lost. Calls that it may have sent are never sent again: their owners hear that the outcome is unknown. */
export const loseHistory = (draft: Draft, calls: ReadonlyArray<string>): void => {
  for (const callId of calls) {
    const waiting = lookup(draft.waiting, callId)
    const flight = lookup(draft.inFlight, callId)
    if (waiting !== undefined) leaveWaiting(draft, waiting)
    if (flight !== undefined) land(draft, flight)
    draft.counters.unknownOutcomes += 1
    reject(draft, callId, 'outcome-unknown')
    const call = waiting?.call ?? flight?.call
    if (call === undefined) keepUnknown(draft, callId)
    else end(draft, call, 'unknown')
  }
}

/** Nobody waits for what waits, until its owner comes back. */
const disown = (draft: Draft): void => {
  const untilMs = draft.at + draft.policy.unclaimedExpiryMs
  const orphans: Waiting[] = []
  for (const waiting of HashMap.values(draft.waiting)) {
    if (waiting.unclaimedUntilMs !== null) continue
    if (waiting.call.lane === 'primary') draft.counts.primaryReady -= isReady(waiting) ? 1 : 0
    else if (!waiting.urgent) leaveBacklog(draft, waiting.call.principal, waiting.seq)
    orphans.push(waiting)
  }
  if (orphans.length > 0) sweepBy(draft, untilMs)
  const dues = orphans.map(({ call }) => ({ at: untilMs, callId: call.id }))
  draft.unclaimed = addAll(draft.unclaimed, dues)
  // One map for all of them: a new one for each costs as much as all the rest of a recovery.
  draft.waiting = HashMap.mutate(draft.waiting, (map) => {
    for (const one of orphans) HashMap.set(map, one.call.id, { ...one, unclaimedUntilMs: untilMs })
  })
}
