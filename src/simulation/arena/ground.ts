/** The inputs of a policy. Only the oracle reads the rules. */

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

/** The most calls in flight when a policy needs a number and the provider states none. */
export const defaultCapacity = 32

/** The most calls in flight under a policy: the provider's stated number, as an operator would set it. */
export const capacityOf = ({ provider }: Scenario): number => provider.concurrency ?? defaultCapacity

/** Lower goes first: auxiliaries come last, in any class. */
export const priorityRankOf = (call: SimulatedCall): number =>
  call.lane === 'auxiliary' ? priorityRanks.background_ingestion : priorityRanks[call.priorityClass]
