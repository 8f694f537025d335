/**
 * The hypothesis of a trailing minute: a call is accepted while the tokens of the last 60 s, with it,
 * stay within a ceiling, and the ceiling may follow what was used in the 60 s before. No form of growth
 * is assumed, only that more use never lowers it, and that its ratio to the use never rises. So a
 * point that was accepted bounds it from below everywhere, one that was refused from above. A plain
 * sliding window is the case in which use lifts nothing.
 */
import { between } from './bucket.ts'
import { type Charges, minuteMs, sentBetween } from './charges.ts'

/** A call was answered after so much use. */
export interface Point {
  readonly atMs: number
  /** Tokens of the minute that ended 60 s before. */
  readonly before: number
  /** Tokens of the last minute, the call included. */
  readonly within: number
}

export interface TrailingWindow {
  /** Oldest first. */
  readonly accepted: ReadonlyArray<Point>
  readonly refused: ReadonlyArray<Point>
}

export const unknownTrailing: TrailingWindow = { accepted: [], refused: [] }

/** Points of each kind that are kept. */
export const mostPoints = 4
/** What a point says weakens by this share a minute, and after this long it says nothing. */
const fadingPerMinute = 0.02
/** A refused point rises by this share for every minute squared. */
const risingPerMinute = 0.006
const longestMs = 12 * minuteMs
/** Growth by a minute of use that is hoped for before any was seen. */
export const hopedFactor = 1.3
/** Answers travel: what is sent a minute later to the millisecond may still meet the minute before. */
export const edgeMs = 60

const fading = ({ atMs }: Point, nowMs: number): number =>
  Math.min(1, (fadingPerMinute * (nowMs - atMs)) / minuteMs)

/** What refused once may have risen since, the longer ago the faster: it is asked again before long. */
const rising = ({ atMs }: Point, nowMs: number): number => {
  const minutes = Math.max(0, nowMs - atMs) / minuteMs
  return fadingPerMinute * minutes + risingPerMinute * minutes * minutes
}

const fresh = (points: ReadonlyArray<Point>, atMs: number): ReadonlyArray<Point> =>
  points.filter((point) => atMs - point.atMs < longestMs)

export interface Bounds {
  readonly low: number
  readonly middle: number
  /** Infinity when nothing bounds it. */
  readonly high: number
}

/** The ceiling after a minute in which `before` tokens were used. */
export const ceilingAfter = ({ accepted, refused }: TrailingWindow, before: number, atMs: number): Bounds => {
  let low = 0
  for (const point of accepted) {
    const within = point.within * (1 - fading(point, atMs))
    low = Math.max(low, before >= point.before ? within : (within * before) / point.before)
  }
  let high = Number.POSITIVE_INFINITY
  for (const point of refused) {
    const within = point.within * (1 + rising(point, atMs))
    if (before <= point.before) high = Math.min(high, within)
    else if (point.before > 0) high = Math.min(high, (within * before) / point.before)
  }
  if (high < low) high = low
  const hoped = Math.max(low, before * hopedFactor)
  const middle = Number.isFinite(high)
    ? Math.min(high, Math.max((low + high) / 2, Math.min(hoped, high * 0.97)))
    : Math.max(hoped, low)
  return { low, middle, high }
}

const pointAt = (charges: Charges, tokens: number, dispatchedAtMs: number): Point => ({
  atMs: dispatchedAtMs,
  before: sentBetween(charges, dispatchedAtMs - 2 * minuteMs, dispatchedAtMs - minuteMs),
  within: sentBetween(charges, dispatchedAtMs - minuteMs, dispatchedAtMs) + tokens,
})

/** Of points that are too many, the one that its neighbours in use say most about goes. */
const keptPoints = (
  points: ReadonlyArray<Point>,
  said: (others: ReadonlyArray<Point>, point: Point) => number,
): ReadonlyArray<Point> => {
  if (points.length <= mostPoints) return points
  let [worst, most] = [0, Number.NEGATIVE_INFINITY]
  points.slice(0, -1).forEach((point, index) => {
    const others = points.filter((other) => other !== point)
    const says = said(others, point)
    if (says > most) [worst, most] = [index, says]
  })
  return points.filter((_, index) => index !== worst)
}

