/** From the journal back to what scopes knew: the newest checkpoint of each, and every entry after it. */
import {
  advance,
  contextFrom,
  type Decision,
  InvalidInput,
  type ScopeContext,
  type ScopeEvent,
} from '../../machines/index.ts'
import { restorePolicy } from '../../machines/model/policy.ts'
import { type Checkpoint, type Journal, JournalCorrupt, type StoredEntry } from '../journal/journal.ts'

/** What an entry's record holds. */
export interface Record {
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
}

/** An entry's event with its decisions, completed where an older version wrote less. Throws `JournalCorrupt` that names the row. */
export const readRecord = (path: string, entry: StoredEntry): Record => {
  const corrupt = (problem: string) => new JournalCorrupt(path, `entries ${entry.position}`, problem)
  const record = parsed(entry.record)
  if (typeof record?.event?.type !== 'string' || !Array.isArray(record.decisions))
    throw corrupt('not an event with its decisions')
  if (record.event.type !== 'policy.changed') return record
  try {
    return { ...record, event: { ...record.event, policy: restorePolicy(record.event.policy, 'policy') } }
  } catch (error) {
    throw error instanceof InvalidInput ? corrupt(error.message) : error
  }
}

const parsed = (text: string): Record | null => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const head = '{"event":'
const between = ',"decisions":'

/** A record's event, and the text of its decisions, which costs nothing to compare; null where it is not written as this version writes it. */
const split = (record: string): { readonly event: ScopeEvent; readonly decisions: string } | null => {
  const middle = record.indexOf(between)
  if (middle < 0 || !record.startsWith(head) || !record.endsWith('}')) return null
  try {
    const event = JSON.parse(record.slice(head.length, middle)) as ScopeEvent
    // A policy may have to be completed first.
    if (typeof event?.type !== 'string' || event.type === 'policy.changed') return null
    return { event, decisions: record.slice(middle + between.length, -1) }
  } catch {
    return null
  }
}

/** The present code decides otherwise than the journal says was decided; going on could repeat what was done. */
export class ReplayDiverged extends Error {
  readonly _tag = 'ReplayDiverged'
  readonly position: number
  constructor(scope: string, position: number, recorded: string, replayed: string) {
    super(
      `journal entry ${position} of ${scope}: recorded decisions ${recorded}, but this version decides ${replayed}; ` +
        'close the host with the version that wrote it (that writes a checkpoint), then upgrade',
    )
    this.name = 'ReplayDiverged'
    this.position = position
  }
}

/** A scope rebuilt from its history. */
export class Replayed {
  readonly scope: string
  context: ScopeContext
  position = 0
  entries = 0
  /** Position of the first entry after its checkpoint; null when there is none. */
  uncoveredFrom: number | null = null

  constructor(scope: string, checkpoint?: Checkpoint) {
    this.scope = scope
    this.context = contextFrom(scope, checkpoint === undefined ? null : JSON.parse(checkpoint.snapshot))
    this.position = checkpoint?.position ?? 0
  }

  /** Feeds one entry; answers what it decides now. */
  feed({ event }: Pick<Record, 'event'>, position: number): ReadonlyArray<Decision> {
    this.context = advance(this.context, event)
    this.position = position
    this.entries += 1
    this.uncoveredFrom ??= position
    return this.context.decisions
  }
}

/** A scope as its newest checkpoint has it, or before its first event. */
const recalled = (journal: Journal, scope: string): Replayed => {
  const checkpoint = journal.recall(scope)
  return checkpoint === null ? new Replayed(scope) : new Replayed(scope, checkpoint)
}

/**
 * The scopes of the journal as they were when the last host ended: every one in which something is
 * live or that has entries without a checkpoint, and so many of those that rest. Fails closed.
 */
export const replayJournal = async (
  journal: Journal,
  path: string,
  mostResting = Number.MAX_SAFE_INTEGER,
): Promise<ReadonlyMap<string, Replayed>> => {
  const scopes = new Map<string, Replayed>()
  for (const checkpoint of await journal.checkpoints({ mostResting })) {
    scopes.set(checkpoint.scope, new Replayed(checkpoint.scope, checkpoint))
  }
  for await (const batch of journal.read({ uncovered: true })) {
    for (const entry of batch) {
      const replayed = scopes.get(entry.scope) ?? recalled(journal, entry.scope)
      scopes.set(entry.scope, replayed)
      const written = split(entry.record)
      const is = JSON.stringify(replayed.feed(written ?? readRecord(path, entry), entry.position))
      if (written?.decisions === is) continue
      const was = JSON.stringify(readRecord(path, entry).decisions)
      if (was !== is) throw new ReplayDiverged(entry.scope, entry.position, was, is)
    }
  }
  return scopes
}
