/** A scope's row in the overview, from its context. Pure: the page makes the row of any moment with it. */
import { HashMap } from 'effect'
import type { Lane, ScopeContext } from '../machines/index.ts'
import { trailingTokens } from '../machines/limits/ramp.ts'
import { primaryWanted } from '../machines/scheduling/admission.ts'
import type { Alarm, Ceiling, LaneRow, ScopeRow } from './protocol.ts'

/** A primary that waits longer is worth an alarm. */
const longPrimaryWaitMs = 30_000
/** An auxiliary that has waited for this share of `maxDeferralMs` is close to its quantum. */
const starvingShare = 0.8

const oldestWaits = (context: ScopeContext): Readonly<Record<Lane, number | null>> => {
  const oldest = { primary: Number.POSITIVE_INFINITY, auxiliary: Number.POSITIVE_INFINITY }
  for (const { call, submittedAt } of HashMap.values(context.waiting)) {
    if (submittedAt < oldest[call.lane]) oldest[call.lane] = submittedAt
  }
  const age = (since: number) => (Number.isFinite(since) ? context.at - since : null)
  return { primary: age(oldest.primary), auxiliary: age(oldest.auxiliary) }
}

export const gateOf = (context: ScopeContext): ScopeRow['auxiliaryGate'] => {
  if (context.state === 'auxiliaryDraining') return 'metered'
  return primaryWanted(context) ? 'closed' : 'open'
}

export const ceilingOf = ({ ramp, budget }: ScopeContext): Ceiling => ({
  acceptedTokens: ramp.highestAccepted,
  refusedTokens: ramp.refusal === null ? null : ramp.refusal.trailingTokens + ramp.refusal.tokens,
  statedTokens: ramp.refusal?.statedLimit ?? null,
  limitTokens: budget.inputTokensPerMinute?.limit ?? null,
})

const alarmsOf = (context: ScopeContext, primary: LaneRow, auxiliary: LaneRow): ReadonlyArray<Alarm> => {
  const { at, wait, policy, counters, pacing } = context
  const alarms: Alarm[] = []
  const raise = (kind: Alarm['kind'], amount: number) => alarms.push({ kind, amount })
  if (wait !== null && wait.untilMs > at) raise('provider-wait', wait.untilMs - at)
  if ((primary.longestWaitMs ?? 0) >= longPrimaryWaitMs) raise('primary-waits', primary.longestWaitMs ?? 0)
  if ((auxiliary.longestWaitMs ?? 0) >= policy.maxDeferralMs * starvingShare)
    raise('auxiliary-starves', auxiliary.longestWaitMs ?? 0)
  const pausedUntilMs = Math.max(0, ...Object.values(pacing).map((pace) => pace.pausedUntilMs))
  if (pausedUntilMs > at) raise('backing-off', pausedUntilMs - at)
  if (counters.unknownOutcomes > 0) raise('outcomes-unknown', counters.unknownOutcomes)
  if (counters.expired > 0) raise('calls-expired', counters.expired)
  if (counters.rejected > 0) raise('calls-rejected', counters.rejected)
  return alarms
}

/** O(n) in the waiting calls. */
export const scopeRow = (context: ScopeContext, position: number): ScopeRow => {
  const { counts, at, wait } = context
  const waits = oldestWaits(context)
  const primary = {
    waiting: counts.primaryWaiting,
    inFlight: counts.primaryInFlight,
    longestWaitMs: waits.primary,
  }
  const auxiliary = {
    waiting: counts.auxiliaryWaiting,
    inFlight: counts.auxiliaryInFlight,
    longestWaitMs: waits.auxiliary,
  }
  return {
    scope: context.scope,
    state: context.state,
    at,
    position,
    auxiliaryGate: gateOf(context),
    primary,
    auxiliary,
    capacity: context.policy.capacity,
    wait: wait === null || wait.untilMs <= at ? null : { untilMs: wait.untilMs, kind: wait.kind },
    recentInputTokens: trailingTokens(context.ramp, at),
    ceiling: ceilingOf(context),
    counters: context.counters,
    alarms: alarmsOf(context, primary, auxiliary),
  }
}
