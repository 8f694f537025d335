/** How often something that came from outside named no class of ours. */
import { type ParsedPriority, parsePriority } from './priority.ts'

export interface CarrierCounters {
  /** Headers, variables and carried values that named no known class; each counted as untagged. */
  readonly unknownPriorities: number
}

let unknownPriorities = 0

export const carrierCounters = (): CarrierCounters => ({ unknownPriorities })

/** Parses, counts what is unknown, and says so once per process; never what the value was. */
export const readPriority = (text: string | null | undefined): ParsedPriority['priorityClass'] => {
  const { priorityClass, unknown } = parsePriority(text)
  if (unknown) {
    unknownPriorities += 1
    if (unknownPriorities === 1) {
      process.emitWarning('a stated priority names no known class and counts as untagged', {
        code: 'RIGHTOFWAY_UNKNOWN_PRIORITY',
      })
    }
  }
  return priorityClass
}
