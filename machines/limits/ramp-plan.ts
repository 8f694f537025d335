/**
 * What is done until a primary that was refused for its size is tried again, one step at a time:
 *
 * - `quiet`: nobody sends until the trailing minute has emptied. Enough for a refilling bucket.
 * - `backfill`: auxiliaries run until the minute boundary at which stated ceilings, or a growth with
 *   time that was seen, say that it fits, and it is tried then.
 * - `build`: refused though nobody had sent, so silence cannot help: auxiliaries use as much as the
 *   ceiling takes, so that one that follows use rises (`warm-up.ts`); at minute boundaries it is tried
 *   in passing, for a ceiling that rises with time.
 * - `hold`: auxiliaries use what the ceiling is known to take and no more, so that one that follows
 *   use does not fall.
 * - `hush`: a minute was used that should lift the ceiling far enough; nobody sends for exactly the
 *   window that must be empty, then it is tried.
 */

import { between, fallsTo, minuteMs, trailing } from '../collections/usage-window.ts'
import { ceilingAt, factorOf } from './ceiling.ts'
import { boundsOf, type Ramp, type RampPlan, type Refusal } from './ramp.ts'

export interface RampBounds {
  readonly strategy: 'quiet' | 'holdSteady' | 'stepUp' | 'backfill' | 'adaptive'
  readonly quietWindowMs: number
}

/** Growth per minute that is hoped for before any was seen. */
export const hopedFactor = 1.3
/** A probe that fails asks for a minute that is so much fuller. */
const targetStep = 1.15
/** Less than this share of the call in the trailing minute counts as silence. */
const silence = 0.05
/** Tries within one quiet window: each costs a refusal at most, and a refilling limit may hold the call long before its end. */
const quietTries = 4
/** A growth with time that was seen is asked again after so many minute boundaries at the latest. */
const mostBoundaries = 3
/** Refusals after which a plan that rests on it is given up for one that also serves other rules. */
const mostSeenTries = 3

interface Step {
  readonly ramp: Ramp
  readonly refusal: Refusal
  readonly bounds: RampBounds
  readonly refusals: number
}

/** All fields in their one order, so that equal plans are equal bytes. */
const noPlan: RampPlan = {
  kind: 'quiet',
  tokens: 0,
  tryAtMs: 0,
  refusals: 0,
  targetTokens: 0,
  quietUntilMs: 0,
}

/** The `count`th minute boundary after `atMs`, at least the first, epoch milliseconds. */
export const boundaryAfter = (atMs: number, count: number): number =>
  (Math.floor(atMs / minuteMs) + Math.max(1, count)) * minuteMs

/** The next minute boundary, or the end of the quiet window, where there is one, when that comes first. */
const nextTryMs = (atMs: number, { quietWindowMs }: RampBounds): number => {
  const boundaryMs = boundaryAfter(atMs, 1)
  return quietWindowMs > 0 ? Math.min(boundaryMs, atMs + quietWindowMs) : boundaryMs
}

/** Minute boundaries until the ceilings that the provider stated reach the call, were they to go on by the same step; null when they do not say. */
const statedBoundaries = ({ statedLimit, statedNextLimit }: Refusal, tokens: number): number | null => {
  if (statedLimit === null || statedNextLimit === null || statedNextLimit <= statedLimit) return null
  return Math.max(1, Math.ceil((tokens - statedLimit) / (statedNextLimit - statedLimit)))
}

/** When a call fits by what the provider stated last, epoch milliseconds; null when that does not say. */
export const statedFitAt = ({ refusal }: Ramp, tokens: number): number | null => {
  const boundaries = refusal === null ? null : statedBoundaries(refusal, tokens)
  return boundaries === null ? null : boundaryAfter(refusal!.atMs, boundaries)
}

/** The same by the growth with time that was seen; null when none was. */
const seenBoundaries = (ramp: Ramp, { tokens, atMs }: Refusal): number | null => {
  const { kind, tokensPerMinute } = ramp.growth
  if (kind !== 'withTime' || tokensPerMinute === null || tokensPerMinute <= 0) return null
  const { low, high } = ceilingAt(boundsOf(ramp), atMs)
  const missing = tokens - (low + Math.min(tokens, high ?? tokens)) / 2
  return Math.min(mostBoundaries, Math.max(1, Math.floor(missing / tokensPerMinute)))
}

/** By how much a minute of use is expected to lift the ceiling: what was seen, or what is hoped for and not yet ruled out. */
export const factorAt = (ramp: Ramp): number => {
  if (ramp.growth.kind === 'withUse' && ramp.growth.factor !== null) return ramp.growth.factor
  const { low, high } = factorOf(boundsOf(ramp))
  // No factor explains it: what is hoped for is as good as any.
  if (!Number.isFinite(low)) return hopedFactor
  return hopedFactor < high ? Math.max(hopedFactor, low) : Math.max(1, (low + high) / 2)
}

