/** The shape of a belief in a snapshot, and the bounds of its size. */
import { Schema } from 'effect'
import { mostAnchors } from '../limits/belief/anchors.ts'
import { type Belief, unknownBelief } from '../limits/belief/belief.ts'
import { type Charges, charged, mostCharges } from '../limits/belief/charges.ts'
import { mostMinutes } from '../limits/belief/clock-window.ts'
import { mostPoints } from '../limits/belief/trailing-window.ts'
import { evidenceKinds } from '../model/evidence.ts'
import { decodeOrThrow, finite, integer, maxSafe } from '../model/invalid.ts'

const tokens = integer(0, maxSafe)
const timeMs = integer(0, maxSafe)
const amount = finite(-maxSafe, maxSafe)
const positive = finite(0, maxSafe)
const atMost = (length: number) => Schema.isMaxLength(length)

const anchors = Schema.Array(Schema.Struct({ atMs: timeMs, level: amount, sentTokens: amount })).check(
  atMost(mostAnchors),
)

const BucketSchema = Schema.Struct({
  beganAtMs: timeMs,
  atMs: timeMs,
  low: amount,
  middle: amount,
  high: amount,
  rateLow: positive,
  rateHigh: positive,
  burstLow: positive,
  burst: positive,
  burstHigh: Schema.NullOr(positive),
  stated: Schema.Boolean,
  fullAtMs: timeMs,
  doubtTokens: tokens,
  refused: anchors,
  accepted: anchors,
  promised: anchors,
})

const points = Schema.Array(Schema.Struct({ atMs: timeMs, before: tokens, within: tokens })).check(
  atMost(mostPoints),
)
const minutes = Schema.Array(Schema.Struct({ minute: tokens, within: tokens })).check(atMost(mostMinutes))

const LayerSchema = Schema.Struct({
  refusedAtMs: timeMs,
  weights: Schema.Struct({ bucket: positive, trailing: positive, clock: positive }),
  bucket: BucketSchema,
  trailing: Schema.Struct({ accepted: points, refused: points }),
  clock: Schema.Struct({
    accepted: minutes,
    refused: minutes,
    stated: Schema.NullOr(Schema.Struct({ minute: tokens, tokens, step: tokens })),
  }),
})

const BeliefSchema = Schema.Struct({
  /** Each with the time since the one before it, milliseconds. */
  charges: Schema.Array(Schema.Tuple([timeMs, tokens])).check(atMost(mostCharges)),
  sentTokens: amount,
  limit: LayerSchema,
  acceleration: LayerSchema,
  statedWaits: Schema.Array(Schema.Struct({ tokens, toldAtMs: timeMs, untilMs: timeMs })).check(atMost(4)),
  refusal: Schema.NullOr(
    Schema.Struct({
      kind: Schema.Literals(evidenceKinds),
      atMs: timeMs,
      tokens,
      trailingTokens: tokens,
      statedLimit: Schema.NullOr(tokens),
      statedNextLimit: Schema.NullOr(tokens),
    }),
  ),
  refusals: tokens,
  credit: positive,
  answerMs: timeMs,
  acceptedAtMs: timeMs,
  riskedAtMs: timeMs,
  highestAccepted: tokens,
})

/** A belief as JSON, its charges as rows. */
export type EncodedBelief = typeof BeliefSchema.Type

export const encodeBelief = (belief: Belief): EncodedBelief => ({
  ...belief,
  charges: belief.charges.map(
    ({ atMs, tokens }, index) => [atMs - (belief.charges[index - 1]?.atMs ?? 0), tokens] as const,
  ),
})

const decodeCharges = (rows: EncodedBelief['charges']): Charges => {
  let atMs = 0
  return rows.map(([afterMs, tokens]) => {
    atMs += afterMs
    return { atMs, tokens }
  })
}

/** The ramp that versions before beliefs wrote. Its record of sent tokens is kept. */
const SlotsSchema = Schema.Array(Schema.Struct({ second: timeMs, tokens }))

/**
 * A belief as it was written. A snapshot without one keeps its record of sent tokens; the rest is learned
 * anew. Throws `InvalidInput`.
 */
export const decodeBelief = (encoded: unknown, ramp: unknown): Belief => {
  if (encoded === undefined) return ofRamp(ramp)
  const belief = decodeOrThrow(BeliefSchema, 'snapshot.belief', encoded)
  return { ...belief, charges: decodeCharges(belief.charges) }
}

const ofRamp = (ramp: unknown): Belief => {
  const slots = typeof ramp === 'object' && ramp !== null && 'slots' in ramp ? ramp.slots : []
  let charges: Charges = []
  // The whole of a second counts as its end.
  for (const { second, tokens } of decodeOrThrow(SlotsSchema, 'snapshot.ramp.slots', slots))
    charges = charged(charges, tokens, second * 1_000 + 999, second * 1_000 + 999)
  return { ...unknownBelief, charges }
}
