import { type LimitRule, minuteMs, type Statement } from './rule.ts'
import { charge, emptyWindow, expire, oldestAtMs, type TrailingWindow } from './window.ts'

export const windowForms = ['fixed', 'sliding'] as const
export type WindowForm = (typeof windowForms)[number]

/**
 * Input tokens per window, counted at acceptance. A fixed window begins at whole multiples of its
 * length and forgets everything at once, so twice the limit can pass around a boundary; a sliding one
 * looks back over its length at every moment.
 */
export const tokenWindow = (options: {
  readonly inputTokensPerWindow: number
  readonly form: WindowForm
  /** Default a minute. */
  readonly windowMs?: number
  readonly states?: Statement
}): LimitRule<TrailingWindow> => {
  const { inputTokensPerWindow: limit, form, windowMs = minuteMs } = options
  const states = options.states ?? 'retry-after'
  const startOf = (atMs: number): number => Math.floor(atMs / windowMs) * windowMs
  const advance = (state: TrailingWindow, atMs: number): TrailingWindow =>
    expire(state, form === 'sliding' ? atMs - windowMs : startOf(atMs) - 1).window
  const whenAccepted = (from: TrailingWindow, fromMs: number, inputTokens: number): number | null => {
    if (inputTokens > limit) return null
    let atMs = fromMs
    let state = advance(from, atMs)
    while (state.sum + inputTokens > limit) {
      atMs = form === 'sliding' ? oldestAtMs(state)! + windowMs : startOf(atMs) + windowMs
      state = advance(state, atMs)
    }
    return atMs
  }
  const resetAt = (state: TrailingWindow, atMs: number): number => {
    if (form === 'fixed') return startOf(atMs) + windowMs
    return state.sum === 0 ? atMs : state.newestAtMs + windowMs
  }
  return {
    name: 'token-window',
    states,
    initial: () => emptyWindow,
    advance,
    check: (earlier, { atMs, inputTokens }) => {
      const state = advance(earlier, atMs)
      if (state.sum + inputTokens <= limit) return { accepted: true, state: charge(state, atMs, inputTokens) }
      const acceptedAt = states === 'retry-after' ? whenAccepted(state, atMs, inputTokens) : null
      return {
        accepted: false,
        state,
        refusal: {
          rule: 'token-window',
          kind: 'input-tokens-per-minute',
          limit,
          used: state.sum,
          requested: inputTokens,
          ...(states === 'none' ? {} : { currentLimit: Math.floor((limit * minuteMs) / windowMs) }),
          retryAfterMs: acceptedAt === null ? null : acceptedAt - atMs,
          resetAtMs: resetAt(state, atMs),
          permanent: inputTokens > limit,
        },
      }
    },
    complete: (state) => state,
    headers: (earlier, atMs) => {
      if (states === 'none') return []
      const state = advance(earlier, atMs)
      return [
        {
          dimension: 'input-tokens-per-minute',
          limit: Math.floor((limit * minuteMs) / windowMs),
          remaining: Math.max(0, limit - state.sum),
          resetAtMs: resetAt(state, atMs),
        },
      ]
    },
    ceiling: (state, atMs) => Math.max(0, limit - advance(state, atMs).sum),
    acceptsAtMs: (state, { atMs, inputTokens }) => whenAccepted(state, atMs, inputTokens),
  }
}
