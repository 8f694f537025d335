import { dayMs, type LimitCall, type LimitRule, type Statement } from './rule.ts'

export interface DailyQuotaState {
  /** Day (since the epoch, UTC) that `used` belongs to. */
  readonly day: number
  /** Input tokens or requests accepted in that day. */
  readonly used: number
}

/** A quota of input tokens or of requests that starts anew at 00:00 UTC. */
export const dailyQuota = (options: {
  readonly inputTokensPerDay?: number
  readonly requestsPerDay?: number
  readonly states?: Statement
}): LimitRule<DailyQuotaState> => {
  const countsTokens = options.inputTokensPerDay !== undefined
  const limit = options.inputTokensPerDay ?? options.requestsPerDay ?? 0
  const dimension = countsTokens ? 'tokens-per-day' : 'requests-per-day'
  const states = options.states ?? 'retry-after'
  const dayOf = (atMs: number): number => Math.floor(atMs / dayMs)
  const usedAt = (state: DailyQuotaState, atMs: number): number =>
    state.day === dayOf(atMs) ? state.used : 0
  const costOf = (call: LimitCall): number => (countsTokens ? call.inputTokens : 1)
  const nextDayAtMs = (atMs: number): number => (dayOf(atMs) + 1) * dayMs
  return {
    name: 'daily-quota',
    states,
    initial: () => ({ day: 0, used: 0 }),
    advance: (state) => state,
    check: (state, call) => {
      const used = usedAt(state, call.atMs)
      const cost = costOf(call)
      if (used + cost <= limit) {
        return { accepted: true, state: { day: dayOf(call.atMs), used: used + cost } }
      }
      const resetAtMs = nextDayAtMs(call.atMs)
      return {
        accepted: false,
        state,
        refusal: {
          rule: 'daily-quota',
          kind: dimension,
          limit,
          used,
          requested: cost,
          retryAfterMs: states === 'retry-after' && cost <= limit ? resetAtMs - call.atMs : null,
          resetAtMs,
          permanent: cost > limit,
        },
      }
    },
    complete: (state, { atMs, inputTokens, actualInputTokens }) =>
      countsTokens && actualInputTokens !== inputTokens
        ? { day: dayOf(atMs), used: Math.max(0, usedAt(state, atMs) + actualInputTokens - inputTokens) }
        : state,
    headers: (state, atMs) =>
      states === 'none'
        ? []
        : [
            {
              dimension,
              limit,
              remaining: Math.max(0, limit - usedAt(state, atMs)),
              resetAtMs: nextDayAtMs(atMs),
            },
          ],
    ceiling: (state, atMs) => {
      const left = Math.max(0, limit - usedAt(state, atMs))
      return countsTokens || left === 0 ? left : Number.POSITIVE_INFINITY
    },
    acceptsAtMs: (state, call) => {
      if (usedAt(state, call.atMs) + costOf(call) <= limit) return call.atMs
      return costOf(call) <= limit ? nextDayAtMs(call.atMs) : null
    },
  }
}
