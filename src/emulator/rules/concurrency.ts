import type { LimitRule, Statement } from './rule.ts'

export interface ConcurrencyState {
  readonly inFlight: number
}

export interface ConcurrencyChange {
  readonly atMs: number
  readonly maxConcurrent: number
}

/**
 * At most `maxConcurrent` calls at once. A slot opens when a call ends, so no time can be stated for it. When
 * the bound falls at a set time, calls in flight stay.
 */
export const concurrency = (options: {
  readonly maxConcurrent: number
  /** Ascending by time, the first at 0; instead of `maxConcurrent` alone. */
  readonly changes?: ReadonlyArray<ConcurrencyChange>
  readonly states?: Statement
}): LimitRule<ConcurrencyState> => {
  const { changes = [{ atMs: 0, maxConcurrent: options.maxConcurrent }] } = options
  const boundAt = (atMs: number): number =>
    changes.findLast((change) => change.atMs <= atMs)?.maxConcurrent ?? options.maxConcurrent
  return {
    name: 'concurrency',
    states: options.states ?? 'none',
    initial: () => ({ inFlight: 0 }),
    advance: (state) => state,
    check: (state, { atMs }) =>
      state.inFlight < boundAt(atMs)
        ? { accepted: true, state: { inFlight: state.inFlight + 1 } }
        : {
            accepted: false,
            state,
            refusal: {
              rule: 'concurrency',
              kind: 'concurrency',
              limit: boundAt(atMs),
              used: state.inFlight,
              requested: 1,
              retryAfterMs: null,
              resetAtMs: null,
              permanent: false,
            },
          },
    complete: (state) => ({ inFlight: Math.max(0, state.inFlight - 1) }),
    headers: () => [],
    ceiling: (state, atMs) => (state.inFlight < boundAt(atMs) ? Number.POSITIVE_INFINITY : 0),
    acceptsAtMs: (state, { atMs }) => {
      if (state.inFlight < boundAt(atMs)) return atMs
      const wider = changes.find((change) => change.atMs > atMs && change.maxConcurrent > state.inFlight)
      return wider?.atMs ?? null
    },
  }
}
