/**
 * Names by tag, then by place: a persistent balanced search tree (Adams, "Efficient sets: a balancing act", 1993).
 * The least is found, a name put in and taken out in O(log n), and an old version stays as it was.
 */
export interface Standing {
  readonly tag: number
  /** Decides between equal tags. */
  readonly place: number
  readonly name: string
}

interface Node {
  readonly standing: Standing
  readonly before: Order
  readonly after: Order
  readonly size: number
}

export type Order = Node | null

/** A side may be so much heavier than the other before the tree is turned. */
const heavier = 3

export const sizeOf = (order: Order): number => order?.size ?? 0

/** Below 0 when `one` comes first. */
export const compare = (one: Standing, other: Standing): number => {
  if (one.tag !== other.tag) return one.tag < other.tag ? -1 : 1
  if (one.place !== other.place) return one.place < other.place ? -1 : 1
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}

const node = (before: Order, standing: Standing, after: Order): Node => ({
  standing,
  before,
  after,
  size: sizeOf(before) + sizeOf(after) + 1,
})

/** Joins two trees that differ by one step of work, and turns what became too heavy on one side. */
const balanced = (before: Order, standing: Standing, after: Order): Node => {
  if (sizeOf(before) + sizeOf(after) < 2) return node(before, standing, after)
  if (after !== null && after.size > heavier * sizeOf(before)) {
    const { before: inner, standing: top, after: outer } = after
    if (inner === null || sizeOf(inner) < 2 * sizeOf(outer))
      return node(node(before, standing, inner), top, outer)
    return node(node(before, standing, inner.before), inner.standing, node(inner.after, top, outer))
  }
  if (before !== null && before.size > heavier * sizeOf(after)) {
    const { before: outer, standing: top, after: inner } = before
    if (inner === null || sizeOf(inner) < 2 * sizeOf(outer))
      return node(outer, top, node(inner, standing, after))
    return node(node(outer, top, inner.before), inner.standing, node(inner.after, standing, after))
  }
  return node(before, standing, after)
}

/** With `standing`, which must not be there yet. */
export const put = (order: Order, standing: Standing): Order => {
  if (order === null) return node(null, standing, null)
  return compare(standing, order.standing) < 0
    ? balanced(put(order.before, standing), order.standing, order.after)
    : balanced(order.before, order.standing, put(order.after, standing))
}

/** The least; undefined when there is none. */
export const least = (order: Order): Standing | undefined => {
  if (order === null) return undefined
  let at = order
  while (at.before !== null) at = at.before
  return at.standing
}

const withoutLeast = ({ before, standing, after }: Node): Order =>
  before === null ? after : balanced(withoutLeast(before), standing, after)

/** Without `standing`; the same order when it is not there. */
export const take = (order: Order, standing: Standing): Order => {
  if (order === null) return null
  const side = compare(standing, order.standing)
  if (side === 0) {
    if (order.after === null) return order.before
    return balanced(order.before, least(order.after) as Standing, withoutLeast(order.after))
  }
  if (side < 0) {
    const before = take(order.before, standing)
    return before === order.before ? order : balanced(before, order.standing, order.after)
  }
  const after = take(order.after, standing)
  return after === order.after ? order : balanced(order.before, order.standing, after)
}

/** One by one, the least first; O(log n) for the first, O(1) for each after it on the average. */
export function* ascending(order: Order): Generator<Standing> {
  const above: Node[] = []
  let at = order
  while (at !== null || above.length > 0) {
    for (; at !== null; at = at.before) above.push(at)
    const next = above.pop() as Node
    yield next.standing
    at = next.after
  }
}
