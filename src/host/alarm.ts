import type { Clock } from '../clock.ts'

/**
 * One timer for one scope. It is armed again only for an earlier time: a later one is noticed
 * when the present timer fires, which is cheaper than a new timer for every event.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => number | null
  #armedAt = Number.POSITIVE_INFINITY
  #cancel: (() => void) | null = null

  /** `ring` is called when a time has come, and answers the next one, epoch milliseconds, or null. */
  constructor(clock: Clock, ring: () => number | null) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Makes sure to ring at `atMs` at the latest; null asks for nothing. */
  set(atMs: number | null): void {
    if (atMs === null || atMs >= this.#armedAt) return
    this.#cancel?.()
    this.#armedAt = atMs
    this.#cancel = this.#clock.after(atMs - this.#clock.now(), () => {
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
