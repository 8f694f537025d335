import type { Clock } from '../clock.ts'

/**
 * Keeps the process alive while a caller waits for an event that only time or an answer brings. The host's
 * own timers do not, so an idle host never keeps a process alive.
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
