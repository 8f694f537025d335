/**
 * The one projection of a scope: `status()`, `/lanes`, `explain`, `replay`, the inspector's rows and its page
 * all show the result of `statusAt`. Its inputs are facts, which only an event changes, and a moment. It
 * imports little, so that the page has it before the core is loaded.
 */
import type { Refusal } from '../../machines/limits/belief/belief.ts'
import { type Charges, sentInMinute } from '../../machines/limits/belief/charges.ts'
import type { BelievedLimit, Interval } from '../../machines/limits/belief/projection.ts'
import type { Policy } from '../../machines/model/policy.ts'
import type { Fit } from '../../machines/scheduling/fit-prediction.ts'
import type { ScopeContext } from '../../machines/state/context.ts'

export interface LaneFacts {
  readonly waiting: number
  readonly inFlight: number
  /** Submission time of the longest waiting call, epoch milliseconds; null when no call waits. */
  readonly waitingSinceMs: number | null
  /** Grant time of the longest running call, epoch milliseconds; null when no call runs. */
  readonly activeSinceMs: number | null
}

/**
 * Plain JSON that stays the same until the scope's next event. Fields that `ScopeStatus` also has mean the
 * same there.
 */
export interface ScopeFacts {
  readonly scope: string
  readonly state: ScopeContext['state']
  readonly at: number
  readonly auxiliaryGate: 'open' | 'closed' | 'metered'
  readonly primary: LaneFacts
  readonly auxiliary: LaneFacts
  /** The oldest turns that have begun and not ended, at most `shownTurns`. */
  readonly turns: ReadonlyArray<{ readonly turnId: string; readonly beganAtMs: number }>
  readonly capacity: number
  readonly placesTaken: number
  /** The values of the policy in force that differ from its preset, by field; the preset too unless it is the default. */
  readonly policy: Partial<Policy>
  /** The last wait, also after it has passed. */
  readonly wait: ScopeContext['wait']
  /** Input tokens dispatched in the minute before `at`. */
  readonly lastMinute: Charges
  readonly inputTokenLimit: number | null
  readonly highestAcceptedTokens: number
  readonly lastRefusal: Refusal | null
  readonly limits: ReadonlyArray<BelievedLimit>
  readonly ceiling: Interval
  readonly fit: Fit | null
  readonly pacing: ScopeContext['pacing']
  /** The policy's limit on an auxiliary's wait. */
  readonly maxDeferralMs: number
  readonly refusalsByKind: ScopeContext['refusalsByKind']
  readonly counters: ScopeContext['counters']
}

export interface TurnStatus {
  readonly turnId: string
  /** Time since it began, milliseconds. */
  readonly ageMs: number
}

/** Turns that a status shows at most. */
export const shownTurns = 16

export interface LaneStatus {
  readonly waiting: number
  readonly inFlight: number
  /** Age of the longest waiting call, milliseconds; null when no call waits. */
  readonly longestWaitMs: number | null
  /** Time since the grant of the longest running call, milliseconds; null when no call runs. */
  readonly longestActiveMs: number | null
}

export type AlarmKind =
  | 'provider-wait'
  | 'primary-waits'
  | 'auxiliary-starves'
  | 'backing-off'
  | 'outcomes-unknown'
  | 'calls-expired'
  | 'calls-rejected'

export interface Alarm {
  readonly kind: AlarmKind
  /** Milliseconds for a wait, a count for the rest. */
  readonly amount: number
}

