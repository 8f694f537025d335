import type { Completion, LimitCall, LimitFact, LimitRule, RuleAnswer } from './rule.ts'

/** States of the members, in their order. */
export type CompositeState = readonly unknown[]

/**
 * Several rules as one. A call is accepted when every rule accepts it, and is charged by all rules or by
 * none.
 */
export interface Composite {
  initial(seed: number): CompositeState
  check(states: CompositeState, call: LimitCall): RuleAnswer<CompositeState>
  complete(states: CompositeState, completion: Completion): CompositeState
  headers(states: CompositeState, atMs: number): readonly LimitFact[]
  ceiling(states: CompositeState, atMs: number): number
  acceptsAtMs(states: CompositeState, call: LimitCall): number | null
}

/** The answer names the first rule that refuses. */
export const allOf = (rules: readonly LimitRule<unknown>[]): Composite => ({
  // Rules that draw get different sequences from one seed.
  initial: (seed) => rules.map((rule, index) => rule.initial(seed + index * 0x9e3779b1)),
  check: (states, call) => {
    const charged: unknown[] = new Array(rules.length)
    for (let index = 0; index < rules.length; index++) {
      const answer = rules[index]!.check(states[index], call)
      if (!answer.accepted) {
        return {
          accepted: false,
          refusal: answer.refusal,
          state: moved(rules, states, call, index, answer.state),
        }
      }
      charged[index] = answer.state
    }
    return { accepted: true, state: charged }
  },
  complete: (states, completion) => rules.map((rule, index) => rule.complete(states[index], completion)),
  headers: (states, atMs) => tightest(rules.flatMap((rule, index) => rule.headers(states[index], atMs))),
  ceiling: (states, atMs) => {
    let least = Number.POSITIVE_INFINITY
    for (let index = 0; index < rules.length; index++) {
      least = Math.min(least, rules[index]!.ceiling(states[index], atMs))
    }
    return least
  },
  acceptsAtMs: (states, call) => whenAllAccept(rules, states, call),
})

/**
 * The states after a refusal. The rules before the refusing one only moved in time, so no refusal pays for an
 * expiry twice.
 */
const moved = (
  rules: readonly LimitRule<unknown>[],
  states: CompositeState,
  call: LimitCall,
  refusedBy: number,
  refusedState: unknown,
): CompositeState =>
  rules.map((rule, index) => (index === refusedBy ? refusedState : rule.advance(states[index], call.atMs)))

/** One fact per dimension: when several limits share one, the client sees the limit with the least left. */
const tightest = (facts: readonly LimitFact[]): readonly LimitFact[] => {
  const byDimension = new Map<LimitFact['dimension'], LimitFact>()
  for (const fact of facts) {
    const known = byDimension.get(fact.dimension)
    if (known === undefined || fact.remaining < known.remaining) byDimension.set(fact.dimension, fact)
  }
  return [...byDimension.values()]
}

/**
 * The first time at which every rule accepts. A ceiling can fall again, so the latest of the single
 * answers is asked again until all agree.
 */
const whenAllAccept = (
  rules: readonly LimitRule<unknown>[],
  states: CompositeState,
  call: LimitCall,
): number | null => {
  let atMs = call.atMs
  for (;;) {
    let latestMs = atMs
    for (let index = 0; index < rules.length; index++) {
      const acceptedAt = rules[index]!.acceptsAtMs(states[index], { ...call, atMs })
      if (acceptedAt === null) return null
      latestMs = Math.max(latestMs, acceptedAt)
    }
    if (latestMs === atMs) return atMs
    atMs = latestMs
  }
}
