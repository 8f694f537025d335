/**
 * Names in the order of their turns: a persistent queue from which a name may also leave in the middle.
 * The name is marked, and dropped when its turn would come. So a departure costs the same for any number of names.
 */
import { HashMap, Option } from 'effect'
import * as queue from './queue.ts'

export interface Ring {
  /** The first name has not left. */
  readonly order: queue.Queue<string>
  /** For each name that has left: how many of its places in `order`, counted from the front, no longer count. */
  readonly left: HashMap.HashMap<string, number>
  /** Names that have not left. */
  readonly size: number
}

export const emptyRing: Ring = { order: queue.empty(), left: HashMap.empty(), size: 0 }

/** Places of `name` that no longer count. */
const timesLeft = ({ left }: Pick<Ring, 'left'>, name: string): number =>
  HashMap.isEmpty(left) ? 0 : Option.getOrElse(HashMap.get(left, name), () => 0)

/** Adds a name behind all others. The name must not be in the ring. */
export const push = ({ order, left, size }: Ring, name: string): Ring => ({
  order: queue.push(order, name),
  left,
  size: size + 1,
})

/** The name whose turn it is; undefined when the ring is empty. */
export const peek = ({ order }: Ring): string | undefined => queue.peek(order)

/** Drops the names at the front that have left. */
const trimmed = (from: Ring): Ring => {
  let ring = from
  for (let name = peek(ring); name !== undefined; name = peek(ring)) {
    const times = timesLeft(ring, name)
    if (times === 0) break
    const left = times === 1 ? HashMap.remove(ring.left, name) : HashMap.set(ring.left, name, times - 1)
    ring = { order: queue.pop(ring.order), left, size: ring.size }
  }
  return ring
}

/** The ring without the name whose turn it is. */
export const pop = (ring: Ring): Ring =>
  ring.size === 0 ? ring : trimmed({ order: queue.pop(ring.order), left: ring.left, size: ring.size - 1 })

/** Marked places that the order may hold, beside as many as there are names, before all of them are dropped. */
const slack = 64

/** The ring without `name`, which must be in it. */
export const leave = (before: Ring, name: string): Ring => {
  const left = HashMap.set(before.left, name, timesLeft(before, name) + 1)
  const ring = trimmed({ order: before.order, left, size: before.size - 1 })
  return ring.order.size > 2 * ring.size + slack ? fromNames(names(ring)) : ring
}

/** The first `count` names at most, in the order of their turns. */
export const first = ({ order, left, size }: Ring, count: number): ReadonlyArray<string> => {
  const toSkip = new Map(left)
  const places = queue.first(order, count + order.size - size)
  const staying = places.filter((name) => {
    const times = toSkip.get(name) ?? 0
    toSkip.set(name, times - 1)
    return times === 0
  })
  return staying.slice(0, count)
}

/** All names, in the order of their turns. O(n). */
export const names = (ring: Ring): ReadonlyArray<string> => first(ring, ring.size)

export const fromNames = (inOrder: ReadonlyArray<string>): Ring => ({
  order: queue.fromArray(inOrder),
  left: HashMap.empty(),
  size: inOrder.length,
})
