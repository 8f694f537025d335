import type { LimitRule, Refusal, Statement } from './rule.ts'

export interface SpendCapState {
  readonly acceptedRequests: number
}

/** The answer of a spend cap: neither a wait nor a changed request helps. */
export const spendCapRefusal: Refusal = {
  rule: 'spend-cap',
  kind: 'quota-exhausted',
  limit: null,
  used: 0,
  requested: 1,
  retryAfterMs: null,
  resetAtMs: null,
  permanent: true,
}

/** A spend cap: refuses everything after this many accepted requests (default 0: from the start). */
export const spendCap = (options: {
  readonly afterRequests?: number
  readonly states?: Statement
}): LimitRule<SpendCapState> => {
  const capRequests = options.afterRequests ?? 0
  return {
    name: 'spend-cap',
    states: options.states ?? 'none',
    initial: () => ({ acceptedRequests: 0 }),
    advance: (state) => state,
    check: (state) =>
      state.acceptedRequests < capRequests
        ? { accepted: true, state: { acceptedRequests: state.acceptedRequests + 1 } }
        : { accepted: false, state, refusal: { ...spendCapRefusal, used: state.acceptedRequests } },
    complete: (state) => state,
    headers: () => [],
    ceiling: (state) => (state.acceptedRequests < capRequests ? Number.POSITIVE_INFINITY : 0),
    acceptsAtMs: (state, { atMs }) => (state.acceptedRequests < capRequests ? atMs : null),
  }
}
