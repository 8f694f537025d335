/**
 * Principals that stand for a turn, in one line for each class of their first call: a class that backs off is skipped
 * as a whole, however many principals wait with it. Each line is kept in two orders. Entering, leaving and finding
 * the first cost O(log n).
 */
import * as order from '../collections/order.ts'
import { type PriorityClass, priorityClasses } from '../model/call.ts'

interface Line {
  /** By virtual time: the principal that has had the fewest tokens for its weight comes first. */
  readonly byTag: order.Order
  /** By place: the principal that was served least recently comes first. */
  readonly byAge: order.Order
}

export interface Lines {
  readonly of: Readonly<Partial<Record<PriorityClass, Line>>>
  /** Principals in all lines. */
  readonly size: number
  /** The place behind all others. */
  readonly nextPlace: number
}

/** Where a principal stands. */
export interface Stand {
  /** The class of its first call. */
  readonly line: PriorityClass
  /** Its number in the order of age. A principal that was served gets a new one, behind all others. */
  readonly place: number
}

export const noLines: Lines = { of: {}, size: 0, nextPlace: 0 }

const noLine: Line = { byTag: null, byAge: null }

const inTags = (name: string, tag: number, { place }: Stand): order.Standing => ({ tag, place, name })
const inAges = (name: string, { place }: Stand): order.Standing => ({ tag: place, place, name })

/** With `name`, which must not stand there yet. */
export const enter = ({ of, size, nextPlace }: Lines, name: string, tag: number, stand: Stand): Lines => {
  const { byTag, byAge } = of[stand.line] ?? noLine
  const line = {
    byTag: order.put(byTag, inTags(name, tag, stand)),
    byAge: order.put(byAge, inAges(name, stand)),
  }
  return {
    of: { ...of, [stand.line]: line },
    size: size + 1,
    nextPlace: Math.max(nextPlace, stand.place + 1),
  }
}

/** Without `name`, which must stand there with this tag. */
export const leave = ({ of, size, nextPlace }: Lines, name: string, tag: number, stand: Stand): Lines => {
  const { byTag, byAge } = of[stand.line] ?? noLine
  const line = {
    byTag: order.take(byTag, inTags(name, tag, stand)),
    byAge: order.take(byAge, inAges(name, stand)),
  }
  return { of: { ...of, [stand.line]: line }, size: size - 1, nextPlace }
}

type IsOut = (line: PriorityClass) => boolean

const nobodyIsOut: IsOut = () => false

/** The first of the lines that are not out; undefined when nobody stands there. */
export const first = (
  { of }: Lines,
  by: keyof Line,
  isOut: IsOut = nobodyIsOut,
): order.Standing | undefined => {
  let found: order.Standing | undefined
  for (const priorityClass of priorityClasses) {
    const line = of[priorityClass]
    if (line === undefined || line[by] === null || isOut(priorityClass)) continue
    const next = order.least(line[by]) as order.Standing
    if (found === undefined || order.compare(next, found) < 0) found = next
  }
  return found
}

/** The first `count` names of all lines at most, in one order. */
export const firstNames = ({ of }: Lines, by: keyof Line, count: number): ReadonlyArray<string> => {
  const found: order.Standing[] = []
  for (const priorityClass of priorityClasses) {
    let left = count
    for (const standing of order.ascending(of[priorityClass]?.[by] ?? null)) {
      if (left === 0) break
      left -= 1
      found.push(standing)
    }
  }
  return found
    .sort(order.compare)
    .slice(0, count)
    .map(({ name }) => name)
}

/** Whether both orders of every line hold as many principals as are counted. */
export const isWhole = ({ of, size }: Lines): boolean => {
  let [tags, ages] = [0, 0]
  for (const priorityClass of priorityClasses) {
    const line = of[priorityClass]
    if (line === undefined) continue
    tags += order.sizeOf(line.byTag)
    ages += order.sizeOf(line.byAge)
  }
  return tags === size && ages === size
}
