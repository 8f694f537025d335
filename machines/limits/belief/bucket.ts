/**
 * The hypothesis of a token bucket: it refills at a rate up to a burst, and a call is accepted while
 * the bucket holds it. Rate, burst and level are each known between two bounds, with a best guess
 * between these. `bucket-answers.ts` learns them from answers, `bucket-statements.ts` from what the provider states.
 */
import type { Anchor } from './anchors.ts'

export interface Bucket {
  /** What was sent up to then was never counted in the levels, epoch milliseconds. */
  readonly beganAtMs: number
  /** The levels hold at this time, epoch milliseconds; 0: nothing is known yet. */
  readonly atMs: number
  /** Tokens held: at least, by the best guess, at most. Negative in debt. */
  readonly low: number
  readonly middle: number
  readonly high: number
  /** Refill, tokens a millisecond. */
  readonly rateLow: number
  readonly rateHigh: number
  /** The most it holds. */
  readonly burstLow: number
  readonly burst: number
  readonly burstHigh: number | null
  /** The provider stated rate and level. */
  readonly stated: boolean
  /** By the best guess it was full then, last. */
  readonly fullAtMs: number
  /** Tokens by which the lower bound was last found wrong; falls with every acceptance. */
  readonly doubtTokens: number
  /** Newest last. */
  readonly refused: ReadonlyArray<Anchor>
  readonly accepted: ReadonlyArray<Anchor>
  /** Times at which the provider stated that a size fits. */
  readonly promised: ReadonlyArray<Anchor>
}

export const unknownBucket: Bucket = {
  beganAtMs: 0,
  atMs: 0,
  low: 0,
  middle: 0,
  high: 0,
  rateLow: 0,
  rateHigh: 0,
  burstLow: 0,
  burst: 0,
  burstHigh: null,
  stated: false,
  fullAtMs: 0,
  doubtTokens: 0,
  refused: [],
  accepted: [],
  promised: [],
}

/** By the best guess so full, it may be full. */
const nearlyFull = 0.7

export const isKnown = ({ atMs }: Bucket): boolean => atMs > 0

/** The best guess of the refill, tokens a millisecond. */
export const rateOf = ({ rateLow, rateHigh }: Bucket): number => Math.sqrt(rateLow * rateHigh)

/** The bucket as it is at `atMs`, when nothing more was sent. */
export const refilled = (bucket: Bucket, atMs: number): Bucket => {
  const elapsedMs = atMs - bucket.atMs
  if (!isKnown(bucket) || elapsedMs <= 0) return bucket
  const { low, middle, high, rateLow, rateHigh, burstLow, burst, burstHigh } = bucket
  const most = burstHigh ?? Math.max(burst * 4, burstLow)
  const next = Math.min(burst, middle + rateOf(bucket) * elapsedMs)
  return {
    ...bucket,
    atMs,
    low: Math.min(Math.max(low, Math.min(burstLow, low + rateLow * elapsedMs)), most),
    middle: Math.max(Math.min(middle, burst), next),
    high: Math.min(most, high + rateHigh * elapsedMs),
    fullAtMs: next >= burst * nearlyFull ? atMs : bucket.fullAtMs,
  }
}

/** `tokens` are sent (negative: given back). */
export const drawn = (bucket: Bucket, tokens: number, dispatchedAtMs: number, atMs: number): Bucket => {
  if (!isKnown(bucket) || (tokens < 0 && dispatchedAtMs <= bucket.beganAtMs)) return bucket
  const now = refilled(bucket, atMs)
  return { ...now, low: now.low - tokens, middle: now.middle - tokens, high: now.high - tokens }
}

/** A refused call was counted as sent in anchors that came after its dispatch. */
export const uncounted = (bucket: Bucket, tokens: number, dispatchedAtMs: number): Bucket => {
  const without = (anchors: ReadonlyArray<Anchor>) =>
    anchors.some(({ atMs }) => atMs >= dispatchedAtMs)
      ? anchors.map((anchor) =>
          anchor.atMs >= dispatchedAtMs ? { ...anchor, sentTokens: anchor.sentTokens - tokens } : anchor,
        )
      : anchors
  return {
    ...bucket,
    refused: without(bucket.refused),
    accepted: without(bucket.accepted),
    promised: without(bucket.promised),
  }
}

/** `trust` in [0, 2]: 0 is the lower bound, 1 the best guess, 2 the upper bound. */
export const between = (low: number, middle: number, high: number, trust: number): number =>
  trust <= 1 ? low + (middle - low) * trust : middle + (high - middle) * (trust - 1)

/** Tokens that it holds at `atMs`, as far as `trust` goes. */
export const roomOf = (bucket: Bucket, atMs: number, trust: number): number => {
  const { low, middle, high, doubtTokens } = refilled(bucket, atMs)
  return Math.floor(between(low - doubtTokens, middle, high, trust))
}

/** When it holds `tokens`, were nothing more sent, epoch milliseconds; null when it never does. */
export const holdsAt = (bucket: Bucket, tokens: number, atMs: number, trust: number): number | null => {
  const missing = tokens - roomOf(bucket, atMs, trust)
  if (missing <= 0) return atMs
  const { rateLow, rateHigh, burst, burstLow, burstHigh } = bucket
  if (tokens > Math.max(burstLow, trust <= 1 ? burst : (burstHigh ?? 4 * burst))) return null
  const rate = between(rateLow, rateOf(bucket), rateHigh, trust)
  return rate <= 0 ? null : Math.ceil(atMs + missing / rate)
}
