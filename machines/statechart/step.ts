/**
 * The moves of the statechart: take an event in, enter a state, close a quantum, and tell owners that their
 * calls wait.
 */
import { HashMap } from 'effect'
import { preempt, sweep, sweepPending } from '../events/deadlines.ts'
import * as facts from '../events/operations.ts'
import * as settlement from '../events/settlement.ts'
import * as submission from '../events/submission.ts'
import type { ScopeState } from '../model/decision.ts'
import type { ScopeEvent } from '../model/event.ts'
import { isHeld, primaryWanted } from '../scheduling/admission.ts'
import { pass } from '../scheduling/dispatch.ts'
import { checkScope } from '../scheduling/invariants.ts'
import { waitReason } from '../scheduling/wait-reason.ts'
import { lookup, openPhase, type ScopeContext } from '../state/context.ts'
import { type Draft, draftOf } from '../state/draft.ts'

const applyFact = (draft: Draft, event: ScopeEvent): void => {
  switch (event.type) {
    case 'call.submitted':
      return submission.submit(draft, event)
    case 'call.withdrawn':
      return submission.withdraw(draft, event.callId)
    case 'call.dispatched':
      return settlement.dispatched(draft, event.callId)
    case 'call.accepted':
      return settlement.accepted(draft, event.callId)
    case 'call.settled':
      return settlement.settle(draft, event)
    case 'call.promoted':
    case 'call.claimed': {
      const waiting = lookup(draft.waiting, event.callId)
      if (waiting === undefined) return
      return event.type === 'call.promoted'
        ? submission.promote(draft, waiting)
        : submission.claim(draft, waiting)
    }
    case 'provider.evidence':
      return settlement.absorbEvidence(draft, event)
    case 'wait.released':
      return facts.releaseWait(draft)
    case 'turn.began':
      return facts.beginTurn(draft, event.turnId, event.betweenRounds)
    case 'turn.ended':
      return facts.endTurn(draft, event.turnId)
    case 'policy.changed':
      return facts.changePolicy(draft, event.policy)
    case 'foreground.changed':
      draft.foregroundActive = event.active
      return
    case 'host.closing':
      return facts.close(draft, event.unused)
    case 'host.recovered':
      return facts.recover(draft)
    case 'history.lost':
      return facts.loseHistory(draft, event.calls)
    case 'clock.woke':
      return
  }
}

/** Begins the work on an event; the held clock has run since the last one if primaries held an auxiliary then. */
export const begin = (before: ScopeContext, atMs: number): Draft => {
  const draft = draftOf(before, atMs)
  if (draft.at > before.at && isHeld(before)) draft.heldMs += draft.at - before.at
  return draft
}

/**
 * Takes an event in: applies it, ends calls whose deadlines have passed, and grants the permits that the
 * present state allows.
 */
export const takeIn = (draft: Draft, event: ScopeEvent): void => {
  // The event comes before the deadlines: an answer that arrives exactly at its deadline still counts.
  applyFact(draft, event)
  sweep(draft)
  pass(draft)
}

const enterState: Readonly<Partial<Record<ScopeState, (draft: Draft) => void>>> = {
  primaryPending: (draft) => {
    draft.phase = { ...openPhase, patienceUntilMs: draft.at + draft.policy.patienceMs }
    const expected = draft.counts.primaryWaiting > 0 || draft.heldTurns > 0
    if (draft.policy.inFlight === 'cancel' && expected) preempt(draft, true)
    if (expected) sweepPending(draft)
  },
  auxiliaryDraining: (draft) => {
    draft.drain = { windowStartMs: draft.at, windowTokens: 0, servedTokens: 0, heldServed: false }
  },
  settled: (draft) => {
    draft.phase = { ...openPhase, lingerUntilMs: draft.at + draft.policy.lingerMs }
    draft.primaryOwed = false
    if (draft.episode !== null) draft.summary = { ...draft.episode, endedAt: draft.at }
    draft.episode = null
  },
}

/** Enters `state` and grants the permits that it allows. */
export const enter = (draft: Draft, state: ScopeState): void => {
  draft.state = state
  enterState[state]?.(draft)
  pass(draft)
}

/**
 * Leaves the drain for a primary. The drain's tokens count as the quantum, and the primary is owed the next
 * turn.
 */
export const closeQuantum = (draft: Draft): void => {
  if (draft.drain.servedTokens === 0) return
  draft.primaryOwed = true
  draft.quantumEndedHeldMs = draft.heldMs
  draft.counters.fairnessQuanta += 1
  if (draft.episode !== null)
    draft.episode = { ...draft.episode, fairnessQuanta: draft.episode.fairnessQuanta + 1 }
}

/** Ends the work on an event: the owners of waiting calls are told, and the invariants are checked. */
export const finish = (draft: Draft): void => {
  announce(draft)
  checkScope(draft)
}

/**
 * Tells the owner of each call that this event submitted or returned, and that got no permit, why the call
 * waits.
 */
const announce = (draft: Draft): void => {
  if (draft.unannounced.length === 0) return
  const { unannounced } = draft
  draft.unannounced = []
  for (const callId of unannounced) {
    const waiting = lookup(draft.waiting, callId)
    if (waiting === undefined) continue
    const why = waitReason(draft, waiting)
    const returned = waiting.attempts > 0
    const reason = returned ? waiting.reason : why.reason
    if (!returned && reason !== waiting.reason)
      draft.waiting = HashMap.set(draft.waiting, callId, { ...waiting, reason })
    draft.decisions.push({
      callId,
      verdict: 'defer',
      reason,
      at: draft.at,
      state: draft.state,
      wakeAt: why.wakeAt,
    })
    if (draft.episode !== null && waiting.call.lane === 'auxiliary' && primaryWanted(draft)) {
      draft.episode = { ...draft.episode, auxiliariesDeferred: draft.episode.auxiliariesDeferred + 1 }
    }
  }
}
