/**
 * What a bucket's calls tell of it. What was refused at one time and accepted later bounds the rate from
 * below; what was accepted at one time and refused later bounds it from above, unless the bucket was full
 * in between.
 */
import { type Anchor, withAnchor } from './anchors.ts'
import { type Bucket, isKnown, rateOf, refilled, unknownBucket } from './bucket.ts'
import { type Charges, minuteMs, sentBetween } from './charges.ts'

/** By how much the rate may differ from one burst a minute before anything was seen of it. */
const unseenFactor = { low: 1 / 4, high: 16 }
/** Bounds of the rate loosen by this share a minute, for limits change. */
const looseningPerMinute = 0.004
/** Between two answers closer than this, milliseconds, hardly anything is refilled. */
export const shortestMs = 200
/** A rate is known when its bounds are within this factor of each other. */
const knownRateFactor = 4

/** What is known of a dispatch when its answer is weighed. */
export interface Moment {
  readonly tokens: number
  readonly dispatchedAtMs: number
  readonly atMs: number
  /** Of all calls dispatched before it, refused ones taken out. */
  readonly sentBefore: number
  /** Sent after it. */
  readonly sentAfter: number
  readonly charges: Charges
  /** It was sent before the last refusal was heard: what was known then did not stand behind it. */
  readonly late: boolean
}

/** Rates are looser the longer ago they were seen. */
const loosened = (bucket: Bucket, elapsedMs: number): Bucket => {
  const share = Math.min(0.5, (looseningPerMinute * elapsedMs) / minuteMs)
  return { ...bucket, rateLow: bucket.rateLow * (1 - share), rateHigh: bucket.rateHigh * (1 + share) }
}

const spanMs = (from: Anchor, toMs: number): number => toMs - from.atMs

/** A call was accepted: the bucket held it when it was sent. */
export const acceptedBy = (before: Bucket, moment: Moment): Bucket => {
  if (!isKnown(before)) return before
  const { tokens, dispatchedAtMs, atMs, sentBefore, sentAfter } = moment
  let bucket = refilled(before, atMs)
  let { rateLow, rateHigh, burst, burstLow, burstHigh } = bucket
  for (const anchor of bucket.refused) {
    const elapsedMs = spanMs(anchor, dispatchedAtMs)
    if (elapsedMs < shortestMs) continue
    rateLow = Math.max(rateLow, (tokens + sentBefore - anchor.sentTokens - anchor.level) / elapsedMs)
  }
  if (rateLow > rateHigh) rateHigh = rateLow * 1.1
  burstLow = Math.max(burstLow, tokens)
  burst = Math.max(burst, burstLow)
  if (burstHigh !== null && burstHigh < burst) burstHigh = null
  const low = Math.max(bucket.low, Math.min(burstLow, rateLow * (atMs - dispatchedAtMs)) - sentAfter)
  const middle = Math.max(low, bucket.middle)
  bucket = {
    ...bucket,
    rateLow,
    rateHigh,
    burst,
    burstLow,
    burstHigh,
    low,
    middle,
    high: Math.max(bucket.high, middle),
    doubtTokens: Math.floor(bucket.doubtTokens * 0.97),
  }
  const last = bucket.accepted.at(-1)
  const anchor = { atMs: dispatchedAtMs, level: 0, sentTokens: sentBefore + tokens }
  return last !== undefined && dispatchedAtMs <= last.atMs
    ? bucket
    : { ...bucket, accepted: withAnchor(bucket.accepted, anchor) }
}

/** The rate, when only the burst was seen. */
const rated = (burst: number) => ({
  rateLow: (burst / minuteMs) * unseenFactor.low,
  rateHigh: (burst / minuteMs) * unseenFactor.high,
})

