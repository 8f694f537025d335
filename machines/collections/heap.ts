/**
 * A persistent leftist heap (Okasaki, "Purely Functional Data Structures", 3.1) of things due at
 * a time: the earliest in O(1), adding and taking in O(log n), old versions stay.
 */
export interface Due {
  /** Epoch milliseconds. */
  readonly at: number
  readonly callId: string
}

export interface Heap {
  readonly rank: number
  readonly size: number
  readonly due: Due
  readonly left: Heap | null
  readonly right: Heap | null
}

const leftistRank = (heap: Heap | null): number => heap?.rank ?? 0
const sizeOf = (heap: Heap | null): number => heap?.size ?? 0

const node = (due: Due, one: Heap | null, other: Heap | null): Heap => {
  const [left, right] = leftistRank(one) >= leftistRank(other) ? [one, other] : [other, one]
  return { due, left, right, rank: leftistRank(right) + 1, size: sizeOf(one) + sizeOf(other) + 1 }
}

const before = (one: Due, other: Due): boolean =>
  one.at < other.at || (one.at === other.at && one.callId < other.callId)

const merge = (one: Heap | null, other: Heap | null): Heap | null => {
  if (one === null) return other
  if (other === null) return one
  return before(one.due, other.due)
    ? node(one.due, one.left, merge(one.right, other))
    : node(other.due, other.left, merge(one, other.right))
}

export const add = (heap: Heap | null, due: Due): Heap => merge(heap, node(due, null, null)) as Heap
/** Adds many at once in O(n): neighbours are merged in rounds, each round half as long as the one before. */
export const addAll = (heap: Heap | null, dues: ReadonlyArray<Due>): Heap | null => {
  let heaps: Array<Heap | null> = dues.map((due) => node(due, null, null))
  while (heaps.length > 1) {
    const merged: Array<Heap | null> = []
    for (let index = 0; index < heaps.length; index += 2)
      merged.push(merge(heaps[index]!, heaps[index + 1] ?? null))
    heaps = merged
  }
  return merge(heap, heaps[0] ?? null)
}
export const rest = (heap: Heap): Heap | null => merge(heap.left, heap.right)
