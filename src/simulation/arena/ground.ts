/** What a policy is given to work with. Only the oracle looks at the rules. */

import { priorityRanks } from '../../../machines/index.ts'
import type { Scheduler, SimulatedCall, World } from '../world.ts'
import type { Scenario } from './scenario.ts'

export interface Ground {
  readonly world: World
  readonly scenario: Scenario
  /** Jitter, in [0, 1): the same sequence for every policy. */
  readonly random: () => number
}

/** Makes a policy's scheduler over a ground. */
export type Contender = (ground: Ground) => Scheduler

/** Calls in flight at most where a policy needs a number and the provider states none. */
export const defaultCapacity = 32

/** Calls in flight that a policy lets go at most: what the provider states, as an operator would set it. */
export const capacityOf = ({ provider }: Scenario): number => provider.concurrency ?? defaultCapacity

/** Lower goes first: auxiliaries last, whatever their class. */
export const priorityRankOf = (call: SimulatedCall): number =>
  call.lane === 'auxiliary' ? priorityRanks.background_ingestion : priorityRanks[call.priorityClass]
