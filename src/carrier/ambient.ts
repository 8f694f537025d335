/**
 * The priority class and the held permits travel with the flow of execution. AsyncLocalStorage carries them
 * across await, timers and streams.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { PriorityClass } from '../../machines/index.ts'
import { readPriority } from './counters.ts'
import { priorityVariable } from './priority.ts'

/** A permit in whose dispatch the present code runs. */
export interface AmbientPermit {
  readonly scope: string
  readonly callId: string
  /**
   * The permits of other scopes whose dispatches this permit was taken in, innermost first; left out for the
   * outermost.
   */
  readonly outer?: AmbientPermit | null
  /** The run that holds the permit; left out where it runs in another thread. */
  readonly run?: AmbientRun
}

/** A function that runs with a permit. */
export interface AmbientRun {
  /** The function has returned or thrown: a call that is made in its surroundings after that borrows no place from it. */
  isOver: boolean
}

export interface Ambient {
  /** Null when untagged. */
  readonly priorityClass: PriorityClass | null
  /** The innermost permit. */
  readonly permit: AmbientPermit | null
}

export const noAmbient: Ambient = { priorityClass: null, permit: null }

const storage = new AsyncLocalStorage<Ambient>()

/**
 * The surroundings of code that no call tagged: the class that this process, or this worker thread, was
 * started with.
 */
const processAmbient: Ambient = {
  priorityClass: readPriority(process.env[priorityVariable]),
  permit: null,
}

export const currentAmbient = (): Ambient => storage.getStore() ?? processAmbient

export const withAmbient = <A>(ambient: Ambient, fn: () => A): A => storage.run(ambient, fn)

/**
 * The permits without those of one scope. Only a scope's innermost permit lends its place, so the chain stays
 * short when calls start calls.
 */
const withoutScope = (permit: AmbientPermit | null, scope: string): AmbientPermit | null => {
  if (permit === null) return null
  const outer = withoutScope(permit.outer ?? null, scope)
  return permit.scope === scope ? outer : { ...permit, outer }
}

/**
 * The surroundings of a dispatch's code: its own class and permit, within the permits that were held already.
 */
export const insidePermit = (
  outer: Ambient,
  { scope, callId, priorityClass }: { scope: string; callId: string; priorityClass: PriorityClass },
  run: AmbientRun,
): Ambient => ({ priorityClass, permit: { scope, callId, outer: withoutScope(outer.permit, scope), run } })

/**
 * The call whose place in `scope` is held around this code, through any number of other scopes; null when
 * there is none.
 */
export const parentIn = (ambient: Ambient, scope: string): string | null => {
  for (let permit = ambient.permit; permit !== null; permit = permit.outer ?? null) {
    if (permit.scope === scope && permit.run?.isOver !== true) return permit.callId
  }
  return null
}
