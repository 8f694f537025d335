/** A client that stays connected and stops reading: how long it may hold an answer, and a place, that way. */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../clock.ts'

export class WriteStall {
  readonly #response: ServerResponse
  readonly #clock: Clock
  readonly #stallMs: number
  readonly #stalled: () => void
  #cancel: (() => void) | null = null

  /** `stalled` is called once, when nothing was taken for `stallMs` although there was something to take. */
  constructor(response: ServerResponse, clock: Clock, stallMs: number, stalled: () => void) {
    this.#response = response
    this.#clock = clock
    this.#stallMs = stallMs
    this.#stalled = stalled
    response.on('drain', this.stop)
    response.once('close', this.stop)
  }

  /** Something was written that is not taken yet. */
  blocked(): void {
    this.#cancel ??= this.#clock.after(this.#stallMs, () => {
      this.#cancel = null
      this.#stalled()
    })
  }

  /** All has been written. What the client does not take in time is broken off. */
  ended(): void {
    if (this.#response.writableFinished || this.#response.destroyed) return
    this.stop()
    this.#cancel = this.#clock.after(this.#stallMs, () => this.#response.destroy())
  }

  readonly stop = (): void => {
    this.#cancel?.()
    this.#cancel = null
  }
}
