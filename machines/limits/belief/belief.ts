/**
 * What a scope believes about the limits of its provider on input tokens, and the forecast that
 * follows for a call of any size. Two layers, because providers have two: a limit, and an acceleration
 * limit on the way to it; the kind that a refusal names says which of them it tells of. A refusal that
 * names no kind tells of the limit, and the layer's hypotheses find out what it is.
 *
 * Pure and bounded: some hundred numbers, whatever happens. Levels refill by arithmetic.
 */
import type { Evidence, LimitReading } from '../../model/evidence.ts'
import * as bucket from './bucket.ts'
import { type Charges, charged, sentBetween, sentInMinute } from './charges.ts'
import * as clock from './clock-window.ts'
import {
  acceptedBy,
  families,
  fitsBy,
  type Layer,
  leaderOf,
  type Prior,
  refusedBy,
  roomBy,
  shareOf,
  speaks,
  unknownLayer,
} from './layer.ts'

export const layerNames = ['limit', 'acceleration'] as const
export type LayerName = (typeof layerNames)[number]

/** The provider stated that calls of at least this size are refused until then. */
export interface StatedWait {
  readonly tokens: number
  /** When it said so, epoch milliseconds. */
  readonly toldAtMs: number
  /** Epoch milliseconds. */
  readonly untilMs: number
}

/** The last refusal that told of tokens. */
export interface Refusal {
  readonly kind: Evidence['kind']
  readonly atMs: number
  /** Input tokens of the refused call. */
  readonly tokens: number
  /** Input tokens sent in the minute before it. */
  readonly trailingTokens: number
  /** The ceiling that the provider stated; null when it stated none. */
  readonly statedLimit: number | null
  /** The ceiling that it announced for the next minute boundary. */
  readonly statedNextLimit: number | null
}

export interface Belief {
  readonly charges: Charges
  /** Tokens sent in all, refused ones taken out; counted from a number that has no meaning. */
  readonly sentTokens: number
  readonly limit: Layer
  readonly acceleration: Layer
  readonly statedWaits: ReadonlyArray<StatedWait>
  readonly refusal: Refusal | null
  /** Refusals since the last acceptance. */
  readonly refusals: number
  /** Refusals that may be risked: every acceptance earns a part of one, every refusal costs one. */
  readonly credit: number
  /** Longest time that a refusal lately took to be heard, milliseconds. */
  readonly answerMs: number
  /** When a call was last accepted, epoch milliseconds; 0: never. */
  readonly acceptedAtMs: number
  /** When a call was last sent that might well be refused, epoch milliseconds. */
  readonly riskedAtMs: number
  /** Most input tokens that were ever sent within a minute and accepted. */
  readonly highestAccepted: number
}

/** Refusals that a scope may risk before it has learned anything. */
const firstCredit = 3
const mostCredit = 3

export const unknownBelief: Belief = {
  charges: [],
  sentTokens: 0,
  limit: unknownLayer,
  acceleration: unknownLayer,
  statedWaits: [],
  refusal: null,
  refusals: 0,
  credit: firstCredit,
  answerMs: 0,
  acceptedAtMs: 0,
  riskedAtMs: 0,
  highestAccepted: 0,
}

/** What a limit's name alone says of its kind. */
const priors: Readonly<Record<LayerName | 'stated', Prior>> = {
  limit: { bucket: 1, trailing: 0.25, clock: 0.25 },
  /** Rate and level of a bucket were stated. */
  stated: { bucket: 1, trailing: 0.03, clock: 0.03 },
  acceleration: { bucket: 0.02, trailing: 1, clock: 0.6 },
}

export const priorOf = (belief: Belief, name: LayerName): Prior =>
  priors[name === 'limit' && belief.limit.bucket.stated ? 'stated' : name]
/** One acceptance earns so much of a refusal: in a bucket little is gained by trying, under growth every step is found by trying. */
const earned: Readonly<Record<LayerName, number>> = { limit: 1 / 50, acceleration: 1 / 12 }
/** Tries that may well be refused follow each other so closely at most, milliseconds: the answer to one comes before the next. */
const leastSpacingMs = 40

