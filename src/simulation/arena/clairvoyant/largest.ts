/** A set of numbers that gives its largest first: a binary heap. */
export class Largest {
  readonly #heap: number[] = []

  get size(): number {
    return this.#heap.length
  }

  push(value: number): void {
    const heap = this.#heap
    let child = heap.length
    heap.push(value)
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (heap[parent]! >= value) break
      heap[child] = heap[parent]!
      child = parent
    }
    heap[child] = value
  }

  /** Removes and returns the largest. The heap must not be empty. */
  pop(): number {
    const heap = this.#heap
    const largest = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return largest
    let parent = 0
    for (;;) {
      let child = 2 * parent + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]! > heap[child]!) child += 1
      if (heap[child]! <= last) break
      heap[parent] = heap[child]!
      parent = child
    }
    heap[parent] = last
    return largest
  }
}
