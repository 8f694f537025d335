/**
 * What travels with the flow of execution: the priority class, and the permits that are held.
 * AsyncLocalStorage carries it across await, timers and streams.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { PriorityClass } from '../../machines/index.ts'
import { readPriority } from './counters.ts'
import { priorityVariable } from './priority.ts'

/** A permit in whose dispatch the present code runs. */
export interface AmbientPermit {
  readonly scope: string
  readonly callId: string
  /** The permits of other scopes in whose dispatches this one was taken, innermost first; left out for the outermost. */
  readonly outer?: AmbientPermit | null
}

export interface Ambient {
  /** Null when untagged. */
  readonly priorityClass: PriorityClass | null
  /** The innermost permit. */
  readonly permit: AmbientPermit | null
}

export const noAmbient: Ambient = { priorityClass: null, permit: null }

const storage = new AsyncLocalStorage<Ambient>()

/** What code runs under that nobody tagged: the class that this process, or this worker thread, was started with. */
const processAmbient: Ambient = {
  priorityClass: readPriority(process.env[priorityVariable]),
  permit: null,
}

export const currentAmbient = (): Ambient => storage.getStore() ?? processAmbient

export const withAmbient = <A>(ambient: Ambient, fn: () => A): A => storage.run(ambient, fn)

/** The permits without those of a scope: only its innermost one lends its place, and a chain of calls that start calls stays short. */
const withoutScope = (permit: AmbientPermit | null, scope: string): AmbientPermit | null => {
  if (permit === null) return null
  const outer = withoutScope(permit.outer ?? null, scope)
  return permit.scope === scope ? outer : { ...permit, outer }
}

/** What the code of a dispatch runs under: its own class and permit, within the permits that were held already. */
export const insidePermit = (
  outer: Ambient,
  { scope, callId, priorityClass }: { scope: string; callId: string; priorityClass: PriorityClass },
): Ambient => ({ priorityClass, permit: { scope, callId, outer: withoutScope(outer.permit, scope) } })

/** The call whose place in `scope` is held around this code, however many other scopes lie between; null when none is. */
export const parentIn = (ambient: Ambient, scope: string): string | null => {
  for (let permit = ambient.permit; permit !== null; permit = permit.outer ?? null) {
    if (permit.scope === scope) return permit.callId
  }
  return null
}
