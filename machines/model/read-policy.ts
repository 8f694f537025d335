/** Policies as users and journals write them: completed by what they leave out. */
import { checkPolicy, type Policy, type PolicyInput } from './policy.ts'
import { autoQos, defaultPolicy } from './presets.ts'

/** Fills in defaults and checks the whole. Throws `InvalidInput` with field, range and value. */
export const parsePolicy = (input: PolicyInput = {}, base: Policy = defaultPolicy): Policy =>
  completed('policy', input, base)

/**
 * The values of fields whose default has changed: they keep the behaviour of scopes from before the field
 * existed.
 */
const asBefore: Partial<Policy> = { maxRankDeferralMs: null, favor: 'arrival' }

/**
 * A policy from a journal or a snapshot. An older version may have written it: missing fields get the values
 * that keep its old meaning. `name` is used in errors, for example `snapshot.policy`. Throws `InvalidInput`.
 */
export const restorePolicy = (stored: unknown, name: string): Policy =>
  completed(
    name,
    typeof stored === 'object' && stored !== null ? { ...asBefore, ...stored } : (stored as PolicyInput),
    defaultPolicy,
  )

const completed = (name: string, input: PolicyInput, base: Policy): Policy => {
  const whole =
    typeof input === 'object' && input !== null
      ? {
          ...base,
          ...input,
          limits: merged(base.limits, input.limits),
          charges: merged(base.charges, input.charges),
          qos:
            input.qos === null
              ? null
              : input.qos === undefined
                ? base.qos
                : merged(base.qos ?? autoQos, input.qos),
        }
      : input
  return checkPolicy(whole, name)
}

const merged = (base: object, input: unknown): unknown =>
  input === undefined ? base : typeof input === 'object' && input !== null ? { ...base, ...input } : input
