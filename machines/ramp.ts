/**
 * How a call that is larger than the provider's present input-token ceiling gets in. The rule
 * behind a ceiling is not public: it may refill, grow with time, or grow with use. So the ramp keeps
 * what was accepted and refused, and plans one step at a time for the primary at the head:
 *
 * 1. `quiet`: nobody sends until the trailing minute has emptied. Enough for a refilling bucket.
 * 2. `backfill`: refused though nobody had sent: quiet cannot help. Auxiliaries run until a minute
 *    boundary (the one at which stated ceilings say that it fits, else the next) and it is tried then.
 * 3. `build`: auxiliaries use what the ceiling takes, so that a ceiling that follows use rises; at
 *    every second minute boundary it is tried in passing, for a ceiling that rises with time.
 * 4. `hush`: a minute was used that should lift the ceiling far enough; nobody sends for exactly
 *    the window that must be empty, then it is tried.
 */
import type { Evidence } from './evidence.ts'

const minuteMs = 60_000
const keptMs = 2 * minuteMs

interface Slot {
  /** Epoch second. */
  readonly second: number
  readonly tokens: number
}

export interface Refusal {
  readonly atMs: number
  /** Input tokens of the refused call. */
  readonly tokens: number
  /** Input tokens dispatched in the minute before it. */
  readonly trailingTokens: number
  /** The ceiling that the provider stated; null when it stated none. */
  readonly statedLimit: number | null
  /** The ceiling that it announced for the next minute boundary. */
  readonly statedNextLimit: number | null
}

/** What is done until the head primary is tried next. */
export interface RampPlan {
  readonly kind: 'quiet' | 'backfill' | 'build' | 'hush'
  /** Input tokens of the primary that it was made for; it says nothing about a smaller one. */
  readonly tokens: number
  /** When the primary is tried, epoch milliseconds. */
  readonly tryAtMs: number
  /** Refusals of this primary so far. */
  readonly refusals: number
  /** `build`, `hush`: accepted tokens of one minute that should lift the ceiling far enough. */
  readonly targetTokens: number
  /** `quiet`: when the window ends in which quiet is hoped to help, epoch milliseconds. */
  readonly quietUntilMs: number
}

export interface Ramp {
  /** Dispatched input tokens by second, refused ones taken out again. */
  readonly slots: ReadonlyArray<Slot>
  /** Accepted input tokens by second of their dispatch. */
  readonly accepted: ReadonlyArray<Slot>
  /** The last token or acceleration refusal that still says something; null when none does. */
  readonly refusal: Refusal | null
  /** For the head primary, after it was refused; null when nothing says that it does not fit. */
  readonly plan: RampPlan | null
  /** Most input tokens that were ever accepted within a minute: the ceiling was at least this. */
  readonly highestAccepted: number
  /** When input tokens were last dispatched, epoch milliseconds. */
  readonly lastUseMs: number
  /** Refusals of calls that were dispatched before this answer older knowledge. */
  readonly epochMs: number
}

export const emptyRamp: Ramp = {
  slots: [],
  accepted: [],
  refusal: null,
  plan: null,
  highestAccepted: 0,
  lastUseMs: 0,
  epochMs: 0,
}

/** Growth per minute that is hoped for before any was seen. */
const hopedGrowth = 1.3
/** A probe that fails asks for a minute that is so much fuller. */
const targetStep = 1.15
/** Less than this share of the call in the trailing minute counts as silence. */
const silence = 0.05

const secondOf = (atMs: number): number => Math.floor(atMs / 1000)

const trailing = (slots: ReadonlyArray<Slot>, atMs: number): number => {
  const since = secondOf(atMs - minuteMs)
  let sum = 0
  for (let index = slots.length - 1; index >= 0; index -= 1) {
    const slot = slots[index] as Slot
    if (slot.second <= since) break
    sum += slot.tokens
  }
  return sum
}

/** Input tokens dispatched in the minute before `atMs`, less those that were refused. */
export const trailingTokens = (ramp: Ramp, atMs: number): number => trailing(ramp.slots, atMs)

/** `slots` with `tokens` more in the second of `atMs`, without what is older than is kept at `nowMs`. */
const added = (slots: ReadonlyArray<Slot>, tokens: number, atMs: number, nowMs: number): Slot[] => {
  const second = secondOf(atMs)
  const kept = slots.filter((slot) => slot.second > secondOf(nowMs) - keptMs / 1000)
  let index = kept.length
  while (index > 0 && kept[index - 1]!.second > second) index -= 1
  const here = kept[index - 1]
  if (here?.second === second) kept[index - 1] = { second, tokens: Math.max(0, here.tokens + tokens) }
  else if (tokens > 0) kept.splice(index, 0, { second, tokens })
  return kept
}

