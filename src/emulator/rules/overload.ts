import { drawFrom } from './random.ts'
import type { LimitRule, Refusal, Statement } from './rule.ts'

export interface OverloadState {
  /** State of the pseudo-random sequence, 32 bits. */
  readonly random: number
}

/** The answer of an overloaded provider: it states no limit and no wait. */
export const overloadedRefusal: Refusal = {
  rule: 'overload',
  kind: 'overloaded',
  limit: null,
  used: 0,
  requested: 1,
  retryAfterMs: null,
  resetAtMs: null,
  permanent: false,
}

/**
 * The load of all other users: each call is refused with this probability, as with Anthropic's 529 and
 * OpenAI's 503. A refusal moves the sequence on; otherwise the same draw would refuse every retry.
 */
export const overload = (options: {
  /** In [0, 1]. */
  readonly probability: number
  readonly states?: Statement
}): LimitRule<OverloadState> => ({
  name: 'overload',
  states: options.states ?? 'none',
  initial: (seed) => ({ random: seed >>> 0 }),
  advance: (state) => state,
  check: (state) => {
    const { value, next } = drawFrom(state.random)
    if (value >= options.probability) return { accepted: true, state: { random: next } }
    return { accepted: false, state: { random: next }, refusal: overloadedRefusal }
  },
  complete: (state) => state,
  headers: () => [],
  // Chance is not a ceiling: the next draw may accept any size.
  ceiling: () => Number.POSITIVE_INFINITY,
  acceptsAtMs: (_state, { atMs }) => atMs,
})
