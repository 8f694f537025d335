import type { Clock } from '../clock.ts'

/**
 * Longest time that a timer runs before the clock is read again, ms. A timer counts only the time that the
 * machine is awake, and it does not notice that the clock was set or that the machine has slept.
 */
export const longestUnwatchedMs = 5_000

/**
 * One timer for one scope; none while no time is asked for. Only an earlier time arms it again. A later time
 * is noticed when the present timer fires, which is cheaper than a new timer for every event.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => number | null
  #armedAt = Number.POSITIVE_INFINITY
  #cancel: (() => void) | null = null

  /** `ring` is called when the time may have come. It returns the next time, epoch milliseconds, or null. */
  constructor(clock: Clock, ring: () => number | null) {
    this.#clock = clock
    this.#ring = ring
  }

  /**
   * Rings at `atMs` at the latest. When the clock jumps past `atMs`, it rings within `longestUnwatchedMs`.
   * Null asks for nothing.
   */
  set(atMs: number | null): void {
    if (atMs === null || atMs >= this.#armedAt) return
    this.#cancel?.()
    this.#armedAt = atMs
    const leftMs = atMs - this.#clock.now()
    this.#cancel = this.#clock.after(Math.min(leftMs, longestUnwatchedMs), () => {
      this.#armedAt = Number.POSITIVE_INFINITY
      this.#cancel = null
      this.set(this.#ring())
    })
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
    this.#armedAt = Number.NEGATIVE_INFINITY
  }
}
