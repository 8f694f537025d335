/**
 * A persistent first-in-first-out queue (two lists, after Okasaki, "Purely Functional Data
 * Structures", 5.2): adding and taking cost O(1) amortized, and an old version stays as it was,
 * so that a snapshot of a scope costs nothing.
 */
interface Cell<T> {
  readonly value: T
  readonly rest: Cell<T> | null
}

export interface Queue<T> {
  /** Oldest first. */
  readonly front: Cell<T> | null
  /** Newest first. */
  readonly back: Cell<T> | null
  readonly size: number
}

const none: Queue<never> = { front: null, back: null, size: 0 }

export const empty = <T>(): Queue<T> => none

/** Adds a value behind all others. */
export const push = <T>(queue: Queue<T>, value: T): Queue<T> =>
  queue.front === null
    ? { front: { value, rest: null }, back: null, size: 1 }
    : { front: queue.front, back: { value, rest: queue.back }, size: queue.size + 1 }

/** The first value; undefined when the queue is empty. */
export const peek = <T>(queue: Queue<T>): T | undefined => queue.front?.value

/** The queue without its first value. */
export const pop = <T>(queue: Queue<T>): Queue<T> => {
  if (queue.front === null) return queue
  if (queue.front.rest !== null) return { front: queue.front.rest, back: queue.back, size: queue.size - 1 }
  return { front: reversed(queue.back), back: null, size: queue.size - 1 }
}

const reversed = <T>(cells: Cell<T> | null): Cell<T> | null => {
  let result: Cell<T> | null = null
  for (let cell = cells; cell !== null; cell = cell.rest) result = { value: cell.value, rest: result }
  return result
}

/**
 * Puts a value into its place by `order`, ascending. Cheap near the front, where returning calls belong. Gives the
 * same queue when that place is taken: then a call has come back whose old place was never removed.
 */
export const insert = <T>(queue: Queue<T>, value: T, order: (value: T) => number): Queue<T> => {
  const place = order(value)
  const passed: T[] = []
  let cell = queue.front
  while (cell !== null && order(cell.value) < place) {
    passed.push(cell.value)
    cell = cell.rest
  }
  if (cell !== null && order(cell.value) === place) return queue
  if (cell === null && queue.back !== null) return insert(fromArray(toArray(queue)), value, order)
  let front: Cell<T> = { value, rest: cell }
  for (let index = passed.length - 1; index >= 0; index -= 1)
    front = { value: passed[index] as T, rest: front }
  return { front, back: queue.back, size: queue.size + 1 }
}

/** The queue without the value at `place` by `order`; the same queue when there is none. Cheap near the front. */
export const remove = <T>(queue: Queue<T>, place: number, order: (value: T) => number): Queue<T> => {
  const passed: T[] = []
  let cell = queue.front
  while (cell !== null && order(cell.value) !== place) {
    passed.push(cell.value)
    cell = cell.rest
  }
  if (cell === null) {
    const kept = toArray(queue).filter((value) => order(value) !== place)
    return kept.length === queue.size ? queue : fromArray(kept)
  }
  let front = cell.rest
  for (let index = passed.length - 1; index >= 0; index -= 1)
    front = { value: passed[index] as T, rest: front }
  if (front === null) return { front: reversed(queue.back), back: null, size: queue.size - 1 }
  return { front, back: queue.back, size: queue.size - 1 }
}

/**
 * The first `count` values at most; the same for equal queues, whatever operations made them. O(count) where the
 * front list holds them, else one walk over the back list.
 */
export const first = <T>(queue: Queue<T>, count: number): ReadonlyArray<T> => {
  const values: T[] = []
  for (let cell = queue.front; cell !== null && values.length < count; cell = cell.rest)
    values.push(cell.value)
  const wanted = Math.min(count, queue.size)
  if (values.length === wanted) return values
  // The front list is used up. In the back list the oldest value stands last.
  let cell = queue.back
  for (let newer = queue.size - wanted; newer > 0; newer -= 1) cell = (cell as Cell<T>).rest
  const others: T[] = []
  for (; cell !== null; cell = cell.rest) others.push(cell.value)
  return [...values, ...others.reverse()]
}

/** Oldest first. O(n). */
export const toArray = <T>(queue: Queue<T>): T[] => {
  const values: T[] = []
  for (let cell = queue.front; cell !== null; cell = cell.rest) values.push(cell.value)
  const newer: T[] = []
  for (let cell = queue.back; cell !== null; cell = cell.rest) newer.push(cell.value)
  for (let index = newer.length - 1; index >= 0; index -= 1) values.push(newer[index] as T)
  return values
}

export const fromArray = <T>(values: ReadonlyArray<T>): Queue<T> => {
  let front: Cell<T> | null = null
  for (let index = values.length - 1; index >= 0; index -= 1)
    front = { value: values[index] as T, rest: front }
  return { front, back: null, size: values.length }
}