const layersThatSpeak = (belief: Belief): ReadonlyArray<LayerName> =>
  layerNames.filter((name) => speaks(belief[name]))

/** Whether anything is believed of input tokens at all; while nothing is, everything is sent. */
export const isSilent = ({ limit, acceleration }: Belief): boolean => !speaks(limit) && !speaks(acceleration)

/** A call is sent (negative: its estimate was too high, or it was never sent). */
export const sent = (belief: Belief, tokens: number, dispatchedAtMs: number, atMs: number): Belief => {
  if (tokens === 0) return belief
  const draw = (layer: Layer): Layer => ({
    ...layer,
    bucket: bucket.drawn(layer.bucket, tokens, dispatchedAtMs, atMs),
  })
  return {
    ...belief,
    charges: charged(belief.charges, tokens, dispatchedAtMs, atMs),
    sentTokens: belief.sentTokens + tokens,
    limit: speaks(belief.limit) ? draw(belief.limit) : belief.limit,
    acceleration: speaks(belief.acceleration) ? draw(belief.acceleration) : belief.acceleration,
  }
}

export interface Dispatch {
  readonly tokens: number
  readonly dispatchedAtMs: number
  readonly atMs: number
}

/** Sent before the last refusal was heard. */
const isLate = ({ refusedAtMs }: Layer, dispatchedAtMs: number): boolean => dispatchedAtMs <= refusedAtMs

/** A call was accepted. */
export const accepted = (belief: Belief, { tokens, dispatchedAtMs, atMs }: Dispatch): Belief => {
  const { charges } = belief
  const within = sentInMinute(charges, dispatchedAtMs)
  const highestAccepted = Math.max(belief.highestAccepted, within)
  if (isSilent(belief))
    return highestAccepted === belief.highestAccepted ? belief : { ...belief, highestAccepted }
  const sentAfter = sentBetween(charges, dispatchedAtMs, Number.POSITIVE_INFINITY)
  const answer = {
    accepted: true,
    tokens,
    dispatchedAtMs,
    atMs,
    charges,
    others: charged(charges, -tokens, dispatchedAtMs, atMs),
    sentBefore: belief.sentTokens - sentAfter - tokens,
    sentAfter,
  }
  const names = layersThatSpeak(belief)
  const gain =
    names.includes('acceleration') || leaderOf(belief.limit, priorOf(belief, 'limit')) !== 'bucket'
      ? earned.acceleration
      : earned.limit
  return {
    ...belief,
    highestAccepted,
    limit: names.includes('limit')
      ? acceptedBy(belief.limit, { ...answer, late: isLate(belief.limit, dispatchedAtMs) })
      : belief.limit,
    acceleration: names.includes('acceleration')
      ? acceptedBy(belief.acceleration, { ...answer, late: isLate(belief.acceleration, dispatchedAtMs) })
      : belief.acceleration,
    statedWaits: belief.statedWaits.filter((wait) => wait.tokens > tokens && wait.untilMs + promiseMs > atMs),
    acceptedAtMs: atMs,
    // What was risked is answered.
    riskedAtMs: dispatchedAtMs >= belief.riskedAtMs ? 0 : belief.riskedAtMs,
    refusals: 0,
    credit: Math.min(mostCredit, belief.credit + gain),
  }
}

/** The layer that a kind of refusal tells of; null when it says nothing of input tokens. */
export const layerOf = (kind: Evidence['kind']): LayerName | null => {
  switch (kind) {
    case 'acceleration':
      return 'acceleration'
    case 'input-tokens-per-minute':
    case 'tokens-per-minute':
    case 'unknown-rate-limit':
      return 'limit'
    default:
      return null
  }
}

/** A number that a provider stated may be anything finite. */
const wholeTokens = (stated: number | undefined): number | null =>
  stated === undefined ? null : Math.min(Math.floor(stated), Number.MAX_SAFE_INTEGER - 1)

