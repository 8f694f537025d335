import type { Clock } from '../clock.ts'

/**
 * Keeps the process alive while somebody waits for what only time or an answer ends. The timers of
 * the host do not: an idle host never keeps a process alive.
 */
export class ProcessHold {
  readonly #clock: Clock
  #holders = 0
  #release: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  take(): void {
    this.#holders += 1
    if (this.#holders === 1) this.#release = this.#clock.hold?.() ?? (() => {})
  }

  drop(): void {
    this.#holders -= 1
    if (this.#holders === 0) this.#release()
  }
}
