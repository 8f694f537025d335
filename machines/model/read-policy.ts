/** Policies as users and journals write them: completed by what they leave out. */
import { InvalidInput, shown } from './invalid.ts'
import { checkPolicy, type Policy, type PolicyInput, presetNames } from './policy.ts'
import { autoQos, defaultPolicy, policyPresets } from './presets.ts'

const presetNamed = (name: unknown): Policy => {
  const known = presetNames.find((one) => one === name)
  if (known !== undefined) return policyPresets[known]
  const expected = `one of ${presetNames.join(', ')}`
  throw new InvalidInput([{ field: 'policy.preset', expected, got: shown(name) }])
}

/**
 * Fills in the fields that are left out, from the preset that `input` names or else from `base`, and checks the
 * whole. Throws `InvalidInput` with field, range and value.
 */
export const parsePolicy = (input: PolicyInput = {}, base: Policy = defaultPolicy): Policy => {
  if (typeof input !== 'object' || input === null || input.preset === undefined)
    return completed('policy', input, base)
  const { preset, ...fields } = input
  return completed('policy', fields, presetNamed(preset))
}

/** The fields of `policy` that differ from `base`, so that `parsePolicy(differences, base)` is `policy` again. */
export const policyDifferences = (policy: Policy, base: Policy = defaultPolicy): Partial<Policy> =>
  Object.fromEntries(
    Object.entries(policy).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(base[field as keyof Policy]),
    ),
  )

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
