/**
 * How many calls may be in flight: the policy's capacity, or, where it is to be learned, something
 * between a floor and that, which rises by one for every full round of answers while all places are
 * used (additive), and falls when the provider says that there were too many (multiplicative).
 * The pattern is TCP's (Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for
 * Congestion Avoidance in Computer Networks", 1989).
 */
import type { EvidenceKind } from '../model/evidence.ts'
import type { Policy } from '../model/policy.ts'
import { reserveFor } from '../model/shares.ts'

export interface LearnedCapacity {
  readonly places: number
  /** Answers since it last grew, as a share of a full round. */
  readonly credit: number
  /** Refusals of calls granted before this instant are the same burst, epoch milliseconds. */
  readonly epochMs: number
}

/** The share of places that remains after an overload whose evidence names no number. */
const decrease = 0.8

interface Holder {
  readonly policy: Policy
  readonly learned: LearnedCapacity
}

export const initialCapacity = (policy: Policy): LearnedCapacity => ({
  places: policy.capacity,
  credit: 0,
  epochMs: 0,
})

/** Calls that may be in flight now. */
export const capacityOf = ({ policy, learned }: Holder): number =>
  policy.capacityFloor === null
    ? policy.capacity
    : Math.max(Math.min(learned.places, policy.capacity), policy.capacityFloor)

/** Places of these that auxiliaries never take. */
export const reservedOf = (holder: Holder): number => reserveFor(holder.policy, capacityOf(holder))

/** After an answer; `inUse` counts the places taken while it ran. Never grows while places were free. */
export const grown = ({ policy, learned }: Holder, inUse: number): LearnedCapacity => {
  if (policy.capacityFloor === null || inUse < learned.places || learned.places >= policy.capacity)
    return learned
  const credit = learned.credit + 1 / learned.places
  return credit < 1 ? { ...learned, credit } : { ...learned, places: learned.places + 1, credit: 0 }
}

/** After a refusal for concurrency or overload; `stillInUse` places are taken without the refused call. */
export const shrunk = (
  { policy, learned }: Holder,
  {
    kind,
    stillInUse,
    grantedAt,
    at,
  }: { kind: EvidenceKind; stillInUse: number; grantedAt: number; at: number },
): LearnedCapacity => {
  if (policy.capacityFloor === null || (kind !== 'concurrency' && kind !== 'overloaded')) return learned
  // So many were let in beside the refused one at most; every refusal of a burst says more exactly how many.
  if (kind === 'overloaded' && grantedAt < learned.epochMs) return learned
  const places = kind === 'concurrency' ? stillInUse : Math.floor(learned.places * decrease)
  return { places: Math.max(policy.capacityFloor, Math.min(places, learned.places)), credit: 0, epochMs: at }
}
