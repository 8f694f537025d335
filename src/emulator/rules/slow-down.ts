import { type LimitRule, minuteMs, type Statement } from './rule.ts'
import { charge, emptyWindow, expire, oldestAtMs, type TrailingWindow } from './window.ts'

export interface SlowDownState {
  /** Tokens accepted in the trailing minute. */
  readonly recent: TrailingWindow
  /** Number of the window in force, counted from time 0. */
  readonly windowIndex: number
  /** Highest trailing minute of the window in force so far, tokens. */
  readonly peakTokens: number
  /** Highest trailing minute of the window before, tokens. */
  readonly previousPeakTokens: number
}

export interface SlowDownOptions {
  /** Up to this rate the rule accepts every call, input tokens per minute. */
  readonly steadyTokensPerMinute: number
  /** A trailing minute may exceed the peak of the window before by this factor, >= 1. */
  readonly growth: number
  /** Length of a window, ms, at least a minute. Windows follow each other from time 0. */
  readonly windowMs: number
  readonly states?: Statement
}

/**
 * An acceleration limit as OpenAI describes `slow_down`: above a steady rate, a trailing minute may
 * be at most growth x the highest trailing minute of the window before (a secondary source: 50 % per
 * 15 min above 1M tokens per minute). Windows are consecutive, not sliding, so the rate can rise
 * once just before a boundary and again just after it.
 */
export const slowDown = (options: SlowDownOptions): LimitRule<SlowDownState> => {
  const states = options.states ?? 'none'
  const limitOf = (state: SlowDownState): number =>
    Math.max(options.steadyTokensPerMinute, Math.floor(options.growth * state.previousPeakTokens))
  const advance = (state: SlowDownState, atMs: number): SlowDownState =>
    advanceTo(state, atMs, options.windowMs)
  return {
    name: 'slow-down',
    states,
    initial: () => ({ recent: emptyWindow, windowIndex: 0, peakTokens: 0, previousPeakTokens: 0 }),
    advance,
    check: (earlier, { atMs, inputTokens }) => {
      const state = advance(earlier, atMs)
      const limit = limitOf(state)
      if (state.recent.sum + inputTokens <= limit) {
        const recent = charge(state.recent, atMs, inputTokens)
        return {
          accepted: true,
          state: { ...state, recent, peakTokens: Math.max(state.peakTokens, recent.sum) },
        }
      }
      const acceptedAt =
        states === 'retry-after' ? whenAccepted(state, atMs, inputTokens, options, limitOf) : null
      return {
        accepted: false,
        state,
        refusal: {
          rule: 'slow-down',
          kind: 'acceleration',
          limit,
          used: state.recent.sum,
          requested: inputTokens,
          ...(states === 'none' ? {} : { currentLimit: limit }),
          retryAfterMs: acceptedAt === null ? null : acceptedAt - atMs,
          resetAtMs: state.recent.sum === 0 ? atMs : state.recent.newestAtMs + minuteMs,
          permanent: false,
        },
      }
    },
    complete: (state) => state,
    // The provider publishes no header for this limit.
    headers: () => [],
    ceiling: (earlier, atMs) => {
      const state = advance(earlier, atMs)
      return Math.max(0, limitOf(state) - state.recent.sum)
    },
    acceptsAtMs: (state, { atMs, inputTokens }) => whenAccepted(state, atMs, inputTokens, options, limitOf),
  }
}

const advanceTo = (state: SlowDownState, atMs: number, windowMs: number): SlowDownState => {
  const target = Math.floor(atMs / windowMs)
  let { recent, windowIndex, peakTokens, previousPeakTokens } = state
  while (windowIndex < target) {
    if (peakTokens === 0 && previousPeakTokens === 0) {
      windowIndex = target
      break
    }
    windowIndex += 1
    previousPeakTokens = peakTokens
    // A window begins with the trailing minute that it inherits.
    recent = expire(recent, windowIndex * windowMs - minuteMs).window
    peakTokens = recent.sum
  }
  recent = expire(recent, atMs - minuteMs).window
  return recent === state.recent && windowIndex === state.windowIndex
    ? state
    : { recent, windowIndex, peakTokens, previousPeakTokens }
}

/** Steps from one expiry or window boundary to the next: only there the limit and the use change. */
const whenAccepted = (
  from: SlowDownState,
  fromMs: number,
  inputTokens: number,
  options: SlowDownOptions,
  limitOf: (state: SlowDownState) => number,
): number | null => {
  let atMs = fromMs
  let state = advanceTo(from, atMs, options.windowMs)
  while (state.recent.sum + inputTokens > limitOf(state)) {
    const leaves = oldestAtMs(state.recent)
    if (leaves === null && state.peakTokens === 0 && state.previousPeakTokens === 0) return null
    atMs = Math.min(
      leaves === null ? Number.POSITIVE_INFINITY : leaves + minuteMs,
      (state.windowIndex + 1) * options.windowMs,
    )
    state = advanceTo(state, atMs, options.windowMs)
  }
  return atMs
}
