/**
 * Snapshots without a stall: a context never changes, so it is turned into text slice by slice,
 * with the event loop free in between. The text equals `JSON.stringify(encodeScope(context))`.
 */
import { HashMap } from 'effect'
import { noEndings, rowsOf } from '../../machines/collections/ended-log.ts'
import type { ScopeContext } from '../../machines/index.ts'
import { byPlace, encodePrincipal, encodeScope, grantOrder, placesOf } from '../../machines/snapshot/codec.ts'
import type { EncodedScope } from '../../machines/snapshot/encoded.ts'

/** Steps of a slice: items taken, compared or written. Together about a millisecond. */
const sliceSteps = 1_000
/** Comparisons of a merge in one slice: cheaper steps than others. */
const mergeSteps = 8 * sliceSteps
/** Items sorted at once; longer lists are merged from such runs. */
const runLength = 1_024

/** How much there is to write: what a checkpoint costs grows with it. */
export const snapshotSize = ({ counts, principals, ended }: ScopeContext): number =>
  counts.primaryWaiting +
  counts.auxiliaryWaiting +
  counts.primaryInFlight +
  counts.auxiliaryInFlight +
  HashMap.size(principals) +
  ended.newer.length +
  ended.older.length

/** The snapshot's text, and a pause after each slice of the work: `yield` is where others may go. */
export function* snapshotSlices(context: ScopeContext): Generator<undefined, string> {
  const { waiting, inFlight, principals, ended } = context
  const nobody: HashMap.HashMap<string, never> = HashMap.empty()
  const small = encodeScope({
    ...context,
    waiting: nobody,
    inFlight: nobody,
    principals: nobody,
    ended: noEndings(ended.sinceMs),
  })
  const large: Partial<Record<keyof EncodedScope, () => Generator<undefined, string>>> = {
    waiting: () => sortedText(HashMap.values(waiting), bySeq, (call) => call),
    inFlight: () => sortedText(HashMap.values(inFlight), bySeq, (call) => call),
    principals: () =>
      sortedText(HashMap.entries(principals), byKey, ([name, principal]) => [
        name,
        encodePrincipal(principal),
      ]),
    ring: () => sortedText(placesOf(context), byPlace, (row) => row),
    ended: function* () {
      const newer = yield* arrayText(yield* collected(rowsOf(ended.newer)), (row) => row)
      const older = yield* arrayText(yield* collected(rowsOf(ended.older)), (row) => row)
      return `[${newer},${older}]`
    },
  }
  const { granted } = grantOrder(context)
  // Added piece by piece, which copies nothing; a join would copy it all at once.
  let text = ''
  for (const [name, value] of Object.entries(small)) {
    const field = yield* large[name as keyof EncodedScope]?.() ?? whole(value)
    if (name === 'inFlight' && granted !== undefined) {
      text += `,"inFlight":${field},"granted":${yield* arrayText(granted, (id) => id)}`
      continue
    }
    // As JSON.stringify does with what is not there.
    if (field !== undefined) text += `${text.length === 0 ? '{' : ','}${JSON.stringify(name)}:${field}`
  }
  return `${text}}`
}

/** Does the slices one for each turn of the event loop. Whoever fits into one slice takes no turn. */
export const snapshotText = async (context: ScopeContext): Promise<string> => {
  const slices = snapshotSlices(context)
  for (;;) {
    const { done, value } = slices.next()
    if (done) return value
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

// biome-ignore lint/correctness/useYield: it stands beside those that pause
function* whole(value: unknown): Generator<undefined, string> {
  return JSON.stringify(value)
}

const bySeq = (one: { readonly seq: number }, other: { readonly seq: number }): number => one.seq - other.seq

const byKey = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : one > other ? 1 : 0

function* sortedText<A>(
  items: Iterable<A>,
  order: (one: A, other: A) => number,
  shape: (item: A) => unknown,
): Generator<undefined, string> {
  return yield* arrayText(yield* inOrder(yield* collected(items), order), shape)
}

function* arrayText<A>(items: ReadonlyArray<A>, shape: (item: A) => unknown): Generator<undefined, string> {
  let text = ''
  for (let from = 0; from < items.length; from += sliceSteps) {
    if (from > 0) yield
    const slice = JSON.stringify(items.slice(from, from + sliceSteps).map(shape)).slice(1, -1)
    text += from > 0 ? `,${slice}` : slice
  }
  return `[${text}]`
}

function* collected<A>(items: Iterable<A>): Generator<undefined, A[]> {
  const all: A[] = []
  for (const item of items) {
    if (all.length > 0 && all.length % sliceSteps === 0) yield
    all.push(item)
  }
  return all
}

/** Merge sort that pauses: runs first, then merges of neighbours. Stable. */
function* inOrder<A>(items: A[], order: (one: A, other: A) => number): Generator<undefined, A[]> {
  if (items.length <= runLength) return items.sort(order)
  let runs: A[][] = []
  for (let from = 0; from < items.length; from += runLength) {
    runs.push(items.slice(from, from + runLength).sort(order))
    yield
  }
  while (runs.length > 1) {
    const merged: A[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      const [one, other] = [runs[at]!, runs[at + 1]]
      merged.push(other === undefined ? one : yield* merge(one, other, order))
      yield
    }
    runs = merged
  }
  return runs[0]!
}

function* merge<A>(one: A[], other: A[], order: (one: A, other: A) => number): Generator<undefined, A[]> {
  const all: A[] = []
  let left = 0
  let right = 0
  while (left < one.length && right < other.length) {
    if (all.length % mergeSteps === mergeSteps - 1) yield
    all.push(order(one[left]!, other[right]!) <= 0 ? one[left++]! : other[right++]!)
  }
  const rest = left < one.length ? one.slice(left) : other.slice(right)
  return all.concat(rest)
}
