/** What a provider counts of a call, and when: a policy says it, so that the budget holds what the provider holds. */
import { Schema } from 'effect'
import { maxTokens } from './call.ts'
import { finite, integer } from './invalid.ts'

export const ChargesSchema = Schema.Struct({
  /** When tokens are taken. At `completion` a call that the budget holds is let in, and takes nothing until it ends. Requests are taken at admission always. */
  at: Schema.Literals(['admission', 'completion']),
  /**
   * What the answer takes at admission: nothing; the caller's estimate; or all that the call allows it
   * (`max_tokens`), whatever it will need.
   */
  output: Schema.Literals(['none', 'estimate', 'maxTokens']),
  /** Under `maxTokens`, tokens that a call which states no maximum is taken to allow. Null: its estimate. */
  defaultMaxOutputTokens: Schema.NullOr(integer(0, maxTokens)),
  /** Tokens that each token of output counts as, in [0, 100]. A `max_tokens` that is taken at admission counts as it is. */
  outputWeight: finite(0, 100),
  /**
   * Whether one limit bounds input and output together. `apart`: each has its own. `sum`: both count against the
   * input limits, added up. `larger`: the larger of the two counts against the input limits.
   */
  combined: Schema.Literals(['apart', 'sum', 'larger']),
  /** Whether a request that ended in an error before it was accepted keeps what it took. Refusals for capacity never take anything. */
  failures: Schema.Boolean,
  /** Input that was read from a cache: as the usage's `inputTokens` has it, free, or counted. */
  cacheReads: Schema.Literals(['asReported', 'free', 'counted']),
  /** Whether the usage of the answer corrects what was taken at admission, up or down. */
  corrected: Schema.Boolean,
})

/** How the provider charges a call against its limits. */
export type Charges = typeof ChargesSchema.Type

/** By what callers say of their calls, corrected by what the answer says: what scopes did before they could choose. */
export const defaultCharges: Charges = {
  at: 'admission',
  output: 'estimate',
  defaultMaxOutputTokens: null,
  outputWeight: 1,
  combined: 'apart',
  failures: false,
  cacheReads: 'asReported',
  corrected: true,
}
