/** Times at which a bound of a bucket's level was known. */
import { minuteMs } from './charges.ts'

/** A time at which a bound of the level is known. */
export interface Anchor {
  readonly atMs: number
  /** The level was below this (refused), or at least this (accepted), tokens. */
  readonly level: number
  /** Tokens sent in all up to then, refused ones taken out. */
  readonly sentTokens: number
}

/** Anchors of each kind that are kept. */
export const mostAnchors = 5
const anchorAgeMs = 15 * minuteMs

/** New ones tell of the present, old ones tell more exactly: those in between are thinned out. */
export const withAnchor = (anchors: ReadonlyArray<Anchor>, anchor: Anchor): ReadonlyArray<Anchor> => {
  const kept = anchors.filter(({ atMs }) => anchor.atMs - atMs < anchorAgeMs)
  if (kept.length < mostAnchors) return [...kept, anchor]
  let [closest, least] = [1, Number.POSITIVE_INFINITY]
  for (let index = 1; index < kept.length; index += 1) {
    const age = Math.max(1, anchor.atMs - kept[index]!.atMs)
    const gap = kept[index]!.atMs - kept[index - 1]!.atMs
    if (gap / age < least) [closest, least] = [index, gap / age]
  }
  return [...kept.slice(0, closest), ...kept.slice(closest + 1), anchor]
}
