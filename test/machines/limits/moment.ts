/** One moment of a ramp, half a minute after a boundary, with the use and the refusals before it. */
import type { MinuteBounds } from '../../../machines/limits/ceiling.ts'
import type { Refusal } from '../../../machines/limits/ramp.ts'

export const atMs = 1_700_000_070_000
export const minute = Math.floor(atMs / 60_000)

/** Slots with these tokens, each this many seconds ago. */
export const usedAt = (...pairs: ReadonlyArray<readonly [number, number]>) =>
  pairs.map(([agoSeconds, tokens]) => ({ second: atMs / 1000 - agoSeconds, tokens }))

/** A minute in which nothing happened. */
export const idleMinute = (number: number): MinuteBounds => ({
  minute: number,
  acceptedTokens: 0,
  acceptedBeforeTokens: 0,
  refusedTokens: null,
  refusedBeforeTokens: 0,
  statedTokens: null,
})

export const refusal: Refusal = {
  atMs,
  tokens: 180,
  trailingTokens: 0,
  statedLimit: null,
  statedNextLimit: null,
}
