/**
 * Names in the order of their turns. A persistent queue of numbered places: a name may leave in the
 * middle (its place is only dropped when it comes to the front, so that leaving costs no more however
 * many names there are), and may come back to a place that it had before.
 */
import { HashMap, Option } from 'effect'
import * as queue from './queue.ts'

interface Turn {
  readonly name: string
  readonly place: number
}

export interface Ring {
  /** By place. Its first is never one that has left. */
  readonly order: queue.Queue<Turn>
  /** Where each name stands; every other place of it in `order` is empty. */
  readonly places: HashMap.HashMap<string, number>
  /** Names that have not left. */
  readonly size: number
  /** The place behind all others. */
  readonly nextPlace: number
}

export const emptyRing: Ring = { order: queue.empty(), places: HashMap.empty(), size: 0, nextPlace: 0 }

/** Where `name` stands; null when it is not in the ring. */
export const placeOf = ({ places, size }: Ring, name: string): number | null =>
  size === 0 ? null : Option.getOrElse(HashMap.get(places, name), () => null)

const isTaken = ({ places }: Ring, { name, place }: Turn): boolean =>
  Option.getOrUndefined(HashMap.get(places, name)) === place

const byPlace = ({ place }: Turn): number => place

/** Behind all others. The name must not be in the ring. */
export const push = ({ order, places, size, nextPlace }: Ring, name: string): Ring => ({
  order: queue.push(order, { name, place: nextPlace }),
  places: HashMap.set(places, name, nextPlace),
  size: size + 1,
  nextPlace: nextPlace + 1,
})

/** The name whose turn it is, or undefined when the ring is empty. */
export const peek = ({ order }: Ring): string | undefined => queue.peek(order)?.name

/** Drops the empty places at the front. */
const trimmed = (ring: Ring): Ring => {
  let { order } = ring
  for (let turn = queue.peek(order); turn !== undefined && !isTaken(ring, turn); turn = queue.peek(order))
    order = queue.pop(order)
  return order === ring.order ? ring : { ...ring, order }
}

/** Empty places may make up so much of the order before they are dropped. */
const slack = 64

/** Without `name`, which must be in the ring. */
export const leave = ({ order, places, size, nextPlace }: Ring, name: string): Ring => {
  const left = { order, places: HashMap.remove(places, name), size: size - 1, nextPlace }
  const ring = trimmed(left)
  return ring.order.size > 2 * ring.size + slack
    ? { ...ring, order: queue.fromArray([...turns(ring)]) }
    : ring
}

/** At a place that `name` had before; it may stand elsewhere now. Cheap near the front. */
export const backTo = (before: Ring, name: string, place: number): Ring => {
  const ring = placeOf(before, name) === null ? before : leave(before, name)
  return {
    order: queue.insert(ring.order, { name, place }, byPlace),
    places: HashMap.set(ring.places, name, place),
    size: ring.size + 1,
    nextPlace: ring.nextPlace,
  }
}

function* turns(ring: Ring): Generator<Turn> {
  for (let { order } = ring; order.size > 0; order = queue.pop(order)) {
    const turn = queue.peek(order) as Turn
    if (isTaken(ring, turn)) yield turn
  }
}

/** The names in the order of their turns, one by one. */
export function* names(ring: Ring): Generator<string> {
  for (const { name } of turns(ring)) yield name
}

/** The first `count` names at most, in the order of their turns. */
export const first = (ring: Ring, count: number): ReadonlyArray<string> => {
  const found: string[] = []
  for (const name of names(ring)) {
    if (found.length >= count) break
    found.push(name)
  }
  return found
}

/** The names with their places, and the place behind them, as plain values. O(n). */
export const written = (ring: Ring): ReadonlyArray<readonly [string, number]> =>
  [...turns(ring)].map(({ name, place }) => [name, place] as const)

/** What `written` gave. */
export const readBack = (inOrder: ReadonlyArray<readonly [string, number]>, nextPlace: number): Ring => ({
  order: queue.fromArray(inOrder.map(([name, place]) => ({ name, place }))),
  places: HashMap.fromIterable(inOrder),
  size: inOrder.length,
  nextPlace,
})
