/**
 * What limits input tokens, as three hypotheses that are held against the same answers: a token
 * bucket, a trailing minute whose ceiling may follow use, a clock minute whose ceiling may climb. Each
 * foretells how every call is answered. The weight of a hypothesis is how well it foretold; decisions
 * follow the one of the most weight.
 */
import * as bucket from './bucket.ts'
import * as bucketAnswers from './bucket-answers.ts'
import type { Charges } from './charges.ts'
import * as clock from './clock-window.ts'
import * as trailing from './trailing-window.ts'

export const families = ['bucket', 'trailing', 'clock'] as const
export type Family = (typeof families)[number]

export interface Layer {
  /** When a call was last refused by it, epoch milliseconds; 0: never. */
  readonly refusedAtMs: number
  readonly weights: Readonly<Record<Family, number>>
  readonly bucket: bucket.Bucket
  readonly trailing: trailing.TrailingWindow
  readonly clock: clock.ClockWindow
}

export const unknownLayer: Layer = {
  refusedAtMs: 0,
  weights: { bucket: 1, trailing: 1, clock: 1 },
  bucket: bucket.unknownBucket,
  trailing: trailing.unknownTrailing,
  clock: clock.unknownClock,
}

/** How likely each family is by the name alone that the provider gave to the limit. */
export type Prior = Readonly<Record<Family, number>>

/** A hypothesis that foretold the opposite keeps this share of its weight. */
const surprise = 0.04
/** No weight falls below this share of the largest, so that a limit that changes is recognized. */
const leastWeight = 0.003

/** Whether the layer says anything. */
export const speaks = ({ refusedAtMs, bucket: { stated } }: Layer): boolean => refusedAtMs > 0 || stated

export const leaderOf = ({ weights }: Layer, prior: Prior): Family => {
  let leader: Family = 'bucket'
  for (const family of families)
    if (weights[family] * prior[family] > weights[leader] * prior[leader]) leader = family
  return leader
}

/** Share of the weight that a family has. */
export const shareOf = ({ weights }: Layer, prior: Prior, family: Family): number => {
  let sum = 0
  for (const one of families) sum += weights[one] * prior[one]
  return (weights[family] * prior[family]) / sum
}

/** Tokens that may be sent at `atMs` by one family, as far as `trust` (0 to 2) goes. */
export const roomBy = (
  layer: Layer,
  family: Family,
  charges: Charges,
  atMs: number,
  trust: number,
): number => {
  if (family === 'bucket')
    return bucket.isKnown(layer.bucket) ? bucket.roomOf(layer.bucket, atMs, trust) : Number.POSITIVE_INFINITY
  return family === 'trailing'
    ? trailing.roomUnder(layer.trailing, charges, atMs, trust)
    : clock.roomIn(layer.clock, charges, atMs, trust)
}

/** When `tokens` fit by one family, were nothing more sent, epoch milliseconds; null when waiting never makes them fit. */
export const fitsBy = (
  layer: Layer,
  family: Family,
  charges: Charges,
  tokens: number,
  atMs: number,
  trust: number,
): number | null => {
  if (family === 'bucket')
    return bucket.isKnown(layer.bucket) ? bucket.holdsAt(layer.bucket, tokens, atMs, trust) : atMs
  return family === 'trailing'
    ? trailing.fitsUnder(layer.trailing, charges, tokens, atMs, trust)
    : clock.fitsIn(layer.clock, charges, tokens, atMs, trust)
}

/** How likely a family held it, before the answer, that `tokens` would be accepted. */
const foretold = (tokens: number, low: number, middle: number, high: number): number => {
  if (tokens <= low) return 1 - surprise
  if (tokens > high) return surprise
  const share =
    tokens <= middle
      ? 1 - (0.5 * (tokens - low)) / Math.max(1, middle - low)
      : 0.5 - (0.5 * (tokens - middle)) / Math.max(1, high - middle)
  return Math.min(1 - surprise, Math.max(surprise, share))
}

/** An answer to a dispatch, with the charges of all other calls. */
export interface Answer extends bucketAnswers.Moment {
  readonly accepted: boolean
  /** Charges with the call taken out. */
  readonly others: Charges
}

const reweighed = (layer: Layer, answer: Answer): Layer['weights'] => {
  const { tokens, dispatchedAtMs, atMs, sentAfter, others, accepted } = answer
  const likely = (family: Family): number => {
    if (family === 'bucket') {
      if (!bucket.isKnown(layer.bucket)) return 0.5
      // As it was at the dispatch: less what has refilled since, and what left since is back.
      const sinceMs = atMs - dispatchedAtMs
      const back = sentAfter + (accepted ? tokens : 0) - bucket.rateOf(layer.bucket) * sinceMs
      const [low, middle, high] = [0, 1, 2].map((trust) => bucket.roomOf(layer.bucket, atMs, trust) + back)
      return foretold(tokens, low!, middle!, high!)
    }
    const [low, middle, high] = [0, 1, 2].map((trust) => roomBy(layer, family, others, dispatchedAtMs, trust))
    return Number.isFinite(low!) ? foretold(tokens, low!, middle!, high!) : 0.5
  }
  const next = { ...layer.weights }
  let most = 0
  for (const family of families) {
    const chance = likely(family)
    next[family] *= accepted ? chance : 1 - chance
    most = Math.max(most, next[family])
  }
  for (const family of families) next[family] = Math.max(leastWeight, next[family] / most)
  return next
}

export const acceptedBy = (layer: Layer, answer: Answer): Layer => {
  const { dispatchedAtMs, atMs, charges } = answer
  const weights = speaks(layer) && !answer.late ? reweighed(layer, answer) : layer.weights
  return {
    ...layer,
    weights,
    bucket: bucketAnswers.acceptedBy(layer.bucket, answer),
    trailing: trailing.acceptedUnder(layer.trailing, charges, dispatchedAtMs, atMs),
    clock: clock.acceptedIn(layer.clock, charges, dispatchedAtMs),
  }
}

export const refusedBy = (layer: Layer, answer: Answer): Layer => {
  const { tokens, dispatchedAtMs, atMs, charges } = answer
  const weights = speaks(layer) && !answer.late ? reweighed(layer, answer) : layer.weights
  return {
    ...layer,
    // 0 is never.
    refusedAtMs: Math.max(1, atMs),
    weights,
    bucket: bucketAnswers.refusedBy(layer.bucket, answer),
    trailing: trailing.refusedUnder(layer.trailing, charges, tokens, dispatchedAtMs, atMs),
    clock: clock.refusedIn(layer.clock, charges, tokens, dispatchedAtMs),
  }
}
