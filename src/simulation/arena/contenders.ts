/** The policies that can be compared, by name. */
import { adaptivePolicy, contractPolicy, type PolicyInput } from '../../../machines/index.ts'
import { type LaneObserver, laneScheduler, retryingClients, sdkRetries } from '../schedulers.ts'
import type { Contender } from './ground.ts'
import { oracle } from './oracle/oracle.ts'
import { pageOf } from './provider-page.ts'
import { bottleneckReservoir } from './rivals/bottleneck-reservoir.ts'
import { cooldownRouter } from './rivals/cooldown-router.ts'
import { edictGate } from './rivals/edict-gate.ts'
import { headroom, headroomTold } from './rivals/headroom.ts'
import { bottleneckPriority, pQueuePriority } from './rivals/priority-queues.ts'
import { settleAndFlush } from './rivals/settle-and-flush.ts'

/**
 * Our scope actor. It knows the facts that an operator can read on a provider's page, such as the stated
 * concurrency and how it charges calls. It does not know the rules.
 */
export const rightofway =
  (policy: PolicyInput, observe?: LaneObserver): Contender =>
  ({ world, scenario }) => {
    const { concurrency } = scenario.provider
    const { charges } = pageOf(scenario)
    const told = {
      ...policy,
      ...(concurrency === null ? {} : { capacity: concurrency }),
      ...(charges === null ? {} : { charges }),
    }
    return laneScheduler(world, told, observe)
  }

const naiveRetry: Contender = ({ world, random }) => retryingClients(world, sdkRetries, random)

export const contenders = {
  rightofway: rightofway(contractPolicy),
  'rightofway-adaptive': rightofway(adaptivePolicy),
  'naive-retry': naiveRetry,
  'p-queue-priority': pQueuePriority,
  'bottleneck-priority': bottleneckPriority,
  'bottleneck-reservoir': bottleneckReservoir,
  headroom,
  'headroom-told': headroomTold,
  'cooldown-router': cooldownRouter,
  'edict-gate': edictGate,
  'settle-and-flush': settleAndFlush,
  oracle,
} as const satisfies Readonly<Record<string, Contender>>

/** Our own policies, which can be observed. */
export const watched: Readonly<Partial<Record<PolicyName, (observe: LaneObserver) => Contender>>> = {
  rightofway: (observe) => rightofway(contractPolicy, observe),
  'rightofway-adaptive': (observe) => rightofway(adaptivePolicy, observe),
}

export type PolicyName = keyof typeof contenders
export const policyNames = Object.keys(contenders) as ReadonlyArray<PolicyName>
