/** What a scope learns from its calls: sent, accepted and refused ones, and the limits that headers show. */
import type { Evidence, LimitReading } from '../../model/evidence.ts'
import { type Belief, isSilent, type LayerName, layersThatSpeak, mostCredit, priorOf } from './belief.ts'
import * as bucket from './bucket.ts'
import { promisedBy, readBy } from './bucket-statements.ts'
import { charged, sentBetween, sentInMinute } from './charges.ts'
import * as clock from './clock-window.ts'
import { acceptedBy, type Layer, leaderOf, refusedBy, speaks } from './layer.ts'
import { waitsAfterAcceptance, waitsAfterRefusal } from './stated-waits.ts'

/** One acceptance earns so much of a refusal: in a bucket little is gained by trying, under growth every step is found by trying. */
const earned: Readonly<Record<LayerName, number>> = { limit: 1 / 50, acceleration: 1 / 12 }

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
    statedWaits: waitsAfterAcceptance(belief.statedWaits, tokens, atMs),
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
    layer = { ...layer, bucket: promisedBy(layer.bucket, tokens, evidence.retryAfterMs, answer) }
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
    statedWaits: waitsAfterRefusal(belief.statedWaits, tokens, atMs, evidence),
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

/** Headers showed a limit on input tokens. */
export const read = (belief: Belief, reading: LimitReading, atMs: number): Belief => ({
  ...belief,
  limit: { ...belief.limit, bucket: readBy(belief.limit.bucket, reading, atMs) },
})

/** An operator ends the waits that the provider stated. */
export const released = (belief: Belief): Belief => ({ ...belief, statedWaits: [] })
