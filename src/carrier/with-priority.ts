/** Tags the flow of execution with a priority class. */
import type { PriorityClass } from '../../machines/index.ts'
import { currentAmbient, withAmbient } from './ambient.ts'
import { priorityRank } from './priority.ts'

/** The class of a call made here that states none; null when untagged. */
export const currentPriority = (): PriorityClass | null => currentAmbient().priorityClass

/**
 * Runs `fn`, and everything that it starts, under a class that replaces the present one; null removes the
 * tag.
 */
export const withPriority = <A>(priorityClass: PriorityClass | null, fn: () => A): A =>
  withAmbient({ ...currentAmbient(), priorityClass }, fn)

/** The class of work for a child agent: orchestration, but background work stays background. */
export const delegated = (): PriorityClass =>
  currentPriority() === 'background_ingestion' ? 'background_ingestion' : 'orchestration'

/** Runs `fn` as work for a child agent. */
export const delegate = <A>(fn: () => A): A => withPriority(delegated(), fn)

/** A field to spread into a request body for a server that sorts by `priority`; empty when untagged. */
export const priorityField = (): { readonly priority?: number } => {
  const priority = priorityRank(currentPriority())
  return priority === undefined ? {} : { priority }
}
