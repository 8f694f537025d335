/** Numbers in [0, 1) from a seed: Marsaglia's xorshift with 32 bits, after a Weyl step so that seed 0 works. */
export const seededRandom = (seed: number): (() => number) => {
  let state = (Math.imul(seed | 0, 0x9e3779b1) ^ 0x85ebca6b) >>> 0 || 1
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}
