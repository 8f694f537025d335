/** One host on a clock that the test moves, with a provider that answers when the test says so. */

import { onTestFinished } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import {
  type Decision,
  type LaneHost,
  ManualClock,
  type Observation,
  openHost,
  type PolicyInput,
} from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { settle } from '../host/bench.ts'
import { Composition } from './host-composition.ts'
import { type HostError, ScriptedAdapter } from './host-composition-membrane.ts'

export const key = 'sk-secret-of-the-host'

/** The host's error for a 429 of its provider. */
export const tooMany = (over: Partial<HostError> = {}): HostError => ({
  type: 'rate_limit',
  retryable: true,
  httpStatus: 429,
  ...over,
})

export interface Stage {
  readonly host: LaneHost
  readonly clock: ManualClock
  readonly provider: ScriptedAdapter
  readonly composition: Composition
  /** Everything that the host made durable, in order. */
  readonly seen: Observation[]
  readonly pass: (ms: number) => Promise<void>
}

export const stage = async (
  policy: PolicyInput = {},
  over: { readonly journal?: string | Journal; readonly sleep?: (ms: number) => Promise<void> } = {},
): Promise<Stage> => {
  const clock = new ManualClock(1_700_000_000_000)
  const host = await openHost({ clock, journal: over.journal ?? ':memory:' })
  onTestFinished(() => host.close())
  const seen: Observation[] = []
  kernelOf(host).observe((observation) => seen.push(observation))
  const provider = new ScriptedAdapter()
  const { sleep } = over
  const composition = new Composition(host, provider, {
    key,
    policy: { pacingBaseMs: 0, pacingMaxMs: 0, quietWindowMs: 0, ...policy },
    ...(sleep === undefined ? {} : { sleep }),
  })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await settle()
  }
  return { host, clock, provider, composition, seen, pass }
}

export const noTools = async (): Promise<void> => {}
export const item = (prompt: string) => ({ id: prompt, prompt })
/** A rejection is a value here. */
export const caught = <A>(promise: Promise<A>): Promise<A | HostError> =>
  promise.catch((error: HostError) => error)

export const decisions = (seen: ReadonlyArray<Observation>): ReadonlyArray<Decision> =>
  seen.flatMap((one) => one.decisions)
export const submitted = (seen: ReadonlyArray<Observation>) =>
  seen.flatMap(({ event }) => (event.type === 'call.submitted' ? [event.call] : []))
export const dispatches = (seen: ReadonlyArray<Observation>): number =>
  seen.flatMap(({ decisions }) => decisions.filter(({ dispatched }) => dispatched === true)).length
