/** When a waiting call is expected to fit, and what that rests on. */

import { isSilent } from '../limits/belief/belief.ts'
import { type BelievedLimit, believedLimits } from '../limits/belief/projection.ts'
import type { Waiting } from '../state/calls.ts'
import type { ScopeContext } from '../state/context.ts'
import { auxiliaryFit, primaryFit } from './admission.ts'
import { forecastOf } from './planner.ts'

/** Why no time can be named: no silence lets the call in, so its ceiling has to grow, or it never fits. */
export type NoFitReason = 'silence-does-not-help'

export interface Fit {
  /** Epoch milliseconds; null when waiting alone does not make it fit, and `reason` says why. */
  readonly predictedFitAtMs: number | null
  readonly reason: NoFitReason | null
  /** When it is tried next, whatever is expected, epoch milliseconds. */
  readonly tryAtMs: number
  /** It is tried then although it is not believed to fit. */
  readonly probe: boolean
  readonly limits: ReadonlyArray<BelievedLimit>
}

/** Null for a call of which nothing says that it does not fit. */
export const fitOf = (context: ScopeContext, waiting: Waiting): Fit | null => {
  const { belief, at } = context
  if (isSilent(belief)) return null
  const { tryAtMs, probe } =
    waiting.call.lane === 'primary' ? primaryFit(context, waiting) : auxiliaryFit(context, waiting)
  if (tryAtMs <= at) return null
  const forecast = forecastOf(context, waiting)
  return {
    // What the provider, the budget and its class ask for comes on top.
    predictedFitAtMs: forecast === null ? null : Math.max(forecast, probe ? 0 : tryAtMs),
    reason: forecast === null ? 'silence-does-not-help' : null,
    tryAtMs,
    probe,
    limits: believedLimits(belief, at),
  }
}