/** Adds the tokens of a call that was dispatched at `dispatchedAtMs` (negative: gives them back, or corrects an estimate). */
export const use = (ramp: Ramp, tokens: number, dispatchedAtMs: number, atMs: number): Ramp => {
  if (tokens === 0) return ramp
  const lastUseMs = tokens > 0 ? Math.max(ramp.lastUseMs, dispatchedAtMs) : ramp.lastUseMs
  return { ...ramp, slots: added(ramp.slots, tokens, dispatchedAtMs, atMs), lastUseMs }
}

/** A call was accepted: the ceiling is at least what was accepted within its minute. */
export const acceptedUnder = (ramp: Ramp, tokens: number, dispatchedAtMs: number, atMs: number): Ramp => {
  const accepted = added(ramp.accepted, tokens, dispatchedAtMs, atMs)
  const highestAccepted = Math.max(ramp.highestAccepted, trailing(accepted, dispatchedAtMs))
  const refusal = ramp.refusal !== null && tokens >= ramp.refusal.tokens ? null : ramp.refusal
  const plan = ramp.plan !== null && tokens >= ramp.plan.tokens ? null : ramp.plan
  return { ...ramp, accepted, highestAccepted, refusal, plan }
}

const tokenKinds: ReadonlySet<Evidence['kind']> = new Set([
  'acceleration',
  'input-tokens-per-minute',
  'tokens-per-minute',
  'unknown-rate-limit',
])

export interface RefusedCall {
  readonly tokens: number
  readonly evidence: Evidence
  readonly atMs: number
  /** When it was granted: evidence of calls from before the last refusal is late. */
  readonly dispatchedAtMs: number
}

/** A call was refused for its tokens: the ceiling is below the last minute's use plus this call. */
export const refusedUnder = (ramp: Ramp, { tokens, evidence, atMs, dispatchedAtMs }: RefusedCall): Ramp => {
  if (!tokenKinds.has(evidence.kind) || dispatchedAtMs < ramp.epochMs) return ramp
  const { currentLimit, nextLimit, limit } = evidence.facts
  const refusal: Refusal = {
    atMs,
    tokens,
    trailingTokens: trailingTokens(ramp, atMs),
    statedLimit: currentLimit ?? limit ?? null,
    statedNextLimit: nextLimit ?? null,
  }
  return { ...ramp, epochMs: atMs, refusal }
}

export interface RampBounds {
  readonly strategy: 'quiet' | 'holdSteady' | 'stepUp' | 'backfill' | 'adaptive'
  readonly quietWindowMs: number
}

const boundaryAfter = (atMs: number, minutes: number): number =>
  (Math.floor(atMs / minuteMs) + Math.max(1, minutes)) * minuteMs

/** Minute boundaries until the stated ceilings reach `tokens`, were they to go on by the same step; null when they do not say. */
const boundariesToFit = ({ statedLimit, statedNextLimit }: Refusal, tokens: number): number | null => {
  if (statedLimit === null || statedNextLimit === null || statedNextLimit <= statedLimit) return null
  return Math.ceil((tokens - statedLimit) / (statedNextLimit - statedLimit))
}

/** Epoch milliseconds at which the trailing minute has fallen to `tokens` or less, without further use. */
const fallsTo = (ramp: Ramp, tokens: number, atMs: number): number => {
  let sum = trailingTokens(ramp, atMs)
  if (sum <= tokens) return atMs
  const since = Math.floor((atMs - minuteMs) / 1000)
  for (const slot of ramp.slots) {
    if (slot.second <= since) continue
    sum -= slot.tokens
    if (sum <= tokens) return (slot.second + 1) * 1000 + minuteMs
  }
  return atMs
}

const noPlan = { targetTokens: 0, quietUntilMs: 0 }

/** Tries within one quiet window: each costs a refusal at most, and a refilling limit may hold the call long before its end. */
const quietTries = 4

const quietPlan = (
  ramp: Ramp,
  refusal: Refusal,
  { quietWindowMs }: RampBounds,
  refusals: number,
): RampPlan => {
  const { atMs, tokens, statedLimit, trailingTokens } = refusal
  const before = ramp.plan?.kind === 'quiet' && atMs < ramp.plan.quietUntilMs ? ramp.plan : null
  const quietUntilMs = before?.quietUntilMs ?? atMs + quietWindowMs
  // A stated ceiling says how far the trailing minute has to empty.
  const stated = statedLimit !== null && statedLimit >= tokens && trailingTokens > statedLimit - tokens
  const tryAtMs = stated
    ? Math.min(quietUntilMs, fallsTo(ramp, statedLimit - tokens, atMs))
    : Math.min(quietUntilMs, atMs + Math.max(1, Math.ceil(quietWindowMs / quietTries)))
  return { ...noPlan, kind: 'quiet', tokens, tryAtMs, refusals, quietUntilMs }
}

