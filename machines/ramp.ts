/**
 * What the scope knows of the provider's input-token ceiling, from what was accepted and refused.
 * Input tokens are counted per second over two trailing minutes.
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

export interface Ramp {
  readonly slots: ReadonlyArray<Slot>
  /** The last token or acceleration refusal that still says something; null when none does. */
  readonly refusal: Refusal | null
  /** Most input tokens that were ever accepted within a minute: the ceiling was at least this. */
  readonly highestAccepted: number
  /** Refusals before this instant were answered to calls dispatched under older knowledge. */
  readonly epochMs: number
}

export const emptyRamp: Ramp = { slots: [], refusal: null, highestAccepted: 0, epochMs: 0 }

/** Input tokens of the minute before `atMs`. */
export const trailingTokens = (ramp: Ramp, atMs: number): number => {
  const since = Math.floor((atMs - minuteMs) / 1000)
  let sum = 0
  for (let index = ramp.slots.length - 1; index >= 0; index -= 1) {
    const slot = ramp.slots[index] as Slot
    if (slot.second <= since) break
    sum += slot.tokens
  }
  return sum
}

/** Adds the tokens of a dispatch (negative: gives them back, or corrects an estimate). */
export const use = (ramp: Ramp, tokens: number, atMs: number): Ramp => {
  if (tokens === 0) return ramp
  const second = Math.floor(atMs / 1000)
  const slots = ramp.slots.filter((slot) => slot.second > second - keptMs / 1000)
  const last = slots.at(-1)
  if (last !== undefined && last.second >= second) {
    slots[slots.length - 1] = { second: last.second, tokens: Math.max(0, last.tokens + tokens) }
  } else if (tokens > 0) slots.push({ second, tokens })
  return { ...ramp, slots }
}

/** A call was accepted: the ceiling is at least what the last minute used. */
export const acceptedUnder = (ramp: Ramp, tokens: number, atMs: number): Ramp => {
  const highestAccepted = Math.max(ramp.highestAccepted, trailingTokens(ramp, atMs))
  const refuted = ramp.refusal !== null && tokens >= ramp.refusal.tokens
  return highestAccepted === ramp.highestAccepted && !refuted
    ? ramp
    : { ...ramp, highestAccepted, refusal: refuted ? null : ramp.refusal }
}

const tokenKinds: ReadonlySet<Evidence['kind']> = new Set([
  'acceleration',
  'input-tokens-per-minute',
  'tokens-per-minute',
  'unknown-rate-limit',
])

/** A call was refused: the ceiling is below the last minute's use plus this call. */
export const refusedUnder = (
  ramp: Ramp,
  {
    tokens,
    evidence,
    atMs,
    dispatchedAtMs,
  }: { tokens: number; evidence: Evidence; atMs: number; dispatchedAtMs: number },
): Ramp => {
  if (!tokenKinds.has(evidence.kind) || dispatchedAtMs < ramp.epochMs) return ramp
  const { currentLimit, nextLimit, limit } = evidence.facts
  return {
    ...ramp,
    epochMs: atMs,
    refusal: {
      atMs,
      tokens,
      trailingTokens: trailingTokens(ramp, atMs),
      statedLimit: currentLimit ?? limit ?? null,
      statedNextLimit: nextLimit ?? null,
    },
  }
}

/** Epoch milliseconds at which the trailing minute has fallen to `tokens` or less, without further use. */
const fallsTo = (ramp: Ramp, tokens: number, atMs: number): number => {
  let sum = trailingTokens(ramp, atMs)
  for (const slot of ramp.slots) {
    if (sum <= tokens) break
    if (slot.second > Math.floor((atMs - minuteMs) / 1000)) {
      sum -= slot.tokens
      if (sum <= tokens) return slot.second * 1000 + minuteMs
    }
  }
  return atMs
}

const nextMinute = (atMs: number): number => (Math.floor(atMs / minuteMs) + 1) * minuteMs

/**
 * When a call of `tokens` should be tried, epoch milliseconds; `atMs` when nothing known says that
 * it will not fit. Never later than `quietWindowMs` after the last refusal: quiet is bounded.
 */
export const tryAt = (ramp: Ramp, tokens: number, quietWindowMs: number, atMs: number): number => {
  const { refusal } = ramp
  if (refusal === null || tokens < refusal.tokens) return atMs
  const latest = refusal.atMs + quietWindowMs
  if (refusal.statedLimit !== null) {
    if (tokens <= refusal.statedLimit)
      return Math.min(latest, fallsTo(ramp, refusal.statedLimit - tokens, atMs))
    if (refusal.statedNextLimit !== null && tokens <= refusal.statedNextLimit) return nextMinute(refusal.atMs)
  }
  return latest
}
