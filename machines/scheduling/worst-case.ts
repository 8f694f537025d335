/** The bounds on waiting that follow from a policy alone, as numbers. */
import { type Policy, weightOf } from '../model/policy.ts'

export interface WorstCase {
  /** Principals with a backlog, the call's own included. Default 1. */
  readonly principals?: number
  /** Calls of its own principal before it. Default 0. */
  readonly callsAhead?: number
  /** Input tokens of the largest among it and those before it. Default: a quantum. */
  readonly largestCallTokens?: number
  /** Whose call it is, for its weight. Default: the principal of the least weight. */
  readonly principal?: string
}

/**
 * The longest time, milliseconds, that primaries can keep an auxiliary from a permit while a place
 * in flight is free for it and the provider asks for no wait. Every `maxDeferralMs` at the latest one
 * principal's turn is served, a call at least; a call that is larger than what its principal gets in
 * a turn takes several, and everybody else may be served once before each of them.
 */
export const worstCaseWaitMs = (
  policy: Policy,
  { principals = 1, callsAhead = 0, largestCallTokens = policy.quantumTokens, principal }: WorstCase = {},
): number => {
  const weight =
    principal === undefined ? Math.min(1, ...Object.values(policy.weights)) : weightOf(policy, principal)
  const calls = callsAhead + 1
  const tokens = calls * Math.max(1, largestCallTokens)
  const turns = Math.max(calls, Math.ceil(tokens / (policy.quantumTokens * weight)))
  return policy.maxDeferralMs * (turns * (principals - 1) + calls)
}
