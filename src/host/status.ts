import type { Lane, ScopeContext } from '../../machines/index.ts'
import { capacityOf } from '../../machines/limits/capacity.ts'
import { type CeilingInterval, ceilingAt, type Growth } from '../../machines/limits/ceiling.ts'
import { boundsOf, trailingTokens } from '../../machines/limits/ramp.ts'
import { nextPrimary, primaryWanted } from '../../machines/scheduling/admission.ts'
import { type Fit, fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { longestInFlight, oldestWaiting } from '../../machines/scheduling/timeouts.ts'

export interface LaneStatus {
  readonly waiting: number
  readonly inFlight: number
  /** Age of the call that has waited longest, milliseconds; null when none waits. */
  readonly longestWaitMs: number | null
  /** Time since the grant of the call that has run longest, milliseconds; null when none runs. */
  readonly longestActiveMs: number | null
}

/** What a scope is doing. Content-free: counts, times, names of states and reasons. */
export interface ScopeStatus {
  readonly scope: string
  readonly state: ScopeContext['state']
  /** Epoch milliseconds of its newest event. */
  readonly at: number
  readonly auxiliaryGate: 'open' | 'closed' | 'metered'
  readonly primary: LaneStatus
  readonly auxiliary: LaneStatus
  /** Calls that may be in flight now. */
  readonly capacity: number
  /** The provider asked to wait until then, epoch milliseconds, and for what; null when it did not. */
  readonly wait: ScopeContext['wait']
  /** Input tokens dispatched in the last minute. */
  readonly recentInputTokens: number
  /** Most input tokens that were accepted within one minute. */
  readonly highestAcceptedTokens: number
  readonly lastRefusal: ScopeContext['ramp']['refusal']
  /** What is done until a primary that was refused is tried again, and when that is; null when nothing is planned. */
  readonly plan: ScopeContext['ramp']['plan']
  /** How the input-token ceiling grows, by the evidence so far. */
  readonly growth: Growth
  /** The ceiling of now, input tokens per minute, by the last minutes' evidence. */
  readonly ceiling: CeilingInterval
  /** When the primary at the head is expected to fit, or why no time can be named; null when nothing says that it does not fit. */
  readonly fit: Fit | null
  /** Classes that back off. */
  readonly pacing: ScopeContext['pacing']
  readonly refusalsByKind: ScopeContext['refusalsByKind']
  readonly counters: ScopeContext['counters']
}

const laneStatus = (context: ScopeContext, lane: Lane, inFlight: number, waiting: number): LaneStatus => {
  const oldest = oldestWaiting(context, lane)
  const longest = longestInFlight(context, lane)
  return {
    waiting,
    inFlight,
    longestWaitMs: oldest === undefined ? null : context.at - oldest.submittedAt,
    longestActiveMs: longest === undefined ? null : context.at - longest.grantedAt,
  }
}

const gateOf = (context: ScopeContext): ScopeStatus['auxiliaryGate'] => {
  if (context.state === 'auxiliaryDraining') return 'metered'
  return primaryWanted(context) ? 'closed' : 'open'
}

/** The status of a scope at its newest event. Costs the same however many calls wait. */
export const scopeStatus = (context: ScopeContext): ScopeStatus => {
  const { counts, ramp, at } = context
  const head = nextPrimary(context)
  return {
    scope: context.scope,
    state: context.state,
    at,
    auxiliaryGate: gateOf(context),
    primary: laneStatus(context, 'primary', counts.primaryInFlight, counts.primaryWaiting),
    auxiliary: laneStatus(context, 'auxiliary', counts.auxiliaryInFlight, counts.auxiliaryWaiting),
    capacity: capacityOf(context),
    wait: context.wait,
    recentInputTokens: trailingTokens(ramp, at),
    highestAcceptedTokens: ramp.highestAccepted,
    lastRefusal: ramp.refusal,
    plan: ramp.plan,
    growth: ramp.growth,
    ceiling: ceilingAt(boundsOf(ramp), at),
    fit: head === null ? null : fitOf(context, head.waiting),
    pacing: context.pacing,
    refusalsByKind: context.refusalsByKind,
    counters: context.counters,
  }
}
