import { maxEpochMs } from '../machines/index.ts'

/** Time as the runtime sees it: real, or driven by a test or a simulation. */
export interface Clock {
  /** Epoch milliseconds, whole. */
  now(): number
  /** Calls `fn` once, `ms` milliseconds from now; the answer cancels it. Never keeps the process alive. */
  after(ms: number, fn: () => void): () => void
  /**
   * Milliseconds since any moment, by a clock that nobody sets; it may stand still while the machine
   * sleeps. Absent where `now` itself is such a clock.
   */
  elapsed?(): number
  /** The epoch milliseconds that this clock shows when the machine's shows `epochMs`. Absent where they are one clock. */
  fromMachine?(epochMs: number): number
  /** Keeps the process alive until the answer is called. Absent where time does not pass by itself. */
  hold?(): () => void
}

/** Longest timer that Node keeps; a longer one would fire at once. */
export const longestTimerMs = 2_147_483_647

/** Ref'd while somebody holds the process. One timer for all: to make one for each call costs more than to ref it. */
const holding = { timer: null as NodeJS.Timeout | null, holders: 0 }

const hold = (): (() => void) => {
  holding.timer ??= setInterval(() => {}, longestTimerMs)
  holding.holders += 1
  if (holding.holders === 1) holding.timer.ref()
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    holding.holders -= 1
    if (holding.holders === 0) holding.timer?.unref()
  }
}

/** Real time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after: (ms, fn) => {
    const timer = setTimeout(fn, Math.min(Math.max(0, ms), longestTimerMs))
    timer.unref()
    return () => clearTimeout(timer)
  },
  hold,
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly fn: () => void
}

const isBefore = (one: Timer, other: Timer): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

/** A clock that a test or a simulation moves. Timers fire in order of time, then of arming. */
export class ManualClock implements Clock {
  #now: number
  #order = 0
  readonly #timers: Timer[] = []

  constructor(startMs = 0) {
    this.#now = startMs
  }

  now(): number {
    return this.#now
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, fn }
    this.#timers.push(timer)
    return () => {
      const index = this.#timers.indexOf(timer)
      if (index >= 0) this.#timers.splice(index, 1)
    }
  }

  /** When the next timer is due, epoch milliseconds; null when none is armed. */
  nextAt(): number | null {
    return this.#timers.reduce<number | null>(
      (least, { at }) => (least === null || at < least ? at : least),
      null,
    )
  }

  /** Moves to the next timer and fires it. False when none is armed. */
  step(): boolean {
    const next = this.#timers.reduce<Timer | undefined>(
      (least, timer) => (least === undefined || isBefore(timer, least) ? timer : least),
      undefined,
    )
    if (next === undefined) return false
    this.#timers.splice(this.#timers.indexOf(next), 1)
    this.#now = Math.max(this.#now, next.at)
    next.fn()
    return true
  }

  /** Moves by `ms`, firing what falls due on the way. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (let at = this.nextAt(); at !== null && at <= end; at = this.nextAt()) this.step()
    this.#now = end
  }

  /** Sets the time without firing anything, as a machine's clock does when it is adjusted or the machine slept. */
  jump(toMs: number): void {
    this.#now = toMs
  }
}

/** A clock that is moved gently, or read in whole milliseconds, is not taken for one that was set. */
const noticedMs = 50

/** A given clock may show fractions, or nothing at all: then the time is the last that it showed. */
const wholeClock = (clock: Clock): Clock => {
  let lastMs = 0
  return {
    now: () => {
      const shownMs = Math.floor(clock.now())
      if (Math.abs(shownMs) <= maxEpochMs) lastMs = shownMs
      return lastMs
    },
    after: (ms, fn) => clock.after(ms, fn),
    ...(clock.elapsed === undefined ? {} : { elapsed: () => clock.elapsed!() }),
    ...(clock.hold === undefined ? {} : { hold: () => clock.hold!() }),
  }
}

/**
 * A clock that never goes back: where the machine's clock is set back, it goes on from where it
 * was, by the time that has really passed. Where it is set forward, or the machine has slept, it
 * follows. `notBeforeMs` is the newest time already written down.
 */
export const steadyClock = (machine: Clock, notBeforeMs = 0): Clock => {
  const clock = wholeClock(machine)
  const elapsed = (): number | null => clock.elapsed?.() ?? null
  let offsetMs = Math.max(0, notBeforeMs - clock.now())
  let lastMs = clock.now()
  let lastElapsedMs = elapsed()
  const steady: Clock & { fromMachine(epochMs: number): number } = {
    now: () => {
      const nowMs = clock.now()
      // Most events share their millisecond with another; what was set in it is noticed in the next.
      if (nowMs === lastMs) return nowMs + offsetMs
      const elapsedMs = elapsed()
      const shownMs = nowMs - lastMs
      const passedMs = elapsedMs === null || lastElapsedMs === null ? 0 : elapsedMs - lastElapsedMs
      if (shownMs < 0 || passedMs - shownMs > noticedMs) offsetMs += Math.round(passedMs) - shownMs
      lastMs = nowMs
      lastElapsedMs = elapsedMs
      return nowMs + offsetMs
    },
    after: (ms, fn) => clock.after(ms, fn),
    hold: () => clock.hold?.() ?? (() => {}),
    fromMachine: (epochMs) => {
      // What was set since the last look is noticed first.
      steady.now()
      return epochMs + offsetMs
    },
  }
  return steady
}
