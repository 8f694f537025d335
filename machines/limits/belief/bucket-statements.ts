/** What the provider states of a bucket: when a refused call fits, and what its headers show. */
import { withAnchor } from './anchors.ts'
import { type Bucket, isKnown, rateOf, refilled, unknownBucket } from './bucket.ts'
import { type Moment, shortestMs } from './bucket-answers.ts'
import { minuteMs } from './charges.ts'

/** The provider stated when a call that it refused fits: the level of that time. */
export const promisedBy = (before: Bucket, tokens: number, waitMs: number, moment: Moment): Bucket => {
  const fitsAtMs = moment.dispatchedAtMs + waitMs
  const total = moment.sentBefore
  let bucket = before
  for (const anchor of bucket.promised) {
    const elapsedMs = fitsAtMs - anchor.atMs
    if (elapsedMs < shortestMs || moment.late) continue
    const rate = (tokens - anchor.level + total - anchor.sentTokens) / elapsedMs
    if (rate <= 0) continue
    bucket = { ...bucket, rateLow: rate * 0.97, rateHigh: rate * 1.03, stated: true }
  }
  const restMs = fitsAtMs - moment.atMs
  const level = (rate: number) => tokens - rate * restMs - moment.sentAfter
  const middle = level(rateOf(bucket))
  return {
    ...bucket,
    low: Math.min(middle, Math.max(bucket.low, level(bucket.rateHigh))),
    middle,
    high: Math.max(middle, Math.min(bucket.high, level(bucket.rateLow))),
    burstLow: Math.max(bucket.burstLow, tokens),
    burst: Math.max(bucket.burst, tokens),
    promised: withAnchor(bucket.promised, { atMs: fitsAtMs, level: tokens, sentTokens: total }),
  }
}

/** What the provider's headers show of it. */
export interface Reading {
  /** Tokens a minute. */
  readonly limit: number | null
  readonly remaining: number | null
  /** Full again then, epoch milliseconds. */
  readonly resetAtMs: number | null
}

/** The provider states rate and level. Where its word was found wrong, its level is only the upper bound. */
export const readBy = (before: Bucket, { limit, remaining, resetAtMs }: Reading, atMs: number): Bucket => {
  if (limit === null || limit <= 0) return before
  const rate = limit / minuteMs
  const left = remaining ?? limit
  const missing = resetAtMs === null || resetAtMs <= atMs ? 0 : (resetAtMs - atMs) * rate
  const isBucket = resetAtMs !== null && missing > 0
  const burst = isBucket ? Math.max(left, Math.min(4 * limit, left + missing)) : Math.max(limit, left)
  const known = isKnown(before)
    ? refilled(before, atMs)
    : { ...unknownBucket, beganAtMs: atMs, atMs: Math.max(1, atMs) }
  const trusted = known.doubtTokens === 0
  return {
    ...known,
    low: trusted ? left : Math.min(known.low, left),
    middle: trusted ? left : Math.min(known.middle, left),
    high: left,
    rateLow: trusted ? rate * 0.995 : Math.min(known.rateLow || rate, rate),
    rateHigh: rate * 1.005,
    burst,
    burstLow: burst * 0.99,
    burstHigh: burst,
    stated: true,
    fullAtMs: left >= burst ? atMs : known.fullAtMs,
  }
}
