/**
 * The evidence about capacity in a provider's answer. The edge (`src/evidence`) writes these values and the
 * core decides with them. They never hold any text of the answer.
 */

/** The most specific dimension that a provider named. `not-capacity` says nothing about scheduling. */
export const evidenceKinds = [
  'acceleration',
  'concurrency',
  'input-tokens-per-minute',
  'output-tokens-per-minute',
  'tokens-per-minute',
  'tokens-per-day',
  'requests-per-minute',
  'requests-per-day',
  'overloaded',
  'quota-exhausted',
  'unknown-rate-limit',
  'not-capacity',
] as const
export type EvidenceKind = (typeof evidenceKinds)[number]

/**
 * The widest reach of the evidence: this model on this credential, the whole credential, or the provider for
 * everyone.
 */
export const evidenceScopes = ['model', 'credential', 'provider'] as const
export type EvidenceScope = (typeof evidenceScopes)[number]

/** Numbers that the provider stated beside the refusal. All are optional, finite and non-negative. */
export interface EvidenceFacts {
  /** Ceiling in force now, in `unit` (tokens per minute unless said otherwise). */
  readonly currentLimit?: number
  /** Ceiling that the provider announced for its next step. */
  readonly nextLimit?: number
  /** The limit that was exceeded, in `unit`. */
  readonly limit?: number
  /** The part of the limit that is used already. */
  readonly used?: number
  /** The amount that this request asked for. */
  readonly requested?: number
  /** Measured usage that the provider reports (used + requested). */
  readonly actual?: number
  readonly unit?: string
}

export interface Evidence {
  readonly kind: EvidenceKind
  readonly scope: EvidenceScope
  /**
   * The wait that the provider states, milliseconds from receipt, rounded up; null when it states none. Never
   * a policy's value.
   */
  readonly retryAfterMs: number | null
  /** True when the same request can succeed later, unchanged and without an operator. */
  readonly retryable: boolean
  readonly facts: EvidenceFacts
  /**
   * How long the host holds the scope for it, milliseconds from receipt, after which one call finds out.
   * Left out: as long as `retryAfterMs` says. Shorter than that for a wait that is too long to be believed.
   */
  readonly holdMs?: number
}

/** One limit as a provider's headers show it. */
export interface LimitReading {
  readonly dimension:
    | 'requests-per-minute'
    | 'requests-per-day'
    | 'tokens-per-minute'
    | 'tokens-per-day'
    | 'input-tokens-per-minute'
    | 'output-tokens-per-minute'
  readonly limit: number | null
  readonly remaining: number | null
  /** Epoch milliseconds at which the limit is fully replenished. */
  readonly resetAtMs: number | null
}
