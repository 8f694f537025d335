/** One line of the benchmark. */
export interface Measured {
  readonly case: string
  /** Microseconds per unit that the case counts. */
  readonly us: number
  /** The value to compare `us` with, microseconds; null when there is none. */
  readonly baseline: number | null
  readonly ratio: number | null
  /** The bound, in words, and whether it held; null where none is stated. */
  readonly bound: { readonly text: string; readonly held: boolean } | null
}

export const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((one, other) => one - other)[values.length >> 1] ?? Number.NaN

export const measured = (
  name: string,
  us: number,
  { baseline = null, bound = null }: { baseline?: number | null; bound?: Measured['bound'] } = {},
): Measured => ({ case: name, us, baseline, ratio: baseline === null ? null : us / baseline, bound })

/** Longest time that the event loop stood still while `work` ran, ms. */
export const longestStallMs = async (work: () => Promise<unknown>): Promise<number> => {
  let longest = 0
  let watching = true
  let lastMs = performance.now()
  const look = () => {
    const nowMs = performance.now()
    longest = Math.max(longest, nowMs - lastMs)
    lastMs = nowMs
    if (watching) setImmediate(look)
  }
  setImmediate(look)
  await work()
  watching = false
  await new Promise((resolve) => setImmediate(resolve))
  return longest
}
