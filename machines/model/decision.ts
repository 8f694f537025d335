/** Why a permit was granted (`admit` at submission, `release` after waiting). */
export type GrantReason =
  /** The gate is open and there is room. */
  | 'open'
  /** A primary, in its turn. */
  | 'primary'
  /** The backlog, at the metered pace. */
  | 'drain'
  /** An auxiliary was deferred for longer than `maxDeferralMs`: its quantum comes before the next primary. */
  | 'fairness'
  /** A primary waits for its result, or an operator promoted it. */
  | 'dependency'
  /** The call was made inside the permit of a running call and borrows its place. */
  | 'nested'
  /**
   * The one call after a hold for an exhausted quota. It finds out whether the quota is back; all other calls
   * wait for it.
   */
  | 'probe'
  /** Lets the ceiling grow for a primary that does not fit yet. */
  | 'warm-up'
  /** Runs and has its tokens replenished before the primary's predicted start. */
  | 'backfill'

/** Why a call waits. */
export type DeferReason =
  | 'primary-pending'
  | 'primary-active'
  | 'turn-held'
  | 'quiet-window'
  | 'auxiliaries-in-flight'
  | 'dependencies'
  /** Given by older versions only: a primary that made way for a quantum now waits for the places that it takes. */
  | 'fairness-quantum'
  | 'capacity-full'
  | 'reserve-kept'
  | 'behind-others'
  | 'drain-pace'
  | 'provider-wait'
  | 'budget'
  /** The provider is not believed to take it yet. */
  | 'forecast'
  | 'pacing'
  | 'quota'
  | 'foreground-active'
  | 'refused-by-provider'
  | 'preempted'
  | 'recovered'

export type CancelReason = 'preempted'

export type RejectReason =
  | 'already-settled'
  | 'exceeds-limit'
  | 'attempts-exhausted'
  | 'not-retryable'
  | 'outcome-unknown'
  | ShedReason

/** Why a scope that sheds (`policy.qos`) turned a call away. The checks run in this order. */
export type ShedReason =
  /** The principal has reached its limit of live calls. */
  | 'principal-quota'
  /** The free places are kept for higher classes. */
  | 'class-ceiling'
  /** Places are scarce, and the principal already has its share of them. */
  | 'fair-share'
  /** The principal sends calls of this class faster than its bucket refills. */
  | 'bucket-empty'

export type ExpireReason = 'deadline' | 'pending-timeout' | 'active-timeout' | 'unclaimed' | 'abandoned'

export type Verdict = 'admit' | 'defer' | 'release' | 'cancel' | 'reject' | 'expire'
export type Reason = GrantReason | DeferReason | CancelReason | RejectReason | ExpireReason

/** Names of the states, nested ones dotted. */
export type ScopeState =
  | 'idle'
  | 'primaryPending'
  | 'quietRamp.quiet'
  | 'quietRamp.admitting'
  | 'quietRamp.active'
  | 'auxiliaryDraining'
  | 'settled'

/** One decision about one call. It is data and holds no prose: text is made where it is shown. */
export interface Decision {
  readonly callId: string
  readonly verdict: Verdict
  readonly reason: Reason
  /** Epoch milliseconds. */
  readonly at: number
  readonly state: ScopeState
  /**
   * The latest time at which the decision is looked at again. Absent or null when only an event can change
   * it.
   */
  readonly wakeAt?: number | null
  /** On a grant whose owner sends at once: from now on the provider may have the call. */
  readonly dispatched?: boolean
  /** On a call that was shed: milliseconds after which the same call may succeed. */
  readonly retryAfterMs?: number
}

/** The totals of an episode, which lasts from the first pending primary to `settled`. */
export interface EpisodeSummary {
  readonly startedAt: number
  readonly endedAt: number
  readonly primariesAdmitted: number
  readonly primaryWaitMaxMs: number
  readonly auxiliariesDeferred: number
  readonly auxiliariesReleased: number
  readonly auxiliariesCancelled: number
  readonly refusals: number
  readonly fairnessQuanta: number
}
