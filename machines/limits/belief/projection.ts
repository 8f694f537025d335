/** What is shown of a belief: the one projection for status, explain and the inspector. */
import { type Belief, type LayerName, layerNames, priorOf } from './belief.ts'
import { rateOf } from './bucket.ts'
import { minuteMs, sentBetween } from './charges.ts'
import { ceilingIn, minuteOf } from './clock-window.ts'
import { type Family, type Layer, leaderOf, roomBy, shareOf, speaks } from './layer.ts'
import { ceilingAfter } from './trailing-window.ts'

export interface Interval {
  /** At least. */
  readonly low: number
  /** At most; null when nothing bounds it. */
  readonly high: number | null
}

/** The leading hypothesis of one layer. */
export interface BelievedLimit {
  readonly layer: LayerName
  readonly family: Family
  /** Share of the weight of all hypotheses that it has, in (0, 1]. */
  readonly confidence: number
  /** Input tokens a minute: the refill of a bucket, the present ceiling of a window. */
  readonly tokensPerMinute: Interval
  /** Input tokens that may be sent now. */
  readonly roomTokens: Interval
  /** Most that a bucket holds, by the best guess; null for windows. */
  readonly burstTokens: number | null
}

const whole = (value: number): number => Math.max(0, Math.floor(value))

const interval = (low: number, high: number): Interval => ({
  low: whole(low),
  high: Number.isFinite(high) ? whole(high) : null,
})

const ceilingOf = (layer: Layer, family: Family, belief: Belief, atMs: number): Interval => {
  if (family === 'bucket') {
    const { rateLow, rateHigh } = layer.bucket
    return interval(rateLow * minuteMs, rateHigh * minuteMs)
  }
  if (family === 'clock') {
    const { low, high } = ceilingIn(layer.clock, minuteOf(atMs))
    return interval(low, high)
  }
  const before = sentBetween(belief.charges, atMs - 2 * minuteMs, atMs - minuteMs)
  const { low, high } = ceilingAfter(layer.trailing, before, atMs)
  return interval(low, high)
}

/** What is believed at `atMs`, one for each layer that any answer told of. */
export const believedLimits = (belief: Belief, atMs: number): ReadonlyArray<BelievedLimit> =>
  layerNames
    .filter((name) => speaks(belief[name]))
    .map((name) => {
      const layer = belief[name]
      const family = leaderOf(layer, priorOf(belief, name))
      const room = (trust: number) => roomBy(layer, family, belief.charges, atMs, trust)
      return {
        layer: name,
        family,
        confidence: shareOf(layer, priorOf(belief, name), family),
        tokensPerMinute: ceilingOf(layer, family, belief, atMs),
        roomTokens: interval(room(0), room(2)),
        burstTokens: family === 'bucket' && rateOf(layer.bucket) > 0 ? whole(layer.bucket.burst) : null,
      }
    })

/** The ceiling that binds, input tokens a minute. Before anything was refused: what was accepted. */
export const bindingCeiling = (belief: Belief, limits: ReadonlyArray<BelievedLimit>): Interval => {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const { tokensPerMinute } of limits) {
    low = Math.min(low, tokensPerMinute.low)
    high = Math.min(high, tokensPerMinute.high ?? Number.POSITIVE_INFINITY)
  }
  return limits.length === 0
    ? { low: belief.highestAccepted, high: null }
    : { low: whole(low), high: Number.isFinite(high) ? whole(high) : null }
}
