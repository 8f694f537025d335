/** When a primary that was refused for its size is expected to fit, and what that rests on. */

import { between, minuteMs, trailing } from '../collections/usage-window.ts'
import { type CeilingInterval, ceilingAt, type Growth } from '../limits/ceiling.ts'
import { boundsOf, type Ramp, type RampPlan } from '../limits/ramp.ts'
import { boundaryAfter, factorAt, statedFitAt } from '../limits/ramp-plan.ts'
import type { ScopeContext, Waiting } from '../state/context.ts'
import { primaryFitsAt } from './admission.ts'

/**
 * Why no time can be named: `growth-unknown` while the evidence fits several rules, `does-not-grow`
 * where the ceiling was seen to stay below the call, `held` where the policy does not raise it.
 */
export type NoFitReason = 'growth-unknown' | 'does-not-grow' | 'held'

export interface Fit {
  /** Epoch milliseconds; null when the evidence names no time, and `reason` says why. */
  readonly predictedFitAtMs: number | null
  readonly reason: NoFitReason | null
  /** When it is tried next, whatever is expected, epoch milliseconds. */
  readonly tryAtMs: number
  readonly ceiling: CeilingInterval
  readonly growth: Growth
}

/** Growth that would take more minutes than this is none that a call could wait for. */
const mostMinutes = 120

type Prediction = number | NoFitReason

/** The minute boundary at which a ceiling that grows with time reaches the call. */
const afterTime = (rate: number, missing: number, atMs: number): Prediction => {
  const boundaries = Math.ceil(missing / rate)
  return boundaries > mostMinutes ? 'does-not-grow' : boundaryAfter(atMs, boundaries)
}

/** Minutes packed full until one of them lifts the ceiling far enough, and one of silence. */
const afterUse = (ramp: Ramp, tokens: number, atMs: number): Prediction => {
  const factor = factorAt(ramp)
  const before = between(ramp.accepted, atMs - 2 * minuteMs, atMs - minuteMs)
  let used = Math.max(1, before, trailing(ramp.accepted, atMs), ceilingAt(boundsOf(ramp), atMs).low)
  let minutes = 1
  for (; used * factor < tokens; used *= factor) {
    minutes += 1
    if (factor <= 1 || minutes > mostMinutes) return 'does-not-grow'
  }
  return atMs + minutes * minuteMs
}

const whileBuilding = (ramp: Ramp, tokens: number, atMs: number): Prediction => {
  const { kind, tokensPerMinute } = ramp.growth
  const { low, high } = ceilingAt(boundsOf(ramp), atMs)
  if (kind === 'none') return 'does-not-grow'
  if (kind === 'withUse') return afterUse(ramp, tokens, atMs)
  if (kind !== 'withTime' || tokensPerMinute === null || tokensPerMinute <= 0) return 'growth-unknown'
  return afterTime(tokensPerMinute, tokens - (low + Math.min(tokens, high ?? tokens)) / 2, atMs)
}

const whileHolding = (ramp: Ramp, { tokens, targetTokens }: RampPlan, atMs: number): Prediction =>
  ramp.growth.kind === 'withUse' && targetTokens * factorAt(ramp) < tokens
    ? 'held'
    : whileBuilding(ramp, tokens, atMs)

const predict = (ramp: Ramp, plan: RampPlan, atMs: number): Prediction => {
  switch (plan.kind) {
    case 'quiet':
      return ramp.growth.kind === 'none' &&
        (ceilingAt(boundsOf(ramp), atMs).high ?? plan.tokens + 1) <= plan.tokens
        ? 'does-not-grow'
        : Math.max(plan.tryAtMs, plan.quietUntilMs)
    case 'hush':
      return plan.tryAtMs
    case 'backfill':
      return statedFitAt(ramp, plan.tokens) ?? whileBuilding(ramp, plan.tokens, atMs)
    case 'build':
      return whileBuilding(ramp, plan.tokens, atMs)
    case 'hold':
      return whileHolding(ramp, plan, atMs)
  }
}

/** Null for a call of which nothing says that it does not fit. */
export const fitOf = (context: ScopeContext, waiting: Waiting): Fit | null => {
  const { ramp, at } = context
  const { plan, growth } = ramp
  if (plan === null || waiting.call.inputTokens < plan.tokens) return null
  const tryAtMs = primaryFitsAt(context, waiting)
  const prediction = predict(ramp, plan, at)
  const named = typeof prediction === 'number'
  return {
    // What the provider, the budget and its class ask for comes on top.
    predictedFitAtMs: named ? Math.max(prediction, tryAtMs) : null,
    reason: named ? null : prediction,
    tryAtMs,
    ceiling: ceilingAt(boundsOf(ramp), at),
    growth,
  }
}
