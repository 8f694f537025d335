/**
 * Shared parts of the fan-out's tests: a pool, turns of the event loop, and a record of the running items.
 */
import { onTestFinished } from 'vitest'
import { type LaneScope, openHost, type Permit, type PolicyInput, poolPolicy } from '../../src/index.ts'

/** A scope with places and nothing else, in a host that ends with the test. */
export const openPool = async (policy: PolicyInput): Promise<LaneScope> => {
  const host = await openHost()
  onTestFinished(() => host.close())
  return host.scope('pool', { ...poolPolicy, ...policy })
}

/** Waits, by turns of the event loop and never by time, until the condition holds. */
export const until = async (condition: () => boolean, turns = 20_000): Promise<void> => {
  for (let turn = 0; !condition(); turn++) {
    if (turn === turns) throw new Error('the condition did not come true')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
export const turns = async (count: number): Promise<void> => {
  for (let done = 0; done < count; done++) await turn()
}

/** Ends when the permit is asked back, and says so in `ended`. */
export const untilAborted = ({ signal }: Permit, ended: () => void): Promise<never> =>
  new Promise((_, reject) =>
    signal.addEventListener('abort', () =>
      setImmediate(() => {
        ended()
        reject(signal.reason)
      }),
    ),
  )

export const calls = ({ status }: LaneScope): number =>
  [status.primary, status.auxiliary].reduce((sum, lane) => sum + lane.waiting + lane.inFlight, 0)

export const inFlight = ({ status }: LaneScope): number => status.primary.inFlight + status.auxiliary.inFlight
