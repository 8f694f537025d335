/** What a policy grants of the places: to auxiliaries, and to each principal. */
import type { Policy } from './policy.ts'

const roundHalfToEven = (value: number): number => {
  const floor = Math.floor(value)
  const rest = value - floor
  if (rest !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}

/**
 * Places kept for primaries: the chosen number, or `round(capacity * fraction)` half to even and at least 1
 * in any real pool.
 */
export const reserveFor = ({ reserve, reserveFraction }: Policy, capacity: number): number => {
  if (reserve !== 'auto') return Math.min(reserve, capacity - 1)
  if (capacity <= 1) return 0
  return Math.max(1, Math.min(roundHalfToEven(capacity * reserveFraction), capacity - 1))
}

/** `reserveFor` the policy's own capacity. */
export const reserveOf = (policy: Policy): number => reserveFor(policy, policy.capacity)

/**
 * The record's own value under a caller's name. A name may equal an inherited property such as `constructor`.
 */
const named = (record: Readonly<Record<string, number>>, name: string): number | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** A principal's share of the auxiliary lane. */
export const weightOf = (policy: Policy, principal: string): number => named(policy.weights, principal) ?? 1

/** Auxiliaries that a principal may have in flight; null when only the places bound it. */
export const quotaOf = (policy: Policy, principal: string): number | null =>
  named(policy.quotas, principal) ?? policy.principalQuota
