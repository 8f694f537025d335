/** Counts values from outside that name no known class. */
import { type ParsedPriority, parsePriority } from './priority.ts'

export interface CarrierCounters {
  /** Headers, variables and carried values that named no known class; each counted as untagged. */
  readonly unknownPriorities: number
}

let unknownPriorities = 0

export const carrierCounters = (): CarrierCounters => ({ unknownPriorities })

/** Parses the text. Counts an unknown class and reports it once per process, without the value. */
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
