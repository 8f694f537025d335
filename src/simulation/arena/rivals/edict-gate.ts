/**
 * The Resource-Priority Edict's gate, by the arithmetic that it publishes (`_can_admit`): a hard
 * capacity, a reserve that background never takes, and no background while anything higher waits.
 * Its clients are official SDKs with their default retries, inside the permit.
 */

import { contractPolicy, reserveOf } from '../../../../machines/index.ts'
import { sdkRetries } from '../../schedulers.ts'
import type { SimulatedCall } from '../../world.ts'
import { type Contender, capacityOf } from '../ground.ts'
import { sendRetrying } from './retrying.ts'

export interface GateCounts {
  readonly active: number
  readonly highWaiters: number
  readonly capacity: number
  readonly reserve: number
}

/** The seed's predicate, line by line. */
export const canAdmit = (
  isHigh: boolean,
  { active, highWaiters, capacity, reserve }: GateCounts,
): boolean => {
  if (active >= capacity) return false
  if (isHigh) return true
  if (highWaiters > 0) return false
  return active < capacity - reserve
}

/** `round(capacity * 0.34)`, half to even, in [1, capacity - 1]; 0 for a single permit. */
export const edictReserve = (capacity: number): number =>
  reserveOf({ ...contractPolicy, capacity, reserve: 'auto', reserveFraction: 0.34 })

export const edictGate: Contender = ({ world, scenario, random }) => {
  const capacity = capacityOf(scenario)
  const reserve = edictReserve(capacity)
  const high: SimulatedCall[] = []
  const background: SimulatedCall[] = []
  let active = 0

  const pass = (line: SimulatedCall[], isHigh: boolean): void => {
    let taken = 0
    while (
      taken < line.length &&
      canAdmit(isHigh, { active, highWaiters: high.length - (isHigh ? taken : 0), capacity, reserve })
    ) {
      active += 1
      send(line[taken++]!)
    }
    line.splice(0, taken)
  }
  const wake = (): void => {
    pass(high, true)
    pass(background, false)
  }
  const send = (call: SimulatedCall): void =>
    sendRetrying(world, call, {
      bounds: sdkRetries,
      random,
      jitter: 0.25,
      over: () => {
        active -= 1
        wake()
      },
    })

  return {
    submit: (call) => {
      // Every class except background ingestion is high, as in the seed; a stated lane wins.
      if (call.lane === 'primary') high.push(call)
      else background.push(call)
      wake()
    },
  }
}
