/**
 * Turns a host's observations into frames. Every field is copied by name, so that no other field of an event
 * can reach a frame.
 */
import {
  type Call,
  contractPolicy,
  type Decision,
  type Evidence,
  type LimitReading,
  type Policy,
  type ScopeEvent,
} from '../machines/index.ts'
import type { EntryFrame } from './protocol.ts'

const projectCall = (call: Call): Call => ({
  id: call.id,
  turnId: call.turnId,
  lane: call.lane,
  priorityClass: call.priorityClass,
  principal: call.principal,
  inputTokens: call.inputTokens,
  outputTokens: call.outputTokens,
  deadlineAt: call.deadlineAt,
  dependsOn: call.dependsOn,
  parentId: call.parentId,
})

const factNames = ['currentLimit', 'nextLimit', 'limit', 'used', 'requested', 'actual'] as const

/** The `unit` of the facts is left out: its text is the provider's. */
const projectEvidence = ({ kind, scope, retryAfterMs, retryable, facts }: Evidence): Evidence => ({
  kind,
  scope,
  retryAfterMs,
  retryable,
  facts: Object.fromEntries(
    factNames.filter((name) => typeof facts[name] === 'number').map((name) => [name, facts[name]]),
  ),
})

const projectReading = ({ dimension, limit, remaining, resetAtMs }: LimitReading): LimitReading => ({
  dimension,
  limit,
  remaining,
  resetAtMs,
})

/** Copies numbers, flags and words of closed sets, by the names that this version knows. */
const namesOf = <A extends object>(known: A) =>
  Object.keys(known) as unknown as ReadonlyArray<keyof A & string>
const policyNames = namesOf(contractPolicy)
const limitNames = namesOf(contractPolicy.limits)

const projectPolicy = (policy: Policy): Policy => ({
  ...(Object.fromEntries(policyNames.map((name) => [name, policy[name]])) as Policy),
  limits: Object.fromEntries(limitNames.map((name) => [name, policy.limits[name]])) as Policy['limits'],
})

/** The event with its known fields only; null for one of a type that this version does not know. */
export const projectEvent = (event: ScopeEvent): ScopeEvent | null => {
  const { type, at } = event
  switch (type) {
    case 'call.submitted':
      return {
        type,
        at,
        call: projectCall(event.call),
        ...(event.dispatchAtOnce === undefined ? {} : { dispatchAtOnce: event.dispatchAtOnce }),
      }
    case 'call.withdrawn':
    case 'call.dispatched':
    case 'call.accepted':
    case 'call.promoted':
    case 'call.claimed':
      return { type, at, callId: event.callId }
    case 'call.settled': {
      const { callId, outcome, usage, evidence, owner, late } = event
      return {
        type,
        at,
        callId,
        outcome,
        ...(usage === undefined
          ? {}
          : { usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens } }),
        ...(evidence === undefined ? {} : { evidence: projectEvidence(evidence) }),
        ...(owner === undefined ? {} : { owner }),
        ...(late === undefined ? {} : { late }),
      }
    }
    case 'provider.evidence': {
      const { evidence, limits } = event
      return {
        type,
        at,
        ...(evidence === undefined ? {} : { evidence: projectEvidence(evidence) }),
        ...(limits === undefined ? {} : { limits: limits.map(projectReading) }),
      }
    }
    case 'turn.began':
      return { type, at, turnId: event.turnId, betweenRounds: event.betweenRounds }
    case 'turn.ended':
      return { type, at, turnId: event.turnId }
    case 'policy.changed':
      return { type, at, policy: projectPolicy(event.policy) }
    case 'foreground.changed':
      return { type, at, active: event.active }
    case 'host.closing':
      return { type, at, unused: event.unused }
    case 'wait.released':
    case 'clock.woke':
    case 'host.recovered':
      return { type, at }
    default:
      return null
  }
}

const projectDecision = ({
  callId,
  verdict,
  reason,
  at,
  state,
  wakeAt,
  dispatched,
  retryAfterMs,
}: Decision): Decision => ({
  callId,
  verdict,
  reason,
  at,
  state,
  ...(wakeAt === undefined ? {} : { wakeAt }),
  ...(dispatched === undefined ? {} : { dispatched }),
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
})

/** An observation of a host, or an entry of a journal, as a frame; null when its event is unknown. */
export const entryFrame = (entry: EntryFrame): EntryFrame | null => {
  const event = projectEvent(entry.event)
  if (event === null) return null
  return {
    scope: entry.scope,
    position: entry.position,
    event,
    decisions: entry.decisions.map(projectDecision),
  }
}
