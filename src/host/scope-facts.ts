/**
 * The facts behind a status: the shown part of a scope's context, with instants where the status has ages.
 */

import { minuteMs } from '../../machines/collections/usage-window.ts'
import type { Lane, ScopeContext } from '../../machines/index.ts'
import { capacityOf } from '../../machines/limits/capacity.ts'
import { minuteOf } from '../../machines/limits/ceiling.ts'
import { boundsOf } from '../../machines/limits/ramp.ts'
import { nextPrimary, primaryWanted } from '../../machines/scheduling/admission.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { longestInFlight, oldestWaiting } from '../../machines/scheduling/timeouts.ts'
import { type LaneFacts, type ScopeFacts, type ScopeStatus, statusAt } from './status.ts'

/** Age in minutes at which a bound stops counting for the ceiling; `ceilingAt` uses no older one. */
const boundMinutes = 2

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
  const { counts, ramp, budget, at } = context
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
    // One more second, because the status counts in whole seconds.
    lastMinute: ramp.slots.filter(({ second }) => (second + 1) * 1_000 >= at - minuteMs),
    inputTokenLimit: budget.inputTokensPerMinute?.limit ?? null,
    highestAcceptedTokens: ramp.highestAccepted,
    lastRefusal: ramp.refusal,
    plan: ramp.plan,
    growth: ramp.growth,
    ceilingBounds: boundsOf(ramp).filter(({ minute }) => minuteOf(at) - minute <= boundMinutes),
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
