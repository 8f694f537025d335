/** One draw of a 32-bit pseudo-random sequence (mulberry32): the value in [0, 1) and the next state. */
export interface Draw {
  readonly value: number
  /** The state for the next draw. */
  readonly next: number
}

/** Pure: the same state gives the same value on every machine. */
export const drawFrom = (state: number): Draw => {
  const next = (state + 0x6d2b79f5) >>> 0
  let mixed = Math.imul(next ^ (next >>> 15), next | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return { value: ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296, next }
}
