import type { Clock } from '../../src/clock.ts'

/** A clock that stands still until it is told to go on. */
export interface ManualClock extends Clock {
  /** Moves by this many ms and calls everything that falls due on the way, in order. */
  advance(ms: number): void
  /** Timers that are armed. */
  armed(): number
}

export const makeManualClock = (startMs = 0): ManualClock => {
  let nowMs = startMs
  let timers: { readonly dueMs: number; readonly fn: () => void }[] = []
  return {
    now: () => nowMs,
    after: (ms, fn) => {
      const timer = { dueMs: nowMs + ms, fn }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    advance: (ms) => {
      const untilMs = nowMs + ms
      for (;;) {
        const next = timers.reduce<(typeof timers)[number] | undefined>(
          (first, timer) =>
            timer.dueMs <= untilMs && (first === undefined || timer.dueMs < first.dueMs) ? timer : first,
          undefined,
        )
        if (next === undefined) break
        timers = timers.filter((other) => other !== next)
        nowMs = Math.max(nowMs, next.dueMs)
        next.fn()
      }
      nowMs = untilMs
    },
    armed: () => timers.length,
  }
}

/** Waits, by turns of the event loop and never by time, until the condition holds. */
export const until = async (condition: () => boolean, turns = 20_000): Promise<void> => {
  for (let turn = 0; !condition(); turn++) {
    if (turn === turns) throw new Error('the condition did not come true')
    await new Promise((resolve) => setImmediate(resolve))
  }
}
