/**
 * What was sent, and when: the one record that all hypotheses about input tokens are held against.
 * A call counts from its dispatch, because that is when a provider charges it; one that was refused
 * is taken out again. Bounded: what is older than a growth can depend on is dropped, and what is
 * older than a few seconds is put together when there is much of it.
 */

/** Charges of one moment. */
export interface Charge {
  /** When the newest of them was dispatched, epoch milliseconds. */
  readonly atMs: number
  /** Input tokens, refused ones taken out. */
  readonly tokens: number
}

/** Oldest first. */
export type Charges = ReadonlyArray<Charge>

export const minuteMs = 60_000
/** Two trailing minutes, and a little for answers that come late. */
export const keptMs = 2 * minuteMs + 20_000
/** Most entries that are kept. */
export const mostCharges = 128
/** Charges that came so close together are one. */
const togetherMs = 100
/** Charges older than this may be put together more coarsely. */
const recentMs = 5_000

/** Tokens dispatched after `fromMs` and up to `toMs`. */
export const sentBetween = (charges: Charges, fromMs: number, toMs: number): number => {
  let sum = 0
  for (let index = charges.length - 1; index >= 0; index -= 1) {
    const charge = charges[index] as Charge
    if (charge.atMs <= fromMs) break
    if (charge.atMs <= toMs) sum += charge.tokens
  }
  return sum
}

/** Tokens dispatched in the minute before `atMs`. */
export const sentInMinute = (charges: Charges, atMs: number): number =>
  sentBetween(charges, atMs - minuteMs, atMs)

/** Beginning of the clock minute of `atMs`, epoch milliseconds. */
export const minuteStart = (atMs: number): number => Math.floor(atMs / minuteMs) * minuteMs

/** Drops what is too old; where that is not enough, neighbours that lie closest to each other in time become one. */
const bounded = (charges: Charge[], atMs: number): Charge[] => {
  let from = 0
  while (from < charges.length && charges[from]!.atMs <= atMs - keptMs) from += 1
  const kept = from > 0 ? charges.slice(from) : charges
  if (kept.length <= mostCharges) return kept
  const coarseMs = (2 * keptMs) / mostCharges
  const merged: Charge[] = []
  for (const charge of kept) {
    const last = merged.at(-1)
    const old = charge.atMs < atMs - recentMs
    if (last !== undefined && old && samePart(last.atMs, charge.atMs, coarseMs))
      merged[merged.length - 1] = { atMs: charge.atMs, tokens: last.tokens + charge.tokens }
    else merged.push(charge)
  }
  // More than the bound within a few seconds: the oldest of them are put together.
  while (merged.length > mostCharges) {
    const [first, second] = merged.splice(0, 2) as [Charge, Charge]
    merged.unshift({ atMs: second.atMs, tokens: first.tokens + second.tokens })
  }
  return merged
}

/** Both lie in one part of a clock minute of this length, so that no minute takes from its neighbour. */
const samePart = (oneMs: number, otherMs: number, partMs: number): boolean =>
  minuteStart(oneMs) === minuteStart(otherMs) && Math.floor(oneMs / partMs) === Math.floor(otherMs / partMs)

/** `charges` with `tokens` more at the time of their dispatch (fewer, when negative). */
export const charged = (charges: Charges, tokens: number, dispatchedAtMs: number, atMs: number): Charges => {
  if (tokens === 0) return charges
  const next = charges.slice()
  let index = next.length - 1
  while (index >= 0 && next[index]!.atMs > dispatchedAtMs) index -= 1
  if (tokens < 0) {
    takeOut(next, -tokens, index, dispatchedAtMs)
    return bounded(next, atMs)
  }
  const before = next[index]
  if (
    before !== undefined &&
    dispatchedAtMs - before.atMs < togetherMs &&
    minuteStart(before.atMs) === minuteStart(dispatchedAtMs)
  )
    next[index] = { atMs: dispatchedAtMs, tokens: before.tokens + tokens }
  else next.splice(index + 1, 0, { atMs: dispatchedAtMs, tokens })
  return bounded(next, atMs)
}

/** The charge may have been put together with later ones: it is taken from the first entry at or after its time, then from those before. */
const takeOut = (charges: Charge[], tokens: number, before: number, dispatchedAtMs: number): void => {
  let rest = tokens
  const exact = charges[before]?.atMs === dispatchedAtMs ? before : before + 1
  for (const step of [1, -1] as const) {
    for (
      let index = step === 1 ? exact : exact - 1;
      rest > 0 && charges[index] !== undefined;
      index += step
    ) {
      const charge = charges[index]!
      const taken = Math.min(rest, charge.tokens)
      charges[index] = { atMs: charge.atMs, tokens: charge.tokens - taken }
      rest -= taken
    }
  }
  for (let index = charges.length - 1; index >= 0; index -= 1)
    if (charges[index]!.tokens === 0) charges.splice(index, 1)
}
