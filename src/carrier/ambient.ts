/**
 * What travels with the flow of execution: the priority class, and the permit that is held.
 * AsyncLocalStorage carries it across await, timers and streams.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { PriorityClass } from '../../machines/index.ts'

export interface Ambient {
  readonly priorityClass: PriorityClass | null
  /** The permit in whose dispatch the present code runs. */
  readonly permit: { readonly scope: string; readonly callId: string } | null
}

export const noAmbient: Ambient = { priorityClass: null, permit: null }

const storage = new AsyncLocalStorage<Ambient>()

export const currentAmbient = (): Ambient => storage.getStore() ?? noAmbient

export const withAmbient = <A>(ambient: Ambient, fn: () => A): A => storage.run(ambient, fn)
