/**
 * What is known of the provider's input-token ceiling: bounds of it in each of the last minutes, and
 * what they say of how it grows. Accepted tokens of a minute are a lower bound, a refusal at known
 * use is an upper one. Three rules are held against the bounds, each with one free number:
 *
 * - it stays as it is, and refills: what was saved up can be used once on top of each minute's;
 * - it grows with time: by so many tokens a minute, and never falls while there is use;
 * - it grows with use: to so many times what was used in the minute before, from a floor.
 *
 * A growth is named when the bounds contradict the other rules; while two of them hold it is unknown.
 */
import { between, minuteMs, type Slots } from '../collections/usage-window.ts'

export interface MinuteBounds {
  /** Epoch minute. */
  readonly minute: number
  /** Input tokens accepted of what was dispatched in it: its ceiling was at least this. */
  readonly acceptedTokens: number
  /** Accepted in the minute that ended 60 s before the last of these. */
  readonly acceptedBeforeTokens: number
  /** By its tightest refusal its ceiling was below this; null when none was refused. */
  readonly refusedTokens: number | null
  /** Accepted in the minute that ended 60 s before that refusal. */
  readonly refusedBeforeTokens: number
  /** The ceiling that it stated; null when it stated none. */
  readonly statedTokens: number | null
}

export const growthKinds = ['unknown', 'none', 'withTime', 'withUse'] as const
export type GrowthKind = (typeof growthKinds)[number]

export interface Growth {
  readonly kind: GrowthKind
  /** `withUse`: the ceiling as a multiple of what was used in the minute before; else null. */
  readonly factor: number | null
  /** `withTime`: what each minute adds, tokens; else null. */
  readonly tokensPerMinute: number | null
}

export const unknownGrowth: Growth = { kind: 'unknown', factor: null, tokensPerMinute: null }

/** Minutes that are kept. */
export const keptMinutes = 12
/** Seconds are counted whole and usage is estimated: bounds that overlap by no more than this share contradict nothing. */
const tolerance = 0.03
/** After so many minutes without use a ceiling that grows with time may begin anew. */
const idleMinutes = 3
/** A growth below this share a minute is none. */
const negligible = 0.05

/** Slots are whole seconds: so much at either end of a window may lie in it or not, and bounds take the side that proves less. */
export const edgeMs = 1_000

export const minuteOf = (atMs: number): number => Math.floor(atMs / minuteMs)

/** The bounds of a minute by what was accepted in it; `before` holds its refusals, when there were any. */
export const minuteBounds = (accepted: Slots, minute: number, before?: MinuteBounds): MinuteBounds => {
  const [fromMs, toMs] = [minute * minuteMs - 1, (minute + 1) * minuteMs - 1]
  const within = accepted.filter(({ second, tokens }) => tokens > 0 && Math.floor(second / 60) === minute)
  const lastMs = (within.at(-1)?.second ?? 0) * 1000
  return {
    minute,
    acceptedTokens: between(accepted, fromMs, toMs),
    acceptedBeforeTokens: between(accepted, lastMs - 2 * minuteMs - edgeMs, lastMs - minuteMs + edgeMs),
    refusedTokens: before?.refusedTokens ?? null,
    refusedBeforeTokens: before?.refusedBeforeTokens ?? 0,
    statedTokens: before?.statedTokens ?? null,
  }
}

export interface RefusalBounds {
  /** The ceiling was below this: use of the minute before it with the refused call, or what was stated, and one more. */
  readonly tokens: number
  /** Accepted in the minute that ended 60 s before it. */
  readonly beforeTokens: number
  readonly statedTokens: number | null
  readonly atMs: number
}

/** `minutes` with what a refusal says of its own. */
export const withRefusal = (
  minutes: ReadonlyArray<MinuteBounds>,
  { tokens, beforeTokens, statedTokens, atMs }: RefusalBounds,
): ReadonlyArray<MinuteBounds> => {
  const minute = minuteOf(atMs)
  const last = minutes.at(-1)
  const row = last?.minute === minute ? last : minuteBounds([], minute)
  if (row.refusedTokens !== null && row.refusedTokens <= tokens) return minutes
  const next = { ...row, refusedTokens: tokens, refusedBeforeTokens: beforeTokens, statedTokens }
  return [...(row === last ? minutes.slice(0, -1) : minutes), next].slice(-keptMinutes)
}

export interface Range {
  /** At least. */
  low: number
  /** Below. */
  high: number
}

const holds = ({ low, high }: Range): boolean => low * (1 - tolerance) < high

/** What its ceiling was at least. */
const heldIn = ({ acceptedTokens, statedTokens }: MinuteBounds): number =>
  Math.max(acceptedTokens, statedTokens ?? 0)

const refusedIn = ({ refusedTokens }: MinuteBounds): number => refusedTokens ?? Number.POSITIVE_INFINITY

/** What was used grew from nothing by no factor at all; a call of no tokens tells nothing. */
const ratio = (tokens: number, before: number): number =>
  before === 0 ? (tokens === 0 ? 1 : Number.POSITIVE_INFINITY) : tokens / before

