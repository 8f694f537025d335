/** What a provider states of when a refused call may come again, and how long its word stands. */
import type { Evidence } from '../../model/evidence.ts'
import { type Charges, sentBetween } from './charges.ts'

/** The provider stated that calls of at least this size are refused until then. */
export interface StatedWait {
  readonly tokens: number
  /** When it said so, epoch milliseconds. */
  readonly toldAtMs: number
  /** Epoch milliseconds. */
  readonly untilMs: number
}

/** What was stated, and what was sent since. */
interface Stated {
  readonly statedWaits: ReadonlyArray<StatedWait>
  readonly charges: Charges
}

/** A wait that names no kind, and meets a smaller call while a larger one is told to wait, is one for all. */
export const waitsAfterRefusal = (
  statedWaits: ReadonlyArray<StatedWait>,
  tokens: number,
  atMs: number,
  { kind, retryAfterMs }: Evidence,
): ReadonlyArray<StatedWait> => {
  if (retryAfterMs === null) return statedWaits
  const forAll =
    kind === 'unknown-rate-limit' && statedWaits.some((one) => one.tokens > tokens && one.untilMs > atMs)
  return withWait(
    statedWaits,
    { tokens: forAll ? 0 : tokens, toldAtMs: atMs, untilMs: atMs + retryAfterMs },
    atMs,
  )
}

/** Waits bound calls of their size and larger; what a longer wait for a smaller call says already is left out. */
const withWait = (
  waits: ReadonlyArray<StatedWait>,
  wait: StatedWait,
  atMs: number,
): ReadonlyArray<StatedWait> => {
  const others = waits.filter((one) => one.untilMs > atMs)
  if (others.some((one) => one.tokens <= wait.tokens && one.untilMs >= wait.untilMs)) return others
  return [...others.filter((one) => !(one.tokens >= wait.tokens && one.untilMs <= wait.untilMs)), wait].slice(
    -4,
  )
}

/** So long after a stated wait its word stands: the call that was told goes, whatever is believed. */
const promiseMs = 5_000

/** A call was accepted: waits of smaller calls are over, and so is what was said too long ago. */
export const waitsAfterAcceptance = (
  statedWaits: ReadonlyArray<StatedWait>,
  tokens: number,
  atMs: number,
): ReadonlyArray<StatedWait> =>
  statedWaits.filter((wait) => wait.tokens > tokens && wait.untilMs + promiseMs > atMs)

/** Whether the provider stated that a call of this size fits by now; what is sent meanwhile voids its word. */
export const isPromised = ({ statedWaits, charges }: Stated, tokens: number, atMs: number): boolean =>
  statedWaits.some(
    (wait) =>
      tokens === wait.tokens &&
      wait.untilMs <= atMs &&
      atMs < wait.untilMs + promiseMs &&
      sentBetween(charges, wait.toldAtMs, atMs) === 0,
  )

/** The stated wait that ends last, of whatever size; null when none is to come. */
export const longestStatedWait = (
  { statedWaits }: Pick<Stated, 'statedWaits'>,
  atMs: number,
): StatedWait | null =>
  statedWaits.reduce<StatedWait | null>(
    (longest, wait) => (wait.untilMs > Math.max(atMs, longest?.untilMs ?? 0) ? wait : longest),
    null,
  )

/** Until when the provider stated that a call of this size is refused, epoch milliseconds; `atMs` when it did not. */
export const statedUntil = (
  { statedWaits }: Pick<Stated, 'statedWaits'>,
  tokens: number,
  atMs: number,
): number => {
  let untilMs = atMs
  for (const wait of statedWaits) if (tokens >= wait.tokens) untilMs = Math.max(untilMs, wait.untilMs)
  return untilMs
}
