/** A policy from the fields that are stated, and from what an older version has written. */
import type { Charges } from './charges.ts'
import { InvalidInput, shown } from './invalid.ts'
import { checkPolicy, type Limits, type Policy, type PresetName, type QosPolicy } from './policy.ts'
import { contractPolicy, defaultPolicy, policyPresets } from './presets.ts'

export type PolicyInput = Partial<Omit<Policy, 'limits' | 'charges' | 'qos'>> & {
  /** The preset that gives the fields that are left out. Default: that of the function that takes the policy. */
  readonly preset?: PresetName
  readonly limits?: Partial<Limits>
  /** A field that is left out is as in `defaultCharges`. */
  readonly charges?: Partial<Charges>
  /** A field that is left out is `auto`: `{}` sizes everything by the capacity. */
  readonly qos?: Partial<QosPolicy> | null
}

/** Everything sized by the capacity. */
const autoQos: QosPolicy = {
  bandPlaces: 'auto',
  principalCalls: 'auto',
  burstCalls: 'auto',
  callsPerSecond: 'auto',
}

const presetNamed = (name: unknown): Policy => {
  if (typeof name === 'string' && Object.hasOwn(policyPresets, name)) return policyPresets[name as PresetName]
  const expected = `one of ${Object.keys(policyPresets).join(', ')}`
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

/**
 * The fields of `policy` that differ from `base`, so that `parsePolicy(differences, base)` is `policy` again. Without
 * `base` they differ from the policy's own preset, which is among them unless it is the default; then
 * `parsePolicy(differences)` is `policy` again.
 */
export const policyDifferences = (policy: Policy, base?: Policy): Partial<Policy> => {
  if (base !== undefined) return fieldsThatDiffer(policy, base)
  const { preset } = policy
  const named = preset === defaultPolicy.preset ? {} : { preset }
  return { ...named, ...fieldsThatDiffer(policy, policyPresets[preset]) }
}

const fieldsThatDiffer = (policy: Policy, base: Policy): Partial<Policy> =>
  Object.fromEntries(
    Object.entries(policy).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(base[field as keyof Policy]),
    ),
  )

/**
 * The values of fields whose default has changed: they keep the behaviour of scopes from before the field
 * existed.
 */
const asBefore: Partial<Policy> = { preset: 'contract', maxRankDeferralMs: null, favor: 'arrival' }

/**
 * A policy from a journal or a snapshot. An older version may have written it: missing fields get the values
 * that keep its old meaning. `name` is used in errors, for example `snapshot.policy`. Throws `InvalidInput`.
 */
export const restorePolicy = (stored: unknown, name: string): Policy =>
  completed(
    name,
    typeof stored === 'object' && stored !== null ? { ...asBefore, ...stored } : (stored as PolicyInput),
    contractPolicy,
  )

const completed = (name: string, input: PolicyInput, base: Policy): Policy => {
  const whole =
    typeof input === 'object' && input !== null
      ? {
          ...base,
          ...floorUnder(input, base),
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

/** A preset's floor is no reason to refuse a smaller capacity. */
const floorUnder = ({ capacity }: PolicyInput, { capacityFloor }: Policy): PolicyInput =>
  capacityFloor !== null && typeof capacity === 'number' && capacity >= 1 && capacity < capacityFloor
    ? { capacityFloor: Math.floor(capacity) }
    : {}

const merged = (base: object, input: unknown): unknown =>
  input === undefined ? base : typeof input === 'object' && input !== null ? { ...base, ...input } : input
