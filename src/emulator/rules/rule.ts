/**
 * A limit rule: pure arithmetic over a state and a given time. A rule reads no clock and no random source, so
 * the same calls get the same answers on virtual time and behind HTTP.
 */

/** The detail of a rule's refusal: nothing, the moving ceiling, or the wait as well. */
export const statements = ['none', 'ceiling', 'retry-after'] as const
export type Statement = (typeof statements)[number]

export const ruleNames = [
  'token-bucket',
  'changing-bucket',
  'token-window',
  'use-growth',
  'time-step',
  'slow-down',
  'requests-per-minute',
  'output-tokens-per-minute',
  'reserved-tokens',
  'concurrency',
  'overload',
  'outage',
  'daily-quota',
  'spend-cap',
] as const
export type RuleName = (typeof ruleNames)[number]

/** The dimension that a refusal names, in the words of the evidence vocabulary. */
export type RefusalKind =
  | 'acceleration'
  | 'input-tokens-per-minute'
  | 'output-tokens-per-minute'
  | 'requests-per-minute'
  | 'requests-per-day'
  | 'tokens-per-day'
  | 'concurrency'
  | 'overloaded'
  | 'quota-exhausted'

/** A call at the provider's door. */
export interface LimitCall {
  /** Epoch or virtual milliseconds, whole. Never earlier than the call before. */
  readonly atMs: number
  /** Input tokens that count against limits, >= 0. */
  readonly inputTokens: number
  /** The caller's limit on output tokens (`max_tokens`), >= 0; null when it states none. Only `reserved-tokens` counts it. */
  readonly maxOutputTokens: number | null
}

/** How an accepted call ended. Only `reserved-tokens` gives anything back. */
export interface Completion {
  readonly atMs: number
  /** Input tokens charged at acceptance. */
  readonly inputTokens: number
  /** The call's actual input tokens; equal to `inputTokens` when the estimate was right. */
  readonly actualInputTokens: number
  /** Output tokens produced until then, also when the client went away. */
  readonly outputTokens: number
  /** What the caller had allowed; null when it stated none. */
  readonly maxOutputTokens: number | null
  /** It ended in an error instead of an answer. */
  readonly failed: boolean
}

/**
 * Why a call was not accepted. `limit`, `used`, `requested`, `permanent` and `resetAtMs` are the provider's
 * own truth, for judges and plots. A client is told `currentLimit`, `nextLimit` and `retryAfterMs`, which are
 * present only when the rule states them.
 */
export interface Refusal {
  readonly rule: RuleName
  readonly kind: RefusalKind
  /** The limit in force, in the unit of the rule; null where there is no number (overload, spend cap). */
  readonly limit: number | null
  /** The part of the limit that was used before this call. */
  readonly used: number
  /** The amount that this call asked for. */
  readonly requested: number
  /** Stated ceiling in force, input tokens per minute. */
  readonly currentLimit?: number
  /** Stated ceiling from the next minute boundary on, input tokens per minute; only when it is higher. */
  readonly nextLimit?: number
  /** Stated wait after which the call is accepted if no other call arrives; null when none is stated. */
  readonly retryAfterMs: number | null
  /** When the limit is fully replenished if no other call arrives; null when no time brings that. */
  readonly resetAtMs: number | null
  /** No wait helps: the call is larger than the rule ever accepts, or a spend cap is reached. */
  readonly permanent: boolean
}

/** What response headers may show of one limit. */
export interface LimitFact {
  readonly dimension:
    | 'requests-per-minute'
    | 'input-tokens-per-minute'
    | 'output-tokens-per-minute'
    | 'requests-per-day'
    | 'tokens-per-day'
  readonly limit: number
  /** >= 0, rounded down. */
  readonly remaining: number
  /** When the limit is fully replenished if no other call arrives. */
  readonly resetAtMs: number
}

export type RuleAnswer<State> =
  | { readonly accepted: true; readonly state: State }
  | { readonly accepted: false; readonly refusal: Refusal; readonly state: State }

/**
 * One limit. States are immutable: a check returns the state to go on with. A refusal charges
 * nothing; the state that it returns has only moved in time (and, for `overload`, in its random
 * sequence).
 *
 * Methods, not function properties: rules of several state types live in one list, and each only
 * ever sees the states that it made.
 */
export interface LimitRule<State> {
  readonly name: RuleName
  readonly states: Statement
  /** The state before the first call. `seed` matters to rules that draw. */
  initial(seed: number): State
  /** The state at a later time without calls. Returns the same reference when nothing changes. */
  advance(state: State, atMs: number): State
  check(state: State, call: LimitCall): RuleAnswer<State>
  complete(state: State, completion: Completion): State
  /** Limits for response headers. Empty when the rule states nothing. */
  headers(state: State, atMs: number): readonly LimitFact[]
  /**
   * Input tokens that one call could have now. Infinity when this rule does not limit them, 0 when closed.
   */
  ceiling(state: State, atMs: number): number
  /**
   * First time at which the call is accepted if no other call arrives or ends; null when never. Deterministic
   * rules only.
   */
  acceptsAtMs(state: State, call: LimitCall): number | null
}

/** A minute of provider time, ms. */
export const minuteMs = 60_000
/** A day of provider time, ms; days begin at 00:00 UTC. */
export const dayMs = 86_400_000
