/**
 * What a scope believes about the limits of its provider on input tokens. Two layers, because providers
 * have two: a limit, and an acceleration limit on the way to it; the kind that a refusal names says which
 * of them it tells of. A refusal that names no kind tells of the limit, and the layer's hypotheses find out
 * what it is. `learn.ts` learns, `forecast.ts` tells what follows for a call of any size.
 *
 * Pure and bounded: some hundred numbers, whatever happens. Levels refill by arithmetic.
 */
import type { Evidence } from '../../model/evidence.ts'
import type { Charges } from './charges.ts'
import { type Layer, type Prior, speaks, unknownLayer } from './layer.ts'
import type { StatedWait } from './stated-waits.ts'

export const layerNames = ['limit', 'acceleration'] as const
export type LayerName = (typeof layerNames)[number]

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

/** Refusals that a scope may risk before it has learned anything, and at most. */
export const mostCredit = 3

export const unknownBelief: Belief = {
  charges: [],
  sentTokens: 0,
  limit: unknownLayer,
  acceleration: unknownLayer,
  statedWaits: [],
  refusal: null,
  refusals: 0,
  credit: mostCredit,
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

export const layersThatSpeak = (belief: Belief): ReadonlyArray<LayerName> =>
  layerNames.filter((name) => speaks(belief[name]))

/** Whether anything is believed of input tokens at all; while nothing is, everything is sent. */
export const isSilent = ({ limit, acceleration }: Belief): boolean => !speaks(limit) && !speaks(acceleration)