/** A call was refused; its tokens are taken out of what was sent already. */
export const refused = (before: Belief, dispatch: Dispatch, evidence: Evidence): Belief => {
  const name = layerOf(evidence.kind)
  if (name === null) return before
  const { tokens, dispatchedAtMs, atMs } = dispatch
  const belief = uncounted(before, dispatch)
  const { charges } = belief
  const sentAfter = sentBetween(charges, dispatchedAtMs, Number.POSITIVE_INFINITY)
  const answer = {
    accepted: false,
    tokens,
    dispatchedAtMs,
    atMs,
    charges,
    others: charges,
    sentBefore: belief.sentTokens - sentAfter,
    sentAfter,
    late: isLate(belief[name], dispatchedAtMs),
  }
  const { currentLimit, nextLimit, limit } = evidence.facts
  const statedLimit = wholeTokens(currentLimit ?? limit)
  const statedNextLimit = wholeTokens(nextLimit)
  let layer = refusedBy(belief[name], answer)
  if (statedLimit !== null) layer = withCeiling(layer, name, statedLimit, statedNextLimit, answer)
  if (evidence.retryAfterMs !== null)
    layer = { ...layer, bucket: bucket.promisedBy(layer.bucket, tokens, evidence.retryAfterMs, answer) }
  return {
    ...belief,
    [name]: layer,
    refusal: {
      kind: evidence.kind,
      atMs,
      tokens,
      trailingTokens: sentInMinute(charges, dispatchedAtMs),
      statedLimit,
      statedNextLimit,
    },
    statedWaits: statedBy(belief, dispatch, evidence),
    riskedAtMs: dispatchedAtMs >= belief.riskedAtMs ? 0 : belief.riskedAtMs,
    refusals: belief.refusals + 1,
    credit: Math.max(0, belief.credit - 1),
    answerMs: Math.max(Math.min(2_000, atMs - dispatchedAtMs), Math.floor(belief.answerMs * 0.9)),
  }
}

/** A refused call was never charged: nor does it count in what was noted since its dispatch. */
const uncounted = (belief: Belief, { tokens, dispatchedAtMs }: Dispatch): Belief => {
  const without = (layer: Layer): Layer => ({
    ...layer,
    bucket: bucket.uncounted(layer.bucket, tokens, dispatchedAtMs),
  })
  return { ...belief, limit: without(belief.limit), acceleration: without(belief.acceleration) }
}

/** The provider stated its ceiling of now. With one for the next minute it is a climbing one; else it is the rate of a bucket or the ceiling of a window. */
const withCeiling = (
  layer: Layer,
  name: LayerName,
  tokens: number,
  next: number | null,
  { dispatchedAtMs, atMs }: Dispatch,
): Layer => {
  if (tokens <= 0) return layer
  if (next !== null) {
    const weights = { bucket: 0.003, trailing: 0.003, clock: 1 }
    return { ...layer, weights, clock: clock.statedIn(layer.clock, tokens, next, dispatchedAtMs) }
  }
  if (name === 'acceleration') return layer
  const rate = tokens / 60_000
  return {
    ...layer,
    bucket: { ...layer.bucket, atMs: layer.bucket.atMs || atMs, rateLow: rate * 0.99, rateHigh: rate * 1.01 },
  }
}

/** A wait that names no kind, and meets a smaller call while a larger one is told to wait, is one for all. */
const statedBy = ({ statedWaits }: Belief, { tokens, atMs }: Dispatch, { kind, retryAfterMs }: Evidence) => {
  if (retryAfterMs === null) return statedWaits
  const forAll =
    kind === 'unknown-rate-limit' && statedWaits.some((one) => one.tokens > tokens && one.untilMs > atMs)
  return withWait(
    statedWaits,
    { tokens: forAll ? 0 : tokens, toldAtMs: atMs, untilMs: atMs + retryAfterMs },
    atMs,
  )
}

/** Waits bound calls of their size and larger; what a longer wait for a smaller call says already is left out. */
const withWait = (
  waits: ReadonlyArray<StatedWait>,
  wait: StatedWait,
  atMs: number,
): ReadonlyArray<StatedWait> => {
  const others = waits.filter((one) => one.untilMs > atMs)
  if (others.some((one) => one.tokens <= wait.tokens && one.untilMs >= wait.untilMs)) return others
  return [...others.filter((one) => !(one.tokens >= wait.tokens && one.untilMs <= wait.untilMs)), wait].slice(
    -4,
  )
}