const quietPlan = ({ ramp, refusal, bounds, refusals }: Step): RampPlan => {
  const { atMs, tokens, statedLimit, trailingTokens } = refusal
  const { quietWindowMs } = bounds
  const before = ramp.plan?.kind === 'quiet' && atMs < ramp.plan.quietUntilMs ? ramp.plan : null
  // Once the trailing minute is empty a limit per minute has refilled. What else silence could help, only a whole window tells.
  const emptyMs = trailingTokens > 0 ? fallsTo(ramp.slots, 0, atMs) : Number.POSITIVE_INFINITY
  const quietUntilMs = before?.quietUntilMs ?? Math.min(atMs + quietWindowMs, emptyMs)
  // A stated ceiling says how far the trailing minute has to empty.
  const stated = statedLimit !== null && statedLimit >= tokens && trailingTokens > statedLimit - tokens
  const everyMs = Math.max(1, Math.ceil(quietWindowMs / quietTries))
  const statedMs = stated ? fallsTo(ramp.slots, statedLimit - tokens, atMs) : null
  const isLast = atMs + 1.5 * everyMs > quietUntilMs
  const tryAtMs = Math.min(statedMs ?? (isLast ? quietUntilMs : atMs + everyMs), quietUntilMs)
  return { ...noPlan, kind: 'quiet', tokens, tryAtMs, refusals, quietUntilMs }
}

const backfillPlan = ({ ramp, refusal, bounds, refusals }: Step): RampPlan => {
  const { tokens, atMs } = refusal
  const boundaries = statedBoundaries(refusal, tokens) ?? seenBoundaries(ramp, refusal)
  const tryAtMs = boundaries === null ? nextTryMs(atMs, bounds) : boundaryAfter(atMs, boundaries)
  return { ...noPlan, kind: 'backfill', tokens, tryAtMs, refusals }
}

const buildPlan = ({ ramp, refusal, bounds, refusals }: Step): RampPlan => {
  const { atMs, tokens } = refusal
  const { plan } = ramp
  const hoped = Math.ceil(tokens / factorAt(ramp))
  // The hush that led here was not enough: next time the minute before it must be fuller.
  const raised = plan?.kind === 'hush' ? Math.ceil(plan.targetTokens * targetStep) : (plan?.targetTokens ?? 0)
  // A call that nobody estimated wants some use too: with nothing to reach, it would be tried again at once.
  const targetTokens = Math.max(1, Math.min(tokens, Math.max(hoped, raised)))
  const tryAtMs = plan?.kind === 'build' ? boundaryAfter(atMs, 2) : nextTryMs(atMs, bounds)
  return { ...noPlan, kind: 'build', tokens, tryAtMs, refusals, targetTokens }
}

/** What a minute is known to take, and then silence. */
const holdPlan = ({ ramp, refusal, refusals }: Step): RampPlan => {
  const { atMs, tokens } = refusal
  const { low } = ceilingAt(boundsOf(ramp), atMs)
  // With nothing accepted there is no level to hold: the first call that is accepted makes it.
  const targetTokens = Math.max(1, Math.min(tokens, low))
  return { ...noPlan, kind: 'hold', tokens, tryAtMs: boundaryAfter(atMs, 2), refusals, targetTokens }
}

/** Silence until the minute just used has emptied as far as the ceiling that it showed wants, or, refused then, for good. */
const hushPlan = ({ ramp, refusal, refusals }: Step): RampPlan => {
  const { tokens, atMs } = refusal
  const targetTokens = trailing(ramp.accepted, atMs)
  const { low } = ceilingAt(boundsOf(ramp), atMs)
  const leftTokens = ramp.plan === null ? Math.max(0, low - tokens) : 0
  const tryAtMs = Math.max(atMs + 1, fallsTo(ramp.slots, leftTokens, atMs))
  return { ...noPlan, kind: 'hush', tokens, tryAtMs, refusals, targetTokens }
}

const adaptivePlan = (step: Step): RampPlan => {
  const { ramp, refusal } = step
  const { tokens, atMs, statedLimit, trailingTokens } = refusal
  const { plan, growth } = ramp
  if (statedBoundaries(refusal, tokens) !== null && tokens > (statedLimit ?? 0)) return backfillPlan(step)
  if (plan?.kind === 'quiet' && atMs < plan.quietUntilMs) return quietPlan(step)
  const silent = trailingTokens <= silence * tokens
  if (growth.kind === 'withTime' && step.refusals <= mostSeenTries) return backfillPlan(step)
  if (silent || (plan !== null && plan.kind !== 'hush')) return buildPlan(step)
  if (growth.kind !== 'withUse') return plan === null ? quietPlan(step) : buildPlan(step)
  // Silence alone would let it fall: it helps once, after a minute that was full enough.
  const emptyMs = fallsTo(ramp.slots, 0, atMs)
  const lifted = between(ramp.accepted, emptyMs - 2 * minuteMs, emptyMs - minuteMs) * factorAt(ramp)
  return lifted >= tokens ? hushPlan(step) : buildPlan(step)
}

const planOf = {
  quiet: quietPlan,
  holdSteady: holdPlan,
  stepUp: buildPlan,
  backfill: backfillPlan,
  adaptive: adaptivePlan,
} as const

/** The next step for a primary that was refused just now (its refusal is `ramp.refusal`). */
export const planNextTry = (ramp: Ramp, bounds: RampBounds): Ramp => {
  const { refusal, plan } = ramp
  if (refusal === null) return ramp
  const step = { ramp, refusal, bounds, refusals: (plan?.refusals ?? 0) + 1 }
  return { ...ramp, plan: planOf[bounds.strategy](step) }
}
