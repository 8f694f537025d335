/** Chooses the rival that ours is shown beside. */
import type { ArenaResult, PolicyResult } from './arena.ts'
import { type PolicyName, policyNames } from './contenders.ts'

export const ours: ReadonlyArray<PolicyName> = ['rightofway-adaptive', 'rightofway']
const rivals = policyNames.filter((name) => !ours.includes(name) && name !== 'oracle')

/**
 * The rival that serves primaries best: the fewest unserved, then the shortest mean wait, then the
 * most auxiliary tokens. Null when no rival ran.
 */
export const bestRival = ({ policies }: Pick<ArenaResult, 'policies'>): PolicyName | null => {
  const isBetter = (one: PolicyResult, other: PolicyResult): boolean =>
    one.primariesUnserved !== other.primariesUnserved
      ? one.primariesUnserved < other.primariesUnserved
      : one.primaryWaitVsOracle !== other.primaryWaitVsOracle
        ? one.primaryWaitVsOracle < other.primaryWaitVsOracle
        : one.auxiliaryTokensServed > other.auxiliaryTokensServed
  return rivals.reduce<PolicyName | null>((best, name) => {
    const result = policies[name]
    if (result === undefined) return best
    return best === null || isBetter(result, policies[best]!) ? name : best
  }, null)
}

/** Ours first, then the best rival and the oracle, then the others in their order. */
export const inOrder = (result: Pick<ArenaResult, 'policies'>): ReadonlyArray<PolicyName> => {
  const ran = policyNames.filter((name) => result.policies[name] !== undefined)
  const rival = bestRival(result)
  const front = [...ours.filter((name) => ran.includes(name)), ...(rival === null ? [] : [rival])]
  if (ran.includes('oracle')) front.push('oracle')
  return [...front, ...ran.filter((name) => !front.includes(name))]
}
