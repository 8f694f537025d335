/**
 * The hypothesis of a clock minute: what is accepted from one minute boundary to the next stays within
 * a ceiling, which may rise by a step at every boundary while there is use. A plain fixed window is
 * the case in which the step is nothing.
 */
import { between } from './bucket.ts'
import { type Charges, minuteMs, minuteStart, sentBetween } from './charges.ts'

export interface MinutePoint {
  /** Epoch minute. */
  readonly minute: number
  /** Tokens of that minute up to the call, the call included. */
  readonly within: number
}

export interface ClockWindow {
  readonly accepted: ReadonlyArray<MinutePoint>
  readonly refused: ReadonlyArray<MinutePoint>
  /** The ceiling that the provider stated last, and what it said that the next minute adds. */
  readonly stated: { readonly minute: number; readonly tokens: number; readonly step: number } | null
}

export const unknownClock: ClockWindow = { accepted: [], refused: [], stated: null }

export const mostMinutes = 5
const longestMinutes = 15
/** Clocks differ a little. */
export const clockEdgeMs = 60
/** Boundaries that a forecast looks ahead. */
const horizonMinutes = 90

export const minuteOf = (atMs: number): number => Math.floor(atMs / minuteMs)

/** What each boundary adds: at least, and at most. */
export const stepOf = ({
  accepted,
  refused,
  stated,
}: ClockWindow): { readonly low: number; readonly high: number } => {
  if (stated !== null) return { low: stated.step, high: stated.step }
  let [low, high] = [0, Number.POSITIVE_INFINITY]
  for (const up of accepted) {
    for (const down of refused) {
      const minutes = up.minute - down.minute
      if (minutes > 0) low = Math.max(low, (up.within - down.within) / minutes)
      if (minutes < 0) high = Math.min(high, Math.max(0, (down.within - up.within) / -minutes))
    }
  }
  return { low, high: Math.max(low, high) }
}

const ceilingIn = (window: ClockWindow, minute: number): { low: number; middle: number; high: number } => {
  const { stated } = window
  if (stated !== null && stated.step >= 0) {
    const tokens = stated.tokens + stated.step * Math.max(0, minute - stated.minute)
    return { low: tokens, middle: tokens, high: tokens }
  }
  const step = stepOf(window)
  let low = 0
  for (const point of window.accepted)
    low = Math.max(low, point.within + step.low * Math.max(0, minute - point.minute))
  let high = Number.POSITIVE_INFINITY
  for (const point of window.refused) {
    const later = minute - point.minute
    high = Math.min(high, later <= 0 ? point.within : point.within + step.high * later)
  }
  if (high < low) high = low
  return { low, middle: Number.isFinite(high) ? (low + high) / 2 : low * 1.1, high }
}

const fresh = (points: ReadonlyArray<MinutePoint>, minute: number) =>
  points.filter((point) => minute - point.minute <= longestMinutes)

const within = (charges: Charges, atMs: number): number => sentBetween(charges, minuteStart(atMs) - 1, atMs)

/** One point a minute: the highest accepted, the lowest refused. */
const withPoint = (
  points: ReadonlyArray<MinutePoint>,
  point: MinutePoint,
  better: (one: number, other: number) => number,
): ReadonlyArray<MinutePoint> => {
  const same = points.find(({ minute }) => minute === point.minute)
  const others = points.filter(({ minute }) => minute !== point.minute)
  const merged =
    same === undefined ? point : { minute: point.minute, within: better(same.within, point.within) }
  return [...others, merged].sort((one, other) => one.minute - other.minute).slice(-mostMinutes)
}

/** The accepted call is among the charges already. */
export const acceptedIn = (window: ClockWindow, charges: Charges, dispatchedAtMs: number): ClockWindow => {
  const minute = minuteOf(dispatchedAtMs)
  const point = { minute, within: within(charges, dispatchedAtMs) }
  const { low, high } = ceilingIn(window, minute)
  if (point.within <= low) return window
  const stated = window.stated !== null && point.within > high ? null : window.stated
  const refused =
    point.within >= high
      ? window.refused.filter((one) => one.within > point.within || one.minute < minute - 1)
      : window.refused
  return {
    accepted: withPoint(fresh(window.accepted, minute), point, Math.max),
    refused: fresh(refused, minute),
    stated,
  }
}

/** The refused call is not among the charges any more. */
export const refusedIn = (
  window: ClockWindow,
  charges: Charges,
  tokens: number,
  dispatchedAtMs: number,
): ClockWindow => {
  const minute = minuteOf(dispatchedAtMs)
  const point = { minute, within: within(charges, dispatchedAtMs) + tokens }
  const { low, high } = ceilingIn(window, minute)
  if (point.within >= high && Number.isFinite(high)) return window
  const stated = window.stated !== null && point.within <= low ? null : window.stated
  // The climb has begun anew, or the ceiling has fallen.
  const accepted =
    point.within <= low
      ? window.accepted.filter((one) => one.within < point.within && one.minute === minute)
      : window.accepted
  const refused = withPoint(fresh(window.refused, minute), point, Math.min)
  return { accepted: fresh(accepted, minute), refused, stated }
}

/** The provider stated the ceiling of this minute, and perhaps that of the next. */
export const statedIn = (
  window: ClockWindow,
  tokens: number,
  next: number | null,
  atMs: number,
): ClockWindow => ({
  ...window,
  stated: { minute: minuteOf(atMs), tokens, step: next === null ? 0 : Math.max(0, next - tokens) },
})

const isEmpty = ({ accepted, refused, stated }: ClockWindow): boolean =>
  accepted.length === 0 && refused.length === 0 && stated === null

const ceilingWith = (window: ClockWindow, minute: number, trust: number): number => {
  const { low, middle, high } = ceilingIn(window, minute)
  return between(low, middle, Number.isFinite(high) ? high : Math.max(1, 2 * middle), trust)
}

/** Tokens that may be sent at `atMs`, as far as `trust` (0 to 2) goes. */
export const roomIn = (window: ClockWindow, charges: Charges, atMs: number, trust: number): number => {
  if (isEmpty(window)) return Number.POSITIVE_INFINITY
  return Math.floor(ceilingWith(window, minuteOf(atMs), trust) - within(charges, atMs))
}

/** When a call of `tokens` fits, were nothing more sent, epoch milliseconds; null when not within the horizon. */
export const fitsIn = (
  window: ClockWindow,
  charges: Charges,
  tokens: number,
  atMs: number,
  trust: number,
): number | null => {
  if (roomIn(window, charges, atMs, trust) >= tokens) return atMs
  const minute = minuteOf(atMs)
  for (let later = 1; later <= horizonMinutes; later += 1) {
    if (ceilingWith(window, minute + later, trust) >= tokens) return (minute + later) * minuteMs + clockEdgeMs
  }
  return null
}

export { ceilingIn }
