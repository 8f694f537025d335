/** Tokens of calls, drawn from a seed. */
import { seededRandom } from '../random.ts'
import type { Size } from './format.ts'

const defaultMostTokens = 1_000_000
/** A first number up to this is a logarithm: no call has a median of 16 tokens, and e^16 is 8.9 million. */
const largestMu = 16

const medianOf = (first: number): number => (first <= largestMu ? Math.exp(first) : first)

/** A whole number of tokens, at least 0. Always draws the same count of random numbers for one kind of size. */
export const drawTokens = (size: Size, random: () => number): number => {
  if (typeof size === 'number') return size
  if (size.uniform !== undefined) {
    const [low, high] = size.uniform
    return low + Math.floor(random() * (high - low + 1))
  }
  const [first, sigma, most = defaultMostTokens] = size.lognormal!
  // Box and Muller; 1 - random() is never 0.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.max(1, Math.min(most, Math.round(medianOf(first) * Math.exp(sigma * normal))))
}

/** The largest possible draw, tokens. */
export const largestTokens = (size: Size): number => {
  if (typeof size === 'number') return size
  return size.uniform !== undefined ? size.uniform[1] : (size.lognormal![2] ?? defaultMostTokens)
}

/** The mean of a draw, tokens, ignoring the largest possible draw. */
export const meanTokens = (size: Size): number => {
  if (typeof size === 'number') return size
  if (size.uniform !== undefined) return (size.uniform[0] + size.uniform[1]) / 2
  const [first, sigma] = size.lognormal!
  return medianOf(first) * Math.exp(sigma ** 2 / 2)
}

/** A separate random sequence for each part of a scenario: one policy's draws never shift another's. */
export const sequenceOf = (seed: number, ...parts: ReadonlyArray<number>): (() => number) => {
  let mixed = seed % 0x1_0000_0000
  for (const part of parts) {
    mixed = Math.imul(mixed ^ (part + 1), 0x9e3779b1)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b)
    mixed ^= mixed >>> 13
  }
  const random = seededRandom(mixed)
  // The first numbers of neighbouring seeds are alike.
  for (let skipped = 0; skipped < 4; skipped += 1) random()
  return random
}
