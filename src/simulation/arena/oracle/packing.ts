/** Chooses the waiting calls that fill a room best. */

/** The most candidates that a packing considers; the others wait for the next one. */
export const mostCandidates = 24
/** The resolution of a room, in steps. */
const steps = 512

/**
 * Indices of a subset of `tokens` with the largest sum up to `room`. Per chosen call the sum may miss the
 * largest by a 512th of the room. Considers the `mostCandidates` largest tokens that fit. Largest first. An
 * infinite room takes them all.
 */
export const pack = (tokens: ReadonlyArray<number>, room: number): ReadonlyArray<number> => {
  const fitting = tokens
    .map((_, index) => index)
    .filter((index) => tokens[index]! <= room)
    .sort((one, other) => tokens[other]! - tokens[one]! || one - other)
    .slice(0, mostCandidates)
  const all = fitting.reduce((sum, index) => sum + tokens[index]!, 0)
  if (all <= room) return fitting
  const step = room / steps
  // Each link adds one call to an earlier subset. For each step of the room the fullest subset is kept.
  const chain: Array<{ readonly sum: number; readonly last: number; readonly from: number }> = [
    { sum: 0, last: -1, from: -1 },
  ]
  const at: number[] = new Array(steps + 1).fill(-1)
  at[0] = 0
  for (const index of fitting) {
    for (let cell = steps; cell >= 0; cell -= 1) {
      const from = at[cell]!
      if (from < 0) continue
      const sum = chain[from]!.sum + tokens[index]!
      if (sum > room) continue
      const target = Math.floor(sum / step)
      const known = at[target]!
      if (known >= 0 && chain[known]!.sum >= sum) continue
      chain.push({ sum, last: index, from })
      at[target] = chain.length - 1
    }
  }
  let cell = steps
  while (at[cell]! < 0) cell -= 1
  const chosen: number[] = []
  for (let link = chain[at[cell]!]!; link.last >= 0; link = chain[link.from]!) chosen.push(link.last)
  return chosen.sort((one, other) => tokens[other]! - tokens[one]! || one - other)
}
