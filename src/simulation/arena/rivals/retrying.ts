/** One call with its client's retries, as SDKs and users' retry handlers do them. */

import type { VisibleRefusal } from '../../answers.ts'
import { obeyedMs, type RetryBounds } from '../../schedulers.ts'
import type { SimulatedCall, World } from '../../world.ts'

/** `Membrane.complete()` and many like it: 5 retries at 1, 2, 4, 8 s. */
export const patientRetries: RetryBounds = {
  retries: 5,
  baseMs: 1_000,
  maxMs: 8_000,
  mostStatedMs: Number.POSITIVE_INFINITY,
}

export interface Retrying {
  readonly bounds: RetryBounds
  readonly random: () => number
  /** Share of a backoff that jitter may remove, in [0, 1]. */
  readonly jitter: number
  /** The call was answered or given up; called once. */
  readonly over: () => void
}

/** How long the client waits before retry number `retries` (from 0); null when it gives up. */
export const waitBeforeRetry = (
  { retryAfterMs, permanent }: VisibleRefusal,
  retries: number,
  { bounds, random, jitter }: Omit<Retrying, 'over'>,
): number | null => {
  if (permanent || retries >= bounds.retries) return null
  const backoffMs = Math.min(bounds.baseMs * 2 ** Math.min(retries, 30), bounds.maxMs)
  return obeyedMs(retryAfterMs, bounds) ?? Math.ceil(backoffMs * (1 - jitter * random()))
}

/** Sends the call again and again until it is answered or its client gives up. */
export const sendRetrying = (world: World, call: SimulatedCall, retrying: Retrying): void => {
  const attempt = (retries: number): void => {
    world.dispatch(call, {
      accepted: () => {},
      completed: retrying.over,
      refused: (refusal) => {
        const waitMs = waitBeforeRetry(refusal, retries, retrying)
        if (waitMs !== null) {
          world.timeline.after(waitMs, () => attempt(retries + 1))
          return
        }
        world.end(call.id, true)
        retrying.over()
      },
    })
  }
  attempt(0)
}
