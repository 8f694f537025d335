/** What a status rests on: of a scope's context the part that is shown, with instants where the status has ages. */

import type { Lane, ScopeContext } from '../../machines/index.ts'
import { minuteMs } from '../../machines/limits/belief/charges.ts'
import { believedLimits, bindingCeiling } from '../../machines/limits/belief/projection.ts'
import { capacityOf } from '../../machines/limits/capacity.ts'
import { nextPrimary, primaryWanted } from '../../machines/scheduling/admission.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { longestInFlight, oldestWaiting } from '../../machines/scheduling/timeouts.ts'
import { type LaneFacts, type ScopeFacts, type ScopeStatus, statusAt } from './status.ts'

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
    capacity: capacityOf(context),
    placesTaken: counts.places,
    wait: context.wait,
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
