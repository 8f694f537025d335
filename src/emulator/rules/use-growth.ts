import { type LimitRule, minuteMs, type Statement } from './rule.ts'
import { charge, emptyWindow, expire, oldestAtMs, type TrailingWindow } from './window.ts'

/** Tokens accepted in the last 60 s, and in the 60 s before them. */
export interface UseGrowthState {
  readonly recent: TrailingWindow
  readonly before: TrailingWindow
}

export interface UseGrowthOptions {
  /** The ceiling from cold, input tokens per minute. */
  readonly floorTokensPerMinute: number
  /** Factor by which use may exceed the minute before, >= 1. */
  readonly growthPerMinute: number
  /** Highest value of the ceiling, input tokens per minute. */
  readonly tierTokensPerMinute: number
  readonly states?: Statement
}

/**
 * An acceleration limit that follows use. A call is accepted when the tokens accepted in the last 60 s, with
 * this call, are at most min(tier, max(floor, growth x the 60 s before that)). Silence therefore keeps the
 * ceiling at the floor. It is not public whether Anthropic's limit is of this kind. Only the estimate at the
 * door counts, so completions correct nothing.
 */
export const useGrowth = (options: UseGrowthOptions): LimitRule<UseGrowthState> => {
  const states = options.states ?? 'none'
  const tier = options.tierTokensPerMinute
  const limitOf = (state: UseGrowthState): number =>
    Math.min(
      tier,
      Math.max(options.floorTokensPerMinute, Math.floor(options.growthPerMinute * state.before.sum)),
    )
  return {
    name: 'use-growth',
    states,
    initial: () => ({ recent: emptyWindow, before: emptyWindow }),
    advance,
    check: (earlier, { atMs, inputTokens }) => {
      const state = advance(earlier, atMs)
      const limit = limitOf(state)
      if (state.recent.sum + inputTokens <= limit) {
        return {
          accepted: true,
          state: { recent: charge(state.recent, atMs, inputTokens), before: state.before },
        }
      }
      const acceptedAt = states === 'retry-after' ? whenAccepted(state, atMs, inputTokens, limitOf) : null
      return {
        accepted: false,
        state,
        refusal: {
          rule: 'use-growth',
          kind: limit < tier ? 'acceleration' : 'input-tokens-per-minute',
          limit,
          used: state.recent.sum,
          requested: inputTokens,
          // No nextLimit: this ceiling slides with the window, it does not step at a boundary.
          ...(states === 'none' ? {} : { currentLimit: limit }),
          retryAfterMs: acceptedAt === null ? null : acceptedAt - atMs,
          resetAtMs: resetAt(state, atMs),
          permanent: inputTokens > tier,
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
          // As in real answers: headers show the tier, never the ceiling on the way to it.
          limit: tier,
          remaining: Math.max(0, tier - state.recent.sum),
          resetAtMs: resetAt(state, atMs),
        },
      ]
    },
    ceiling: (earlier, atMs) => {
      const state = advance(earlier, atMs)
      return Math.max(0, limitOf(state) - state.recent.sum)
    },
    acceptsAtMs: (state, { atMs, inputTokens }) => whenAccepted(state, atMs, inputTokens, limitOf),
  }
}

const advance = (state: UseGrowthState, atMs: number): UseGrowthState => {
  const recent = expire(state.recent, atMs - minuteMs)
  let before = state.before
  for (let cell = recent.expired; cell !== null; cell = cell.next) {
    before = charge(before, cell.atMs, cell.tokens)
  }
  before = expire(before, atMs - 2 * minuteMs).window
  return recent.window === state.recent && before === state.before ? state : { recent: recent.window, before }
}

const resetAt = (state: UseGrowthState, atMs: number): number =>
  state.recent.sum === 0 ? atMs : state.recent.newestAtMs + minuteMs

/** Steps from one expiry to the next: the ceiling changes only there. It rises and falls with `before`. */
const whenAccepted = (
  from: UseGrowthState,
  fromMs: number,
  inputTokens: number,
  limitOf: (state: UseGrowthState) => number,
): number | null => {
  let atMs = fromMs
  let state = advance(from, atMs)
  while (state.recent.sum + inputTokens > limitOf(state)) {
    const recentLeaves = oldestAtMs(state.recent)
    const beforeLeaves = oldestAtMs(state.before)
    if (recentLeaves === null && beforeLeaves === null) return null
    atMs = Math.min(
      recentLeaves === null ? Number.POSITIVE_INFINITY : recentLeaves + minuteMs,
      beforeLeaves === null ? Number.POSITIVE_INFINITY : beforeLeaves + 2 * minuteMs,
    )
    state = advance(state, atMs)
  }
  return atMs
}