const backfillPlan = (refusal: Refusal, { quietWindowMs }: RampBounds, refusals: number): RampPlan => {
  const { tokens, atMs } = refusal
  const boundaries = boundariesToFit(refusal, tokens)
  const tryAtMs =
    boundaries === null
      ? Math.min(boundaryAfter(atMs, 1), atMs + quietWindowMs)
      : boundaryAfter(atMs, boundaries)
  return { ...noPlan, kind: 'backfill', tokens, tryAtMs, refusals }
}

const buildPlan = ({ atMs, tokens }: Refusal, before: RampPlan | null, refusals: number): RampPlan => {
  const hoped = Math.ceil(tokens / hopedGrowth)
  // The hush that led here was not enough: next time the minute before it must be fuller.
  const raised =
    before?.kind === 'hush' ? Math.ceil(before.targetTokens * targetStep) : (before?.targetTokens ?? 0)
  const targetTokens = Math.min(tokens, Math.max(hoped, raised))
  return { ...noPlan, kind: 'build', tokens, tryAtMs: boundaryAfter(atMs, 2), refusals, targetTokens }
}

/** The next step for a primary that was refused just now (its refusal is `ramp.refusal`). */
export const replan = (ramp: Ramp, bounds: RampBounds): Ramp => {
  const { refusal, plan } = ramp
  if (refusal === null) return ramp
  const refusals = (plan?.refusals ?? 0) + 1
  return { ...ramp, plan: nextPlan(ramp, refusal, bounds, refusals) }
}

const nextPlan = (ramp: Ramp, refusal: Refusal, bounds: RampBounds, refusals: number): RampPlan => {
  const before = ramp.plan
  const silent = refusal.trailingTokens <= silence * refusal.tokens
  switch (bounds.strategy) {
    case 'quiet':
      return quietPlan(ramp, refusal, bounds, refusals)
    case 'holdSteady':
    case 'backfill':
      return backfillPlan(refusal, bounds, refusals)
    case 'stepUp':
      return buildPlan(refusal, before, refusals)
    case 'adaptive':
      if (boundariesToFit(refusal, refusal.tokens) !== null && refusal.tokens > (refusal.statedLimit ?? 0)) {
        return backfillPlan(refusal, bounds, refusals)
      }
      if (before === null && !silent) return quietPlan(ramp, refusal, bounds, refusals)
      if (before?.kind === 'quiet' && refusal.atMs < before.quietUntilMs)
        return quietPlan(ramp, refusal, bounds, refusals)
      if (before === null || before.kind === 'quiet') return backfillPlan(refusal, bounds, refusals)
      return buildPlan(refusal, before, refusals)
  }
}

/** Looks whether a build has reached its target; called whenever the scope looks at its head primary. */
export const review = (ramp: Ramp, atMs: number): Ramp => {
  const { plan } = ramp
  if (plan?.kind !== 'build' || trailing(ramp.accepted, atMs) < plan.targetTokens) return ramp
  // The whole of a second must have left the window.
  return {
    ...ramp,
    plan: { ...plan, kind: 'hush', tryAtMs: (Math.floor(ramp.lastUseMs / 1000) + 1) * 1000 + minuteMs },
  }
}

/** Whether auxiliaries may run while the head primary waits for its ceiling, and as what. */
export const warmth = ({ plan }: Ramp, atMs: number): 'warm-up' | 'backfill' | null => {
  if (plan === null || atMs >= plan.tryAtMs) return null
  if (plan.kind === 'build') return 'warm-up'
  return plan.kind === 'backfill' ? 'backfill' : null
}

/**
 * When a call of `tokens` should be tried, epoch milliseconds; `atMs` when nothing known says that
 * it will not fit. A refusal of another call bounds the ceiling from above for one quiet window.
 */
export const tryAt = (ramp: Ramp, tokens: number, quietWindowMs: number, atMs: number): number => {
  const { refusal, plan } = ramp
  if (plan !== null && tokens >= plan.tokens) return Math.max(atMs, plan.tryAtMs)
  if (refusal === null || plan !== null || tokens < refusal.tokens) return atMs
  const ceiling = refusal.trailingTokens + refusal.tokens
  return Math.max(atMs, Math.min(refusal.atMs + quietWindowMs, fallsTo(ramp, ceiling - tokens, atMs)))
}
