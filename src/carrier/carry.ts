/** The class across the borders that AsyncLocalStorage does not cross: messages, worker threads, child processes. */
import { type Ambient, type AmbientPermit, currentAmbient, withAmbient } from './ambient.ts'
import { readPriority } from './counters.ts'
import { priorityVariable } from './priority.ts'
import { currentPriority } from './with-priority.ts'

/**
 * Plain data for a message to a worker thread: for `postMessage`, `workerData` or JSON. It holds the permits
 * too. A call that the worker makes for a waiting call then borrows the waiting call's place.
 */
export type Carried = Ambient

export const carry = (): Carried => currentAmbient()

/** Permits deeper than this are not believed: real nesting is a few scopes. */
const deepest = 64

const permitOf = (value: unknown, depth = 0): AmbientPermit | null => {
  if (typeof value !== 'object' || value === null || depth >= deepest) return null
  const { scope, callId, outer } = value as Record<string, unknown>
  if (typeof scope !== 'string' || typeof callId !== 'string') return null
  return { scope, callId, outer: permitOf(outer, depth + 1) }
}

/** Runs `fn` under the carried surroundings. Unreadable data counts as untagged and without a permit. */
export const withCarried = <A>(carried: unknown, fn: () => A): A => {
  const { priorityClass, permit } = (
    typeof carried === 'object' && carried !== null ? carried : {}
  ) as Record<string, unknown>
  const stated = priorityClass === null || priorityClass === undefined ? null : String(priorityClass)
  return withAmbient({ priorityClass: readPriority(stated), permit: permitOf(permit) }, fn)
}

/**
 * The environment to start a child process or a worker thread with (`spawn(..., { env })`,
 * `new Worker(file, { env })`): `base` with the present class, or without one when untagged.
 */
export const priorityEnv = (base: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv => {
  const { [priorityVariable]: _, ...rest } = base
  const priorityClass = currentPriority()
  return priorityClass === null ? rest : { ...rest, [priorityVariable]: priorityClass }
}
