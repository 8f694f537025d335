interface Timer {
  readonly atMs: number
  readonly order: number
  fn: (() => void) | null
}

/**
 * Virtual time: a binary heap of future events. Events of equal time run in the order of arming, so one seed
 * gives one trace. It is also a `Clock`.
 */
export class Timeline {
  readonly #heap: Timer[] = []
  #nowMs: number
  #order = 0

  constructor(startMs = 0) {
    this.#nowMs = startMs
  }

  now(): number {
    return this.#nowMs
  }

  /** Calls `fn` in `ms` milliseconds. Returns a function that cancels it. */
  after(ms: number, fn: () => void): () => void {
    return this.at(this.#nowMs + Math.max(0, ms), fn)
  }

  /** Calls `fn` at `atMs`. Returns a function that cancels it. */
  at(atMs: number, fn: () => void): () => void {
    const timer: Timer = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, fn }
    this.#heap.push(timer)
    this.#rise(this.#heap.length - 1)
    return () => {
      timer.fn = null
    }
  }

  /** Time of the next event, or null. */
  nextAt(): number | null {
    while (this.#heap.length > 0 && this.#heap[0]!.fn === null) this.#take()
    return this.#heap[0]?.atMs ?? null
  }

  /** Runs the next event. False when there is none. */
  step(): boolean {
    if (this.nextAt() === null) return false
    const timer = this.#take()
    this.#nowMs = timer.atMs
    timer.fn?.()
    return true
  }

  /** Runs all events up to `untilMs`. */
  runUntil(untilMs: number): void {
    for (let next = this.nextAt(); next !== null && next <= untilMs; next = this.nextAt()) this.step()
    this.#nowMs = Math.max(this.#nowMs, untilMs)
  }

  #take(): Timer {
    const first = this.#heap[0]!
    const last = this.#heap.pop()!
    if (this.#heap.length > 0) {
      this.#heap[0] = last
      this.#sink(0)
    }
    return first
  }

  #before(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one]!, this.#heap[other]!]
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
  }

  #swap(one: number, other: number): void {
    const timer = this.#heap[one]!
    this.#heap[one] = this.#heap[other]!
    this.#heap[other] = timer
  }

  #rise(index: number): void {
    let child = index
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!this.#before(child, parent)) return
      this.#swap(child, parent)
      child = parent
    }
  }

  #sink(index: number): void {
    let parent = index
    for (;;) {
      let least = parent
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < this.#heap.length && this.#before(child, least)) least = child
      }
      if (least === parent) return
      this.#swap(parent, least)
      parent = least
    }
  }
}
