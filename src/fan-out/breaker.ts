/** The circuit breaker that a fan-out asks before the gate. Any library's breaker fits. */
import { Data } from 'effect'

/**
 * `allows` is asked once for each item; after a yes exactly one of the other two is told. `failed` is told of every
 * error, of withdrawn calls and refusals too: a breaker counts those that it chooses.
 */
export interface Breaker {
  /** Whether a call may be tried now. True of a half-open breaker is its one trial. */
  readonly allows: () => boolean
  readonly succeeded: () => void
  readonly failed: (error: unknown) => void
}

/** The breaker was open, so no permit was asked for. Try again when it closes. */
export class BreakerOpen extends Data.TaggedError('BreakerOpen')<{ readonly index: number }> {
  override get message(): string {
    return `item ${this.index} was not tried: the circuit breaker is open; try again when it closes`
  }
}

/** Runs `call` under the breaker, if there is one. Rejects with `BreakerOpen`, without having called, when it is open. */
export const underBreaker = async <R>(
  breaker: Breaker | undefined,
  index: number,
  call: () => Promise<R>,
): Promise<R> => {
  if (breaker === undefined) return call()
  if (!breaker.allows()) throw new BreakerOpen({ index })
  try {
    const value = await call()
    breaker.succeeded()
    return value
  } catch (error) {
    breaker.failed(error)
    throw error
  }
}