/** The factors that growth with use would need to give these bounds. */
export const factorOf = (rows: ReadonlyArray<MinuteBounds>): Range => {
  // The floor is below whatever was refused: what was accepted above that came of use.
  const floorBelow = Math.min(...rows.map(refusedIn))
  const range = { low: 1, high: Number.POSITIVE_INFINITY }
  for (const row of rows) {
    if (row.acceptedTokens * (1 - tolerance) >= floorBelow)
      range.low = Math.max(range.low, ratio(row.acceptedTokens, row.acceptedBeforeTokens))
    if ((row.statedTokens ?? 0) * (1 - tolerance) >= floorBelow)
      range.low = Math.max(range.low, ratio(row.statedTokens ?? 0, row.refusedBeforeTokens))
    const refused = row.refusedTokens ?? 0
    if (refused > 0) range.high = Math.min(range.high, ratio(refused, row.refusedBeforeTokens))
  }
  return range
}

/** Whether nothing was used for so long between two minutes that a climb may have begun anew. */
const idleBetween = (rows: ReadonlyArray<MinuteBounds>, from: MinuteBounds, to: MinuteBounds): boolean => {
  let lastUsed = from.minute
  for (const { minute, acceptedTokens } of rows) {
    if (minute <= from.minute || minute >= to.minute || acceptedTokens === 0) continue
    if (minute - lastUsed > idleMinutes) return true
    lastUsed = minute
  }
  return to.minute - lastUsed > idleMinutes
}

/** The tokens a minute that growth with time would need to give these bounds. */
const rateOf = (rows: ReadonlyArray<MinuteBounds>): Range => {
  const range = { low: 0, high: Number.POSITIVE_INFINITY }
  rows.forEach((from, index) => {
    for (const to of rows.slice(index + 1)) {
      if (idleBetween(rows, from, to)) continue
      const minutes = to.minute - from.minute
      range.low = Math.max(range.low, (heldIn(to) - refusedIn(from)) / minutes)
      // A climb may begin only with the first use.
      if (from.acceptedTokens === 0) continue
      range.high = Math.min(range.high, (refusedIn(to) * (1 + tolerance) - heldIn(from)) / minutes)
    }
  })
  return range
}

/** Whether a limit that only refills could have taken what was accepted: in so many minutes so many times itself, and once more what was saved up. */
const refills = (rows: ReadonlyArray<MinuteBounds>, below: number): boolean => {
  let [sum, minutes, last] = [0, 0, Number.NaN]
  for (const row of rows) {
    if ((row.statedTokens ?? 0) * (1 - tolerance) >= below) return false
    // The run that began with nothing saved up bounds it best.
    const goesOn = row.minute === last + 1 && sum > minutes * below
    ;[sum, minutes] = goesOn ? [sum + row.acceptedTokens, minutes + 1] : [row.acceptedTokens, 1]
    if (sum * (1 - tolerance) >= (minutes + 1) * below) return false
    last = row.minute
  }
  return true
}

const middle = ({ low, high }: Range): number => (Number.isFinite(high) ? (low + high) / 2 : low)

/** What the bounds of successive minutes (oldest first) say; `before` where they tell nothing new. */
export const growthOf = (rows: ReadonlyArray<MinuteBounds>, before: Growth = unknownGrowth): Growth => {
  const least = Math.min(...rows.map(refusedIn))
  if (!Number.isFinite(least)) return before
  const factor = factorOf(rows)
  const rate = rateOf(rows)
  if (refills(rows, least)) {
    const stays = factor.high < 1 + negligible && rate.high < negligible * least
    return stays ? { ...unknownGrowth, kind: 'none' } : before
  }
  const [withUse, withTime] = [holds(factor), holds(rate)]
  if (withUse && withTime) return before.kind === 'none' ? unknownGrowth : before
  if (withUse) return { kind: 'withUse', factor: middle(factor), tokensPerMinute: null }
  if (withTime) return { kind: 'withTime', factor: null, tokensPerMinute: middle(rate) }
  return unknownGrowth
}

export interface CeilingInterval {
  /** At least, input tokens per minute. */
  readonly low: number
  /** Below; null when nothing was refused. */
  readonly high: number | null
}

/** The ceiling of now, by the newest minutes that bound it from both sides without contradiction. */
export const ceilingAt = (rows: ReadonlyArray<MinuteBounds>, atMs: number): CeilingInterval => {
  let [low, high] = [0, Number.POSITIVE_INFINITY]
  for (const row of rows.toReversed()) {
    // What is older says less with every minute.
    if (minuteOf(atMs) - row.minute > 2) break
    if (Math.max(low, heldIn(row)) >= Math.min(high, refusedIn(row))) break
    low = Math.max(low, heldIn(row))
    high = Math.min(high, refusedIn(row))
  }
  return { low, high: Number.isFinite(high) ? high : null }
}