/** Headers showed a limit on input tokens. */
export const read = (belief: Belief, reading: LimitReading, atMs: number): Belief => ({
  ...belief,
  limit: { ...belief.limit, bucket: bucket.readBy(belief.limit.bucket, reading, atMs) },
})

/** So long after a stated wait its word stands: the call that was told goes, whatever is believed. */
const promiseMs = 5_000

/** Whether the provider stated that a call of this size fits by now; what is sent meanwhile voids its word. */
export const isPromised = ({ statedWaits, charges }: Belief, tokens: number, atMs: number): boolean =>
  statedWaits.some(
    (wait) =>
      tokens === wait.tokens &&
      wait.untilMs <= atMs &&
      atMs < wait.untilMs + promiseMs &&
      sentBetween(charges, wait.toldAtMs, atMs) === 0,
  )

/** Until when the provider stated that a call of this size is refused, epoch milliseconds; `atMs` when it did not. */
export const statedUntil = ({ statedWaits }: Belief, tokens: number, atMs: number): number => {
  let untilMs = atMs
  for (const wait of statedWaits) if (tokens >= wait.tokens) untilMs = Math.max(untilMs, wait.untilMs)
  return untilMs
}

/** Input tokens that may be sent at `atMs`, as far as `trust` (0: surely, 1: by the best guess, 2: by the most hopeful bound) goes. */
export const roomAt = (belief: Belief, atMs: number, trust: number): number => {
  let room = Number.POSITIVE_INFINITY
  for (const name of layersThatSpeak(belief)) {
    const leader = leaderOf(belief[name], priorOf(belief, name))
    room = Math.min(room, roomBy(belief[name], leader, belief.charges, atMs, trust))
  }
  return room
}

/** The earliest time at which a call of `tokens` is believed to fit, were nothing more sent, epoch milliseconds; null when waiting does not make it fit. */
export const forecast = (belief: Belief, tokens: number, atMs: number, trust: number): number | null => {
  let fitsAtMs = statedUntil(belief, tokens, atMs)
  for (const name of layersThatSpeak(belief)) {
    const leader = leaderOf(belief[name], priorOf(belief, name))
    const time = fitsBy(belief[name], leader, belief.charges, tokens, atMs, trust)
    if (time === null) return null
    fitsAtMs = Math.max(fitsAtMs, time)
  }
  return fitsAtMs
}

/** Weight from which a hypothesis that does not lead is worth a try. */
const credibleShare = 0.15

/** The earliest time at which a call fits by some credible hypothesis of each layer, though the leading one may not say so; null when by none. */
export const hopefulForecast = (belief: Belief, tokens: number, atMs: number): number | null => {
  let fitsAtMs = statedUntil(belief, tokens, atMs)
  for (const name of layersThatSpeak(belief)) {
    let earliest = Number.POSITIVE_INFINITY
    for (const family of families) {
      if (shareOf(belief[name], priorOf(belief, name), family) < credibleShare) continue
      const time = fitsBy(belief[name], family, belief.charges, tokens, atMs, 0.5)
      if (time !== null) earliest = Math.min(earliest, time)
    }
    if (!Number.isFinite(earliest)) return null
    fitsAtMs = Math.max(fitsAtMs, earliest)
  }
  return fitsAtMs
}

/** The next time at which a try may be risked again, epoch milliseconds: the answer to the last one comes first, and refusals in a row space tries out. */
export const mayRiskAt = (
  { riskedAtMs, answerMs, refusals, refusal }: Belief,
  baseMs: number,
  maxMs: number,
): number => {
  const spacedMs = riskedAtMs + Math.max(leastSpacingMs, answerMs + 10)
  if (refusals < 2 || refusal === null) return spacedMs
  return Math.max(spacedMs, refusal.atMs + Math.min(maxMs, baseMs * 2 ** Math.min(refusals - 2, 20)))
}
