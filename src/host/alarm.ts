import type { Clock } from '../clock.ts'

/**
 * Longest that a timer runs before the clock is looked at again, ms. A timer counts the time that
 * the machine is awake, and nothing tells it that the clock was set or that the machine has slept.
 */
export const longestUnwatchedMs = 5_000

/**
 * One timer for one scope, none while nothing is asked for. It is armed again only for an earlier
 * time: a later one is noticed when the present timer fires, which is cheaper than a new timer for
 * every event.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => number | null
  #armedAt = Number.POSITIVE_INFINITY
  #cancel: (() => void) | null = null

  /** `ring` is called when a time may have come, and answers the next one, epoch milliseconds, or null. */
  constructor(clock: Clock, ring: () => number | null) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Makes sure to ring at `atMs` at the latest, and, should the clock jump past it, within `longestUnwatchedMs`; null asks for nothing. */
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
