/** The host's clock on the page: the last time that the host reported, plus the time since then. */
export class HostTime {
  readonly #elapsedMs: () => number
  #saidMs = 0
  #saidAtMs = 0
  #isRunning = false

  /** `elapsedMs` counts milliseconds since any moment; the browser's own date is not used. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** Takes the time that the host reported. The time of a recorded file stands still. */
  set(nowMs: number, isRunning: boolean): void {
    this.#saidMs = nowMs
    this.#saidAtMs = this.#elapsedMs()
    this.#isRunning = isRunning
  }

  /** The host is no longer heard: the time stops. */
  stop(): void {
    this.set(this.nowMs(), false)
  }

  /** Epoch milliseconds. */
  nowMs(): number {
    return this.#saidMs + (this.#isRunning ? Math.floor(this.#elapsedMs() - this.#saidAtMs) : 0)
  }
}
