/** Time as the HTTP side sees it: real, or driven by a test. */
export interface Clock {
  /** Milliseconds, whole. */
  now(): number
  /** Calls `fn` once, `ms` from now; the answer cancels it. */
  after(ms: number, fn: () => void): () => void
}

/** Longest timer that Node keeps; a longer one would fire at once. */
const longestTimerMs = 2_147_483_647

/** Real time. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, fn) => {
    const timer = setTimeout(fn, Math.min(ms, longestTimerMs))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
