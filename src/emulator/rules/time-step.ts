import { type LimitRule, minuteMs, type Statement } from './rule.ts'

export interface TimeStepState {
  /** Minute (since the epoch) in which the climb began; null before the first accepted call. */
  readonly startedMinute: number | null
  /** Minute of the newest accepted call. */
  readonly usedMinute: number
  /** Input tokens accepted in `usedMinute`. */
  readonly usedTokens: number
}

export interface TimeStepOptions {
  /** Ceiling in the first minute of use, input tokens per minute. */
  readonly floorTokensPerMinute: number
  /** Added to the ceiling at each minute boundary, input tokens per minute. */
  readonly stepTokensPerMinute: number
  /** Highest value of the ceiling, input tokens per minute. */
  readonly tierTokensPerMinute: number
  /** Whole minutes without an accepted call after which the ceiling is back at the floor, >= 1. */
  readonly idleResetMinutes: number
  readonly states?: Statement
}

/**
 * An acceleration limit that climbs with time, as in "Your current limit is 58,276 input tokens per minute,
 * and will increase to 68,276 at the next minute boundary". Use is counted per clock minute, so the use of
 * one minute does not lower the next ceiling. The first accepted call starts the climb; idle time ends it. A
 * refused call does not count as use: it neither starts the climb nor keeps it.
 */
export const timeStep = (options: TimeStepOptions): LimitRule<TimeStepState> => {
  const states = options.states ?? 'ceiling'
  const tier = options.tierTokensPerMinute
  const ceilingIn = (state: TimeStepState, minute: number): number => ceilingInMinute(options, state, minute)
  const usedIn = (state: TimeStepState, minute: number): number =>
    state.usedMinute === minute ? state.usedTokens : 0
  return {
    name: 'time-step',
    states,
    initial: () => ({ startedMinute: null, usedMinute: 0, usedTokens: 0 }),
    advance: (state) => state,
    check: (state, { atMs, inputTokens }) => {
      const minute = minuteOf(atMs)
      const limit = ceilingIn(state, minute)
      const used = usedIn(state, minute)
      if (used + inputTokens <= limit) {
        const startedMinute = isReset(options, state, minute) ? minute : state.startedMinute
        return {
          accepted: true,
          state: { startedMinute, usedMinute: minute, usedTokens: used + inputTokens },
        }
      }
      const next = ceilingIn(state, minute + 1)
      const acceptedAt = states === 'retry-after' ? whenAccepted(options, state, atMs, inputTokens) : null
      return {
        accepted: false,
        state,
        refusal: {
          rule: 'time-step',
          kind: limit < tier ? 'acceleration' : 'input-tokens-per-minute',
          limit,
          used,
          requested: inputTokens,
          ...(states === 'none' ? {} : { currentLimit: limit }),
          ...(states !== 'none' && next > limit ? { nextLimit: next } : {}),
          retryAfterMs: acceptedAt === null ? null : acceptedAt - atMs,
          resetAtMs: (minute + 1) * minuteMs,
          permanent: inputTokens > tier,
        },
      }
    },
    complete: (state) => state,
    headers: (state, atMs) =>
      states === 'none'
        ? []
        : [
            {
              dimension: 'input-tokens-per-minute',
              // As in real answers: headers show the tier, never the ceiling on the way to it.
              limit: tier,
              remaining: Math.max(0, tier - usedIn(state, minuteOf(atMs))),
              resetAtMs: (minuteOf(atMs) + 1) * minuteMs,
            },
          ],
    ceiling: (state, atMs) => {
      const minute = minuteOf(atMs)
      return Math.max(0, ceilingIn(state, minute) - usedIn(state, minute))
    },
    acceptsAtMs: (state, { atMs, inputTokens }) => whenAccepted(options, state, atMs, inputTokens),
  }
}

const minuteOf = (atMs: number): number => Math.floor(atMs / minuteMs)

/** Cold, or idle for so long that the next accepted call begins a new climb. */
const isReset = (options: TimeStepOptions, state: TimeStepState, minute: number): boolean =>
  state.startedMinute === null || minute - state.usedMinute - 1 >= options.idleResetMinutes

const ceilingInMinute = (options: TimeStepOptions, state: TimeStepState, minute: number): number => {
  const climbed =
    state.startedMinute === null || isReset(options, state, minute)
      ? 0
      : (minute - state.startedMinute) * options.stepTokensPerMinute
  return Math.min(options.tierTokensPerMinute, options.floorTokensPerMinute + climbed)
}

const whenAccepted = (
  options: TimeStepOptions,
  state: TimeStepState,
  atMs: number,
  inputTokens: number,
): number | null => {
  const minute = minuteOf(atMs)
  const used = state.usedMinute === minute ? state.usedTokens : 0
  if (used + inputTokens <= ceilingInMinute(options, state, minute)) return atMs
  const steps = Math.ceil((inputTokens - options.floorTokensPerMinute) / options.stepTokensPerMinute)
  const reached = state.startedMinute === null || steps <= 0 ? minute + 1 : state.startedMinute + steps
  const candidate = Math.max(minute + 1, reached)
  return inputTokens <= ceilingInMinute(options, state, candidate) ? candidate * minuteMs : null
}
