import type { Kernel } from './kernel.ts'
import type { Observation } from './scope-record.ts'

/** The most observations that a slow reader may fall behind. */
export const watchBuffer = 4_096

type Result = IteratorResult<Observation, undefined>

const over: Result = { done: true, value: undefined }

/** The observations of a host as an iterator; it ends when the host has closed, or its reader leaves. */
export class Watch implements AsyncIterableIterator<Observation, undefined>, Disposable {
  readonly #buffer: Observation[] = []
  #stop: () => void = () => {}
  /** Readers that asked before their observation came, in order. */
  readonly #readers: Array<(result: Result) => void> = []
  #isOver = false

  constructor(kernel: Kernel) {
    this.#stop = kernel.observe(
      (observation) => this.#take(observation),
      () => this.#end(),
    )
  }

  next(): Promise<Result> {
    const value = this.#buffer.shift()
    if (value !== undefined) return Promise.resolve({ done: false, value })
    if (this.#isOver) return Promise.resolve(over)
    return new Promise((resolve) => this.#readers.push(resolve))
  }

  return(): Promise<Result> {
    this.#buffer.length = 0
    this.#end()
    return Promise.resolve(over)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  [Symbol.dispose](): void {
    void this.return()
  }

  #take(observation: Observation): void {
    const reader = this.#readers.shift()
    if (reader !== undefined) return reader({ done: false, value: observation })
    if (this.#buffer.length >= watchBuffer) this.#buffer.shift()
    this.#buffer.push(observation)
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stop()
    for (const reader of this.#readers.splice(0)) reader(over)
  }
}
