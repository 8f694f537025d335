/**
 * What is known of the provider's input-token ceiling, and how a call that is larger than the present
 * one gets in. The rule behind a ceiling is not public: it may refill, grow with time, or grow with
 * use. So the ramp keeps what was accepted and refused (`ceiling.ts` names the growth that follows),
 * and plans one step at a time for the primary at the head (`ramp-plan.ts`).
 */

import {
  added,
  between,
  fallsTo,
  leavesAt,
  minuteMs,
  type Slots,
  trailing,
} from '../collections/usage-window.ts'
import type { Evidence } from '../model/evidence.ts'
import {
  edgeMs,
  type Growth,
  growthOf,
  keptMinutes,
  type MinuteBounds,
  minuteBounds,
  minuteOf,
  unknownGrowth,
  withRefusal,
} from './ceiling.ts'

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

export const planKinds = ['quiet', 'backfill', 'build', 'hold', 'hush'] as const

/** What is done until the head primary is tried next. */
export interface RampPlan {
  readonly kind: (typeof planKinds)[number]
  /** Input tokens of the primary that it was made for; it says nothing about a smaller one. */
  readonly tokens: number
  /** When the primary is tried, epoch milliseconds. */
  readonly tryAtMs: number
  /** Refusals of this primary so far. */
  readonly refusals: number
  /** `build`, `hold`, `hush`: accepted tokens of one minute after which silence is kept for the primary. */
  readonly targetTokens: number
  /** `quiet`: when the window ends in which quiet is hoped to help, epoch milliseconds. */
  readonly quietUntilMs: number
}

export interface Ramp {
  /** Dispatched input tokens by second, refused ones taken out again. */
  readonly slots: Slots
  /** Accepted input tokens by second of their dispatch. */
  readonly accepted: Slots
  /** Bounds of the ceiling by minute, oldest first; those of the last two are still to be read off `accepted`. */
  readonly minutes: ReadonlyArray<MinuteBounds>
  /** Newest minute whose accepted tokens `minutes` holds, epoch minutes. */
  readonly closedMinute: number
  /** How the ceiling grows, by the last evidence that told. */
  readonly growth: Growth
  /** The last token or acceleration refusal that still says something; null when none does. */
  readonly refusal: Refusal | null
  /** Least use, the refused call included, that was refused since the ceiling may last have changed, and since when. */
  readonly refusedUse: { readonly tokens: number; readonly atMs: number } | null
  /** For the head primary, after it was refused; null when nothing says that it does not fit. */
  readonly plan: RampPlan | null
  /** Most input tokens that were ever accepted within a minute: the ceiling was at least this. */
  readonly highestAccepted: number
  /** Refusals of calls that were dispatched before this answer older knowledge. */
  readonly epochMs: number
}

export const emptyRamp: Ramp = {
  slots: [],
  accepted: [],
  minutes: [],
  closedMinute: 0,
  growth: unknownGrowth,
  refusal: null,
  refusedUse: null,
  plan: null,
  highestAccepted: 0,
  epochMs: 0,
}

/** Input tokens dispatched in the minute before `atMs`, less those that were refused. */
export const trailingTokens = (ramp: Ramp, atMs: number): number => trailing(ramp.slots, atMs)

/** Adds the tokens of a call that was dispatched at `dispatchedAtMs` (negative: gives them back). */
export const use = (ramp: Ramp, tokens: number, dispatchedAtMs: number, atMs: number): Ramp =>
  tokens === 0 ? ramp : { ...ramp, slots: added(ramp.slots, tokens, dispatchedAtMs, atMs) }

/** Corrects the estimate of an accepted call by what it turned out to use. */
export const corrected = (ramp: Ramp, tokens: number, dispatchedAtMs: number, atMs: number): Ramp =>
  tokens === 0
    ? ramp
    : {
        ...ramp,
        slots: added(ramp.slots, tokens, dispatchedAtMs, atMs),
        accepted: added(ramp.accepted, tokens, dispatchedAtMs, atMs),
      }

/** The bounds of all minutes that are known of, the running one included, oldest first. */
export const boundsOf = ({ accepted, minutes, closedMinute }: Ramp): ReadonlyArray<MinuteBounds> => {
  const open = new Map<number, MinuteBounds | undefined>()
  for (const { second } of accepted) open.set(Math.floor(second / 60), undefined)
  for (const row of minutes) open.set(row.minute, row)
  return [...open]
    .sort(([one], [other]) => one - other)
    .flatMap(([minute, row]) => {
      const bounds = minute > closedMinute ? minuteBounds(accepted, minute, row) : row
      return bounds === undefined ? [] : [bounds]
    })
    .slice(-keptMinutes)
}

