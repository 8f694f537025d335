/**
 * The hypothesis of a token bucket: it refills at a rate up to a burst, and a call is accepted while
 * the bucket holds it. Rate, burst and level are each known between two bounds, with a best guess
 * between these. What was refused at one time and accepted later bounds the rate from below; what was
 * accepted at one time and refused later bounds it from above, unless the bucket was full in between.
 */
import { type Charges, minuteMs, sentBetween } from './charges.ts'

/** A time at which a bound of the level is known. */
export interface Anchor {
  readonly atMs: number
  /** The level was below this (refused), or at least this (accepted), tokens. */
  readonly level: number
  /** Tokens sent in all up to then, refused ones taken out. */
  readonly sentTokens: number
}

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

/** Anchors of each kind that are kept. */
export const mostAnchors = 5
const anchorAgeMs = 15 * minuteMs
/** By how much the rate may differ from one burst a minute before anything was seen of it. */
const unseenFactor = { low: 1 / 4, high: 16 }
/** Bounds of the rate loosen by this share a minute, for limits change. */
const looseningPerMinute = 0.004
const shortestMs = 200
/** A rate is known when its bounds are within this factor of each other. */
const knownRateFactor = 4
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

/** Rates are looser the longer ago they were seen. */
const loosened = (bucket: Bucket, elapsedMs: number): Bucket => {
  const share = Math.min(0.5, (looseningPerMinute * elapsedMs) / minuteMs)
  return { ...bucket, rateLow: bucket.rateLow * (1 - share), rateHigh: bucket.rateHigh * (1 + share) }
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

/** New ones tell of the present, old ones tell more exactly: those in between are thinned out. */
const withAnchor = (anchors: ReadonlyArray<Anchor>, anchor: Anchor): ReadonlyArray<Anchor> => {
  const kept = anchors.filter(({ atMs }) => anchor.atMs - atMs < anchorAgeMs)
  if (kept.length < mostAnchors) return [...kept, anchor]
  let [closest, least] = [1, Number.POSITIVE_INFINITY]
  for (let index = 1; index < kept.length; index += 1) {
    const age = Math.max(1, anchor.atMs - kept[index]!.atMs)
    const gap = kept[index]!.atMs - kept[index - 1]!.atMs
    if (gap / age < least) [closest, least] = [index, gap / age]
  }
  return [...kept.slice(0, closest), ...kept.slice(closest + 1), anchor]
}

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
