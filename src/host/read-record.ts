/** From a journal's row to its event and decisions. */
import { checkEvent, type Decision, InvalidInput, type ScopeEvent } from '../../machines/index.ts'
import { restorePolicy } from '../../machines/model/policy-input.ts'
import { JournalCorrupt, type StoredEntry } from '../journal/journal.ts'

/** One event with the decisions that it caused. */
export interface Record {
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
}

/** An entry's event with its decisions, completed where an older version wrote less. Throws `JournalCorrupt` that names the row. */
export const readRecord = (path: string, entry: StoredEntry): Record => {
  const corrupt = (problem: string) => new JournalCorrupt(path, `entries ${entry.position}`, problem)
  const record = parsed(entry.record)
  if (!isEvent(record?.event) || !Array.isArray(record?.decisions))
    throw corrupt('not an event with its decisions')
  try {
    const { event } = record
    const whole =
      event.type === 'policy.changed' ? { ...event, policy: restorePolicy(event.policy, 'policy') } : event
    checkEvent(whole)
    return { ...record, event: whole }
  } catch (error) {
    throw error instanceof InvalidInput ? corrupt(error.message) : error
  }
}

/** Its head only: `checkEvent` looks at the rest. */
const isEvent = (event: ScopeEvent | undefined): event is ScopeEvent => typeof event?.type === 'string'

const parsed = (text: string): Record | null => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const head = '{"event":'
const between = ',"decisions":'

/** A record's event, and the text of its decisions, which costs nothing to compare. */
export interface Written {
  readonly event: ScopeEvent
  readonly decisions: string
}

/** Null where the record is not written as this version writes it, or is no fact. */
export const split = (record: string): Written | null => {
  const middle = record.indexOf(between)
  if (middle < 0 || !record.startsWith(head) || !record.endsWith('}')) return null
  try {
    const event = JSON.parse(record.slice(head.length, middle)) as ScopeEvent
    // A policy may have to be completed first.
    if (!isEvent(event) || event.type === 'policy.changed') return null
    checkEvent(event)
    return { event, decisions: record.slice(middle + between.length, -1) }
  } catch {
    return null
  }
}
