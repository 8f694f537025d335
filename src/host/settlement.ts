import type { Evidence, Outcome, SettlementCause, Usage } from '../../machines/index.ts'

/** How the holder of a permit says that its dispatch ended. */
export interface Settlement {
  readonly outcome: Exclude<Outcome, 'unknown' | 'abandoned'>
  /** Tokens in [0, 1,000,000,000]; fractions are rounded up. */
  readonly usage?: Usage
  /** What the provider said; needed for `throttled`. */
  readonly evidence?: Evidence
  readonly cause?: SettlementCause
}
