/** How long an answer waits for its reader before its place is given to others. */
import { InvalidInput } from '../../machines/index.ts'
import { longestTimerMs } from '../clock.ts'

const defaultMs = 60_000

/** Throws `InvalidInput` for one out of its range. */
export const checkUnreadTimeout = (ms: number = defaultMs): number => {
  if (Number.isInteger(ms) && ms >= 1 && ms <= longestTimerMs) return ms
  throw new InvalidInput([
    { field: 'unreadTimeoutMs', expected: `an integer in [1, ${longestTimerMs}]`, got: String(ms) },
  ])
}