/** The first refusal: so much was taken within a short time, and no more. */
const begun = ({ tokens, dispatchedAtMs, atMs, charges }: Moment): Bucket => {
  let burst = 1
  for (const spanSeconds of [1, 5, 15, 30, 60]) {
    const taken = sentBetween(charges, dispatchedAtMs - spanSeconds * 1_000, dispatchedAtMs)
    burst = Math.max(burst, (taken + tokens / 2) / (1 + spanSeconds / 60))
  }
  return {
    ...unknownBucket,
    beganAtMs: atMs,
    atMs: Math.max(1, atMs),
    low: 0,
    middle: tokens / 2,
    high: tokens,
    ...rated(burst),
    burst,
    burstLow: Math.min(burst, sentBetween(charges, dispatchedAtMs - 1_000, dispatchedAtMs)),
  }
}

/** A call was refused: the bucket did not hold it when it was sent. */
export const refusedBy = (before: Bucket, moment: Moment): Bucket => {
  const { tokens, dispatchedAtMs, atMs, sentBefore, sentAfter } = moment
  const known = isKnown(before)
  let bucket = known ? loosened(refilled(before, atMs), atMs - before.atMs) : begun(moment)
  // One of the burst that told first: what was taken then was less by this call.
  if (known && dispatchedAtMs <= before.beganAtMs && !before.stated) {
    const burstThen = begun(moment).burst
    if (burstThen < bucket.burst)
      bucket = {
        ...bucket,
        ...rated(burstThen),
        burst: burstThen,
        burstLow: Math.min(bucket.burstLow, burstThen),
      }
  }
  let { rateLow, rateHigh, burst, burstLow, burstHigh, low, middle, high, doubtTokens } = bucket
  const sinceMs = atMs - dispatchedAtMs
  const wrongBy = low + sentAfter - rateLow * sinceMs - tokens
  // Of a bucket whose refill is hardly known nobody knows when it was full: then the rate was the wrong guess.
  const knowsRate = rateHigh <= rateLow * knownRateFactor
  const fullAtMs = knowsRate ? bucket.fullAtMs : 0
  const wasFull = known && !moment.late && fullAtMs >= dispatchedAtMs - 1_000 && middle + sentAfter >= tokens
  if (wasFull) {
    // Full by all that is known, and still it did not hold the call: it holds less.
    burst = Math.max(burstLow, Math.min(burst, tokens) * 0.98, 1)
    burstHigh = Math.max(burst, tokens)
  } else if (known && !moment.late) {
    for (const anchor of bucket.accepted) {
      const elapsedMs = spanMs(anchor, dispatchedAtMs)
      if (elapsedMs < shortestMs || anchor.atMs < fullAtMs) continue
      rateHigh = Math.min(rateHigh, (tokens + sentBefore - anchor.sentTokens) / elapsedMs)
    }
    rateHigh = Math.max(rateHigh, Number.EPSILON)
    if (rateHigh < rateLow) rateLow = rateHigh * 0.9
  }
  if (wrongBy > 0 && !moment.late) doubtTokens = Math.max(doubtTokens, Math.ceil(wrongBy))
  const ofLevel = (rate: number) => tokens + rate * sinceMs - sentAfter
  high = Math.min(high, ofLevel(rateHigh))
  if (middle > ofLevel(rateOf({ ...bucket, rateLow, rateHigh }))) {
    middle =
      (Math.max(0, Math.min(low, tokens)) + tokens) / 2 +
      rateOf({ ...bucket, rateLow, rateHigh }) * sinceMs -
      sentAfter
  }
  if (low > ofLevel(rateLow)) low = rateLow * sinceMs - sentAfter
  low = Math.min(low, high)
  middle = Math.min(Math.max(middle, low), high)
  const anchor = { atMs: dispatchedAtMs, level: tokens, sentTokens: sentBefore }
  bucket = {
    ...bucket,
    atMs: Math.max(1, atMs),
    rateLow,
    rateHigh,
    burst,
    burstHigh,
    low,
    middle,
    high,
    doubtTokens,
  }
  const last = bucket.refused.at(-1)
  // Of refusals of one moment the smallest tells most.
  if (last !== undefined && dispatchedAtMs - last.atMs < shortestMs) {
    return anchor.level < last.level
      ? { ...bucket, refused: [...bucket.refused.slice(0, -1), anchor] }
      : bucket
  }
  return { ...bucket, refused: withAnchor(bucket.refused, anchor) }
}