/** Once a minute: what was accepted in a minute is written down when hardly anybody can add to it any more. */
const closed = (ramp: Ramp, atMs: number): Ramp => {
  const closedMinute = minuteOf(atMs) - 2
  if (closedMinute <= ramp.closedMinute) return ramp
  const minutes = boundsOf(ramp)
  return { ...ramp, closedMinute, minutes, growth: growthOf(minutes, ramp.growth) }
}

/** A call was accepted: the ceiling is at least what was accepted within its minute. */
export const acceptedUnder = (before: Ramp, tokens: number, dispatchedAtMs: number, atMs: number): Ramp => {
  const ramp = closed(before, atMs)
  const accepted = added(ramp.accepted, tokens, dispatchedAtMs, atMs)
  const within = between(accepted, dispatchedAtMs - minuteMs, dispatchedAtMs)
  const highestAccepted = Math.max(ramp.highestAccepted, within)
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

/** A number that a provider stated may be anything finite. */
const wholeTokens = (stated: number | undefined): number | null =>
  stated === undefined ? null : Math.min(Math.floor(stated), Number.MAX_SAFE_INTEGER - 1)

/** A call was refused for its tokens: the ceiling is below the last minute's use plus this call. */
export const refusedUnder = (before: Ramp, { tokens, evidence, atMs, dispatchedAtMs }: RefusedCall): Ramp => {
  if (!tokenKinds.has(evidence.kind) || dispatchedAtMs < before.epochMs) return before
  const ramp = closed(before, atMs)
  const { currentLimit, nextLimit, limit } = evidence.facts
  const used = trailingTokens(ramp, atMs)
  const statedLimit = wholeTokens(currentLimit ?? limit)
  const refusal: Refusal = {
    atMs,
    tokens,
    trailingTokens: used,
    statedLimit,
    statedNextLimit: wholeTokens(nextLimit),
  }
  const bound = Math.min(used + tokens, statedLimit === null ? Number.POSITIVE_INFINITY : statedLimit + 1)
  const still = refusedUseAt(ramp, atMs)
  return {
    ...ramp,
    epochMs: atMs,
    refusal,
    refusedUse: still !== null && still <= bound ? ramp.refusedUse : { tokens: bound, atMs },
    minutes: withRefusal(ramp.minutes, {
      tokens: bound,
      beforeTokens: between(ramp.accepted, atMs - 2 * minuteMs + edgeMs, atMs - minuteMs - edgeMs),
      statedTokens: statedLimit,
      atMs,
    }),
  }
}

/** A ceiling that refills does so all the time: after so long a refusal says nothing of it any more. */
const refusedForMs = 15_000

/** When the ceiling may have changed after a refusal at `atMs`: at a minute boundary, or when use leaves the last minute. */
export const changesAt = ({ accepted }: Ramp, atMs: number): number =>
  Math.min((minuteOf(atMs) + 1) * minuteMs, leavesAt(accepted, atMs), atMs + refusedForMs)

/** Use of a minute that is known to be refused at present; null when nothing is. */
export const refusedUseAt = (ramp: Ramp, atMs: number): number | null =>
  ramp.refusedUse === null || atMs >= changesAt(ramp, ramp.refusedUse.atMs) ? null : ramp.refusedUse.tokens

/** Looks whether enough was used to keep silent for the head primary; called whenever the scope looks at it. */
export const review = (ramp: Ramp, atMs: number): Ramp => {
  const { plan } = ramp
  if (plan === null || !usesCeiling(plan) || trailing(ramp.accepted, atMs) < plan.targetTokens) return ramp
  return { ...ramp, plan: { ...plan, kind: 'hush', tryAtMs: fallsTo(ramp.slots, 0, atMs) } }
}

const usesCeiling = ({ kind }: RampPlan): boolean => kind === 'build' || kind === 'hold'

/** Whether auxiliaries may run while the head primary waits for its ceiling, and as what. */
export const warmth = ({ plan }: Ramp, atMs: number): 'warm-up' | 'backfill' | null => {
  if (plan === null || atMs >= plan.tryAtMs) return null
  if (usesCeiling(plan)) return 'warm-up'
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
  return Math.max(atMs, Math.min(refusal.atMs + quietWindowMs, fallsTo(ramp.slots, ceiling - tokens, atMs)))
}
