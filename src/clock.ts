import { maxEpochMs } from '../machines/index.ts'

/** Time as the runtime sees it: real, or driven by a test or a simulation. */
export interface Clock {
  /** Epoch milliseconds, whole. */
  now(): number
  /**
   * Calls `fn` once, `ms` milliseconds from now. Returns a function that cancels it. Never keeps the process
   * alive.
   */
  after(ms: number, fn: () => void): () => void
  /**
   * Milliseconds since any moment, by a clock that is never set; it may stand still while the machine sleeps.
   * Absent when `now` itself is such a clock.
   */
  elapsed?(): number
  /** The epoch milliseconds that this clock shows when the machine's shows `epochMs`. Absent where they are one clock. */
  fromMachine?(epochMs: number): number
  /**
   * Keeps the process alive until the returned function is called. Absent when time does not pass by itself.
   */
  hold?(): () => void
}

/** Longest timer that Node keeps; a longer one would fire at once. */
export const longestTimerMs = 2_147_483_647

/**
 * Ref'd while the process is held. All holders share one timer: a new timer for each call costs more than the
 * ref.
 */
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

  /** Moves by `ms` and fires the timers that fall due on the way. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (let at = this.nextAt(); at !== null && at <= end; at = this.nextAt()) this.step()
    this.#now = end
  }

  /** Sets the time without firing timers, as when a machine's clock is adjusted or the machine slept. */
  jump(toMs: number): void {
    this.#now = toMs
  }
}

/** Smaller differences are normal when a clock is adjusted slowly, or read in whole milliseconds. */
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
 * A clock that never goes back. When the machine's clock is set back, this clock continues from its last time
 * with the time that really passed. When the machine's clock is set forward, or the machine slept, this clock
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
      // Most events share their millisecond with another. A change of the clock within one millisecond is
      // noticed in the next.
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
      // A change of the clock since the last look is noticed first.
      steady.now()
      return epochMs + offsetMs
    },
  }
  return steady
}
