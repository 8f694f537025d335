import type { LimitRule, Statement } from './rule.ts'

export interface ConcurrencyState {
  readonly inFlight: number
}

/** At most so many calls at once. A slot opens when a call ends, not at a time that could be stated. */
export const concurrency = (options: {
  readonly maxConcurrent: number
  readonly states?: Statement
}): LimitRule<ConcurrencyState> => ({
  name: 'concurrency',
  states: options.states ?? 'none',
  initial: () => ({ inFlight: 0 }),
  advance: (state) => state,
  check: (state) =>
    state.inFlight < options.maxConcurrent
      ? { accepted: true, state: { inFlight: state.inFlight + 1 } }
      : {
          accepted: false,
          state,
          refusal: {
            rule: 'concurrency',
            kind: 'concurrency',
            limit: options.maxConcurrent,
            used: state.inFlight,
            requested: 1,
            retryAfterMs: null,
            resetAtMs: null,
            permanent: false,
          },
        },
  complete: (state) => ({ inFlight: Math.max(0, state.inFlight - 1) }),
  headers: () => [],
  ceiling: (state) => (state.inFlight < options.maxConcurrent ? Number.POSITIVE_INFINITY : 0),
  acceptsAtMs: (state, { atMs }) => (state.inFlight < options.maxConcurrent ? atMs : null),
})
