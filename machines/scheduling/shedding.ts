/** The door of a scope whose policy sheds: it turns a call away or counts it in, and counts it out when it has ended. */
import { HashMap } from 'effect'
import { capacityOf } from '../limits/capacity.ts'
import * as qos from '../limits/shed-limits.ts'
import type { Call } from '../model/call.ts'
import type { Draft } from '../state/draft.ts'

/** It runs in the place of the call that made it, so it takes nothing from anybody. */
const isWithinAnother = (draft: Draft, { parentId }: Call): boolean =>
  parentId !== null && HashMap.has(draft.inFlight, parentId)

/** Turns the call away, or counts it in: in one step, so that two can never pass on the same count. True when it is turned away. */
export const turnAway = (draft: Draft, call: Call): boolean => {
  const { at, policy, state } = draft
  if (draft.qos === null || policy.qos === null) return false
  if (isWithinAnother(draft, call)) {
    draft.qos = qos.exempted(draft.qos, call)
    return false
  }
  const limits = qos.limitsOf(policy.qos, capacityOf(draft))
  const shed = qos.shedding(draft.qos, limits, call, at)
  if (shed === null) {
    draft.qos = qos.entered(draft.qos, limits, call, at)
    return false
  }
  const { reason } = shed
  const retryAfterMs = shed.retryAfterMs ?? policy.pacingBaseMs
  draft.decisions.push({ callId: call.id, verdict: 'reject', reason, at, state, retryAfterMs })
  draft.counters.rejected += 1
  return true
}

/** The policy has changed: limits that are new count who is live already. */
export const adopt = (draft: Draft): void => {
  draft.qos = draft.policy.qos === null ? null : countedIn(draft)
}

const countedIn = (draft: Draft): qos.QosState => {
  let state = qos.emptyQos
  for (const { call } of [...HashMap.values(draft.waiting), ...HashMap.values(draft.inFlight)])
    state = isWithinAnother(draft, call) ? qos.exempted(state, call) : qos.adopted(state, call)
  return state
}
