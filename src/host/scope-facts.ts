/**
 * The facts behind a status: the shown part of a scope's context, with instants where the status has ages.
 */

import type { Lane, Policy, ScopeContext } from '../../machines/index.ts'
import { minuteMs } from '../../machines/limits/belief/charges.ts'
import { believedLimits, bindingCeiling } from '../../machines/limits/belief/projection.ts'
import { longestStatedWait } from '../../machines/limits/belief/stated-waits.ts'
import { capacityOf } from '../../machines/limits/capacity.ts'
import { policyDifferences } from '../../machines/model/policy-input.ts'
import { nextPrimary, primaryWanted } from '../../machines/scheduling/admission.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { longestInFlight, oldestWaiting } from '../../machines/scheduling/timeouts.ts'
import { type LaneFacts, type ScopeFacts, type ScopeStatus, shownTurns, statusAt } from './status.ts'

const laneFacts = (context: ScopeContext, lane: Lane, waiting: number, inFlight: number): LaneFacts => ({
  waiting,
  inFlight,
  waitingSinceMs: oldestWaiting(context, lane)?.submittedAt ?? null,
  activeSinceMs: longestInFlight(context, lane)?.grantedAt ?? null,
})

const gateOf = (context: ScopeContext): ScopeFacts['auxiliaryGate'] => {
  if (context.state === 'auxiliaryDraining') return 'metered'
  return primaryWanted(context) ? 'closed' : 'open'
}

const oldestTurns = ({ turns }: ScopeContext): ScopeFacts['turns'] =>
  [...turns]
    .map(([turnId, { beganAt }]) => ({ turnId, beganAtMs: beganAt }))
    .sort((one, other) => one.beganAtMs - other.beganAtMs)
    .slice(0, shownTurns)

/** A policy is replaced as a whole, so its differences are found once. */
const differences = new WeakMap<Policy, Partial<Policy>>()

const differencesOf = (policy: Policy): Partial<Policy> => {
  const known = differences.get(policy)
  if (known !== undefined) return known
  const found = policyDifferences(policy)
  differences.set(policy, found)
  return found
}

/** The longest wait that the provider stated for calls of some size, where none holds the whole scope. */
const statedWait = ({ belief, at }: ScopeContext): ScopeContext['wait'] => {
  const wait = longestStatedWait(belief, at)
  return wait === null ? null : { untilMs: wait.untilMs, kind: 'stated-wait', probeId: null }
}

/** The facts of a scope. Costs the same however many calls wait. */
export const scopeFacts = (context: ScopeContext): ScopeFacts => {
  const { counts, belief, budget, at } = context
  const limits = believedLimits(belief, at)
  const head = nextPrimary(context)
  return {
    scope: context.scope,
    state: context.state,
    at,
    auxiliaryGate: gateOf(context),
    primary: laneFacts(context, 'primary', counts.primaryWaiting, counts.primaryInFlight),
    auxiliary: laneFacts(context, 'auxiliary', counts.auxiliaryWaiting, counts.auxiliaryInFlight),
    turns: oldestTurns(context),
    capacity: capacityOf(context),
    placesTaken: counts.places,
    policy: differencesOf(context.policy),
    wait: context.wait ?? statedWait(context),
    lastMinute: belief.charges.filter(({ atMs }) => atMs > at - minuteMs),
    inputTokenLimit: budget.inputTokensPerMinute?.limit ?? null,
    highestAcceptedTokens: belief.highestAccepted,
    lastRefusal: belief.refusal,
    limits,
    ceiling: bindingCeiling(belief, limits),
    fit: head === null ? null : fitOf(context, head.waiting),
    pacing: context.pacing,
    maxDeferralMs: context.policy.maxDeferralMs,
    refusalsByKind: context.refusalsByKind,
    counters: context.counters,
  }
}

/** The status of a scope at `nowMs`, epoch milliseconds. Costs the same however many calls wait. */
export const scopeStatus = (context: ScopeContext, nowMs: number): ScopeStatus =>
  statusAt(scopeFacts(context), nowMs)
