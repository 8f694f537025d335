import { seededRandom } from '../random.ts'

/**
 * Draws values from a seed. Each part of a simulation has its own sequence, so that no part can shift
 * another's.
 */
export interface Draw {
  /** In [0, 1). */
  readonly chance: () => number
  /** A whole number in [least, most]. */
  readonly whole: (least: number, most: number) => number
  readonly of: <A>(values: ReadonlyArray<A>) => A
  /** True with this probability. */
  readonly odds: (probability: number) => boolean
}

/** `path` names the part: equal seeds and paths draw equal values. */
export const drawFrom = (seed: number, path: string): Draw => {
  let mixed = seed | 0
  for (const letter of path) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) + 0x9e3779b1
  const chance = seededRandom(mixed)
  // The first numbers of neighbouring seeds are alike.
  for (let skipped = 0; skipped < 8; skipped += 1) chance()
  const whole = (least: number, most: number) => least + Math.floor(chance() * (most - least + 1))
  return {
    chance,
    whole,
    of: (values) => values[whole(0, values.length - 1)]!,
    odds: (probability) => chance() < probability,
  }
}
