/** The settings that an operator may override by environment variables. */
import { InvalidInput, type Policy, type PolicyInput, parsePolicy } from '../../machines/index.ts'

export const reserveVariable = 'RIGHTOFWAY_RESERVE'
export const reserveFractionVariable = 'RIGHTOFWAY_RESERVE_FRACTION'

type Problem = InvalidInput['problems'][number]

/** A variable as a number; null when unset or blank. A value that does not match `pattern` is a problem. */
const readNumber = (
  env: NodeJS.ProcessEnv,
  field: string,
  { expected, isValid }: { expected: string; isValid: (text: string) => boolean },
  problems: Array<Problem>,
): number | null => {
  const text = env[field]?.trim() ?? ''
  if (text === '') return null
  if (isValid(text)) return Number(text)
  problems.push({ field, expected, got: JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text) })
  return null
}

const aReserve = { expected: 'an integer', isValid: (text: string) => /^[+-]?\d+$/.test(text) }
const aFraction = {
  expected: 'a number in [0, 1]',
  isValid: (text: string) => /^\d*\.?\d+$/.test(text) && Number(text) <= 1,
}

/**
 * Returns `policy` with the reserve that the environment states. `RIGHTOFWAY_RESERVE` is a number of places,
 * clamped to `[0, capacity-1]`. It wins over `RIGHTOFWAY_RESERVE_FRACTION`, which sizes a reserve that is
 * `auto`. Throws `InvalidInput` that names the variable, or the policy's field.
 */
export const policyFromEnvironment = (env: NodeJS.ProcessEnv, policy: PolicyInput = {}): Policy => {
  const problems: Array<Problem> = []
  const reserve = readNumber(env, reserveVariable, aReserve, problems)
  const fraction = readNumber(env, reserveFractionVariable, aFraction, problems)
  if (problems.length > 0) throw new InvalidInput(problems)
  // A preset may keep no place: here one is kept by the fraction, unless the policy says otherwise.
  const stated = parsePolicy({
    ...(policy.preset === undefined ? { reserve: 'auto' as const } : {}),
    ...policy,
  })
  const reserveFraction = fraction ?? stated.reserveFraction
  if (reserve === null) return { ...stated, reserveFraction }
  return {
    ...stated,
    reserveFraction,
    reserve: Math.max(0, Math.min(reserve, stated.capacity - 1)),
  }
}
