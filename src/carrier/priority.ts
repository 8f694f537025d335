/**
 * All readings of a priority class: from text, from a task, and as a number for a server that sorts by it.
 */
import { type PriorityClass, priorityClasses, priorityRanks } from '../../machines/index.ts'

/** Header that carries the class between processes, in and out. */
export const priorityHeader = 'x-resource-priority'

/** Environment variable that carries the class to a child process or a worker thread. */
export const priorityVariable = 'RIGHTOFWAY_PRIORITY'

export interface ParsedPriority {
  /** Null when untagged. */
  readonly priorityClass: PriorityClass | null
  /** A class was stated that does not exist: the caller should count it. It never raises the priority. */
  readonly unknown: boolean
}

const untagged: ParsedPriority = { priorityClass: null, unknown: false }

/**
 * Reads a wire name. Space around it and case do not matter. Blank text is untagged; other text is unknown
 * and untagged.
 */
export const parsePriority = (text: string | null | undefined): ParsedPriority => {
  const name = text?.trim().toLowerCase() ?? ''
  if (name === '') return untagged
  const priorityClass = priorityClasses.find((known) => known === name) ?? null
  return { priorityClass, unknown: priorityClass === null }
}

/** Task types that load the toolset: orchestration cannot start before them. */
export const hydrationTaskTypes: ReadonlyArray<string> = ['skill_workflows', 'capability_hydration']

/**
 * The class of a task of a worker pool. Hydration types are hydration whatever their lane;
 * `queries`, as a lane or as a type without another lane, is interactive; everything else is background.
 */
export const priorityForTaskType = (
  taskType: string,
  lane: string = taskType,
  hydration: Iterable<string> = hydrationTaskTypes,
): PriorityClass => {
  for (const one of hydration) if (one === taskType) return 'hydration'
  return lane === 'queries' ? 'interactive' : 'background_ingestion'
}

/**
 * The number for the body field `priority` of servers that sort by it (vLLM). Undefined when untagged: leave
 * the field out then.
 */
export const priorityRank = (priorityClass: PriorityClass | null): number | undefined =>
  priorityClass === null ? undefined : priorityRanks[priorityClass]