/** The accepted call is among the charges already. */
export const acceptedUnder = (
  window: TrailingWindow,
  charges: Charges,
  dispatchedAtMs: number,
  atMs: number,
): TrailingWindow => {
  const point = pointAt(charges, 0, dispatchedAtMs)
  const { low, high } = ceilingAfter(window, point.before, atMs)
  if (point.within <= low) return window
  const refused =
    point.within >= high
      ? fresh(window.refused, atMs).filter((one) => !contradicts(point, one, atMs))
      : window.refused
  const accepted = keptPoints([...fresh(window.accepted, atMs), point], (others, one) => {
    const implied = ceilingAfter({ accepted: others, refused: [] }, one.before, atMs).low
    return implied / Math.max(1, one.within)
  })
  return { accepted, refused }
}

/** The refused call is not among the charges any more. */
export const refusedUnder = (
  window: TrailingWindow,
  charges: Charges,
  tokens: number,
  dispatchedAtMs: number,
  atMs: number,
): TrailingWindow => {
  const point = pointAt(charges, tokens, dispatchedAtMs)
  const { low, high } = ceilingAfter(window, point.before, atMs)
  if (point.within >= high) return window
  const accepted =
    point.within <= low
      ? fresh(window.accepted, atMs).filter((one) => !contradicts(one, point, atMs))
      : window.accepted
  const refused = keptPoints([...fresh(window.refused, atMs), point], (others, one) => {
    const implied = ceilingAfter({ accepted: [], refused: others }, one.before, atMs).high
    return Number.isFinite(implied) ? one.within / implied : 0
  })
  return { accepted, refused }
}

/** An accepted and a refused point that no ceiling of this hypothesis gives both. */
const contradicts = (accepted: Point, refused: Point, atMs: number): boolean => {
  const low = ceilingAfter({ accepted: [accepted], refused: [] }, refused.before, atMs).low
  return low >= refused.within
}

/** Tokens that may be sent at `atMs`, as far as `trust` (0 to 2) goes. */
export const roomUnder = (window: TrailingWindow, charges: Charges, atMs: number, trust: number): number => {
  const before = sentBetween(charges, atMs - 2 * minuteMs, atMs - minuteMs)
  const within = sentBetween(charges, atMs - minuteMs - edgeMs, atMs)
  const { low, middle, high } = ceilingAfter(window, before, atMs)
  const top = Number.isFinite(high) ? high : Math.max(2 * middle, 1)
  if (window.refused.length === 0 && window.accepted.length === 0) return Number.POSITIVE_INFINITY
  return Math.floor(between(low, middle, top, trust) - within)
}

/** When a call of `tokens` fits, were nothing more sent, epoch milliseconds; null when silence never makes it fit. */
export const fitsUnder = (
  window: TrailingWindow,
  charges: Charges,
  tokens: number,
  atMs: number,
  trust: number,
): number | null => {
  if (roomUnder(window, charges, atMs, trust) >= tokens) return atMs
  const times: number[] = []
  for (const charge of charges) {
    const leavesMs = charge.atMs + minuteMs + edgeMs + 1
    if (leavesMs > atMs) times.push(leavesMs)
    const forgottenMs = charge.atMs + 2 * minuteMs + 1
    if (forgottenMs > atMs) times.push(forgottenMs)
  }
  times.sort((one, other) => one - other)
  for (const time of times) {
    const before = sentBetween(charges, time - 2 * minuteMs, time - minuteMs)
    const within = sentBetween(charges, time - minuteMs - edgeMs, time)
    const { low, middle, high } = ceilingAfter(window, before, atMs)
    const top = Number.isFinite(high) ? high : Math.max(2 * middle, 1)
    if (between(low, middle, top, trust) - within >= tokens) return time
  }
  return null
}
