/** Why a permit was granted (`admit` at submission, `release` after waiting). */
export type GrantReason =
  /** The gate is open and there is room. */
  | 'open'
  /** A primary, in its turn. */
  | 'primary'
  /** The backlog, at the metered pace. */
  | 'drain'
  /** Deferred for longer than `maxDeferralMs`: its quantum comes before the next primary. */
  | 'fairness'
  /** A primary waits for its result, or an operator promoted it. */
  | 'dependency'
  /** Made inside the permit of a running call, whose place it borrows. */
  | 'nested'
  /** The one call after a hold for an exhausted quota: it finds out whether there is some again, and the rest wait for it. */
  | 'probe'
  /** Lets the ceiling grow for a primary that does not fit yet. */
  | 'warm-up'
  /** Runs, and is paid back, before the primary's predicted start. */
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

/** Why a scope that sheds (`policy.qos`) turned a call away, in the order in which they are looked for. */
export type ShedReason =
  /** Its principal has as many live calls as one may have. */
  | 'principal-quota'
  /** The places left are kept for higher classes. */
  | 'class-ceiling'
  /** Places are scarce, and its principal has its share of them. */
  | 'fair-share'
  /** Its principal sends calls of its class faster than they are let in. */
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

/** What was decided about one call. Data, never prose; text is made where it is shown. */
export interface Decision {
  readonly callId: string
  readonly verdict: Verdict
  readonly reason: Reason
  /** Epoch milliseconds. */
  readonly at: number
  readonly state: ScopeState
  /** When the decision is looked at again at the latest; absent or null when only an event can change it. */
  readonly wakeAt?: number | null
  /** Of a grant whose owner sends at once: from now on the provider may have the call. */
  readonly dispatched?: boolean
  /** Of a call that was shed: after how long the same call may do better, milliseconds. */
  readonly retryAfterMs?: number
}

/** What an episode (first pending primary to `settled`) amounted to. */
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