/** The state of a scope without content: counts, times, names of states and reasons. */
export interface ScopeStatus {
  readonly scope: string
  readonly state: ScopeContext['state']
  /** Epoch milliseconds of the scope's newest event. */
  readonly at: number
  /** The moment for which ages, windows and alarms are computed, epoch milliseconds. */
  readonly nowMs: number
  readonly auxiliaryGate: 'open' | 'closed' | 'metered'
  readonly primary: LaneStatus
  readonly auxiliary: LaneStatus
  /** The oldest turns that have begun and not ended, at most 16: one that was forgotten holds background work up until `turnTimeoutMs`. */
  readonly turns: ReadonlyArray<TurnStatus>
  /** Calls that may be in flight now. */
  readonly capacity: number
  /** The places of `capacity` that are taken. A nested call borrows its parent's place and takes none. */
  readonly placesTaken: number
  /** The values of the policy in force that differ from its preset, by field; the preset too unless it is the default. */
  readonly policy: Partial<Policy>
  /** The wait that the provider asked for, and its kind; null when there is none or when it has passed. */
  readonly wait: ScopeContext['wait']
  /** Input tokens dispatched in the last minute. */
  readonly recentInputTokens: number
  /** Limit of input tokens per minute from the policy or from headers; null when none is known. */
  readonly inputTokenLimit: number | null
  /** Most input tokens that were accepted within one minute. */
  readonly highestAcceptedTokens: number
  /** The last refusal that told of input tokens; null before the first. */
  readonly lastRefusal: Refusal | null
  /** By the newest event: what is believed of the provider's limits on input tokens; empty before any answer told of one. */
  readonly limits: ReadonlyArray<BelievedLimit>
  /** By the newest event: the ceiling that binds, input tokens per minute. */
  readonly ceiling: Interval
  /**
   * Prediction at the newest event: when the first primary fits, or why no time can be named. Null when it is
   * not known to be too large.
   */
  readonly fit: Fit | null
  /** The classes that back off. */
  readonly pacing: ScopeContext['pacing']
  readonly alarms: ReadonlyArray<Alarm>
  readonly refusalsByKind: ScopeContext['refusalsByKind']
  readonly counters: ScopeContext['counters']
}

/** An alarm is raised when a primary waits longer than this. */
const longPrimaryWaitMs = 30_000
/** An auxiliary that has waited for this share of `maxDeferralMs` will soon get its quantum. */
const starvingShare = 0.8

const laneAt = (
  { waiting, inFlight, waitingSinceMs, activeSinceMs }: LaneFacts,
  nowMs: number,
): LaneStatus => ({
  waiting,
  inFlight,
  longestWaitMs: waitingSinceMs === null ? null : nowMs - waitingSinceMs,
  longestActiveMs: activeSinceMs === null ? null : nowMs - activeSinceMs,
})

const alarmsAt = (
  { wait, pacing, counters, maxDeferralMs }: ScopeFacts,
  primaryWaitMs: number,
  auxiliaryWaitMs: number,
  nowMs: number,
): ReadonlyArray<Alarm> => {
  const pausedUntilMs = Math.max(0, ...Object.values(pacing).map((pace) => pace.pausedUntilMs))
  const amounts: ReadonlyArray<readonly [AlarmKind, number]> = [
    ['provider-wait', (wait?.untilMs ?? 0) - nowMs],
    ['primary-waits', primaryWaitMs >= longPrimaryWaitMs ? primaryWaitMs : 0],
    ['auxiliary-starves', auxiliaryWaitMs >= maxDeferralMs * starvingShare ? auxiliaryWaitMs : 0],
    ['backing-off', pausedUntilMs - nowMs],
    ['outcomes-unknown', counters.unknownOutcomes],
    ['calls-expired', counters.expired],
    ['calls-rejected', counters.rejected],
  ]
  return amounts.flatMap(([kind, amount]) => (amount > 0 ? [{ kind, amount }] : []))
}

/**
 * The status at `atMs`, epoch milliseconds, if no event has come since the facts. Never earlier than their
 * newest event.
 */
export const statusAt = (facts: ScopeFacts, atMs: number): ScopeStatus => {
  const nowMs = Math.max(facts.at, atMs)
  const primary = laneAt(facts.primary, nowMs)
  const auxiliary = laneAt(facts.auxiliary, nowMs)
  return {
    scope: facts.scope,
    state: facts.state,
    at: facts.at,
    nowMs,
    auxiliaryGate: facts.auxiliaryGate,
    primary,
    auxiliary,
    turns: facts.turns.map(({ turnId, beganAtMs }) => ({ turnId, ageMs: nowMs - beganAtMs })),
    capacity: facts.capacity,
    placesTaken: facts.placesTaken,
    policy: facts.policy,
    wait: facts.wait === null || facts.wait.untilMs <= nowMs ? null : facts.wait,
    recentInputTokens: sentInMinute(facts.lastMinute, nowMs),
    inputTokenLimit: facts.inputTokenLimit,
    highestAcceptedTokens: facts.highestAcceptedTokens,
    lastRefusal: facts.lastRefusal,
    limits: facts.limits,
    ceiling: facts.ceiling,
    fit: facts.fit,
    pacing: facts.pacing,
    alarms: alarmsAt(facts, primary.longestWaitMs ?? 0, auxiliary.longestWaitMs ?? 0, nowMs),
    refusalsByKind: facts.refusalsByKind,
    counters: facts.counters,
  }
}
