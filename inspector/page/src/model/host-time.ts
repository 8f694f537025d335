/** The host's clock as the page knows it: what the host said last, and what has passed since. */
export class HostTime {
  readonly #elapsedMs: () => number
  #saidMs = 0
  #saidAtMs = 0
  #isRunning = false

  /** `elapsedMs` counts milliseconds since any moment; the browser's own date is not asked. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The host said the time; of a recorded file it stands still. */
  set(nowMs: number, isRunning: boolean): void {
    this.#saidMs = nowMs
    this.#saidAtMs = this.#elapsedMs()
    this.#isRunning = isRunning
  }

  /** Nothing is heard of the host any more. */
  stop(): void {
    this.set(this.nowMs(), false)
  }

  /** Epoch milliseconds. */
  nowMs(): number {
    return this.#saidMs + (this.#isRunning ? Math.floor(this.#elapsedMs() - this.#saidAtMs) : 0)
  }
}
