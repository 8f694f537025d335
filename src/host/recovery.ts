/** From the journal back to what scopes knew: the newest checkpoint of each, and every entry after it. */
import { Data } from 'effect'
import {
  advance,
  checkEvent,
  contextFrom,
  type Decision,
  InvalidInput,
  type Reason,
  type ScopeContext,
  type ScopeEvent,
  SnapshotUnreadable,
} from '../../machines/index.ts'
import { restorePolicy } from '../../machines/model/policy-input.ts'
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

/** A record's event, and the text of its decisions, which costs nothing to compare; null where it is not written as this version writes it, or is no fact. */
const split = (record: string): { readonly event: ScopeEvent; readonly decisions: string } | null => {
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

/** The present code decides otherwise than the journal says was decided; going on could repeat what was done. */
export class ReplayDiverged extends Data.TaggedError('ReplayDiverged')<{
  readonly position: number
  readonly message: string
}> {
  constructor(scope: string, position: number, recorded: string, replayed: string) {
    super({
      position,
      message:
        `journal entry ${position} of ${scope}: recorded decisions ${recorded}, but this version decides ${replayed}; ` +
        'close the host with the version that wrote it (that writes a checkpoint), then upgrade; ' +
        "or drop what the scope knows with 'rightofway journal scopes --drop'",
    })
  }
}

/** Throws `SnapshotUnreadable`. */
const snapshotOf = ({ snapshot, position }: Checkpoint): unknown => {
  try {
    return JSON.parse(snapshot)
  } catch (error) {
    throw new SnapshotUnreadable(`the checkpoint at ${position} is not JSON: ${(error as Error).message}`)
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
  /** Why its history cannot be gone on from; null when it can. */
  failure: Error | null = null

  constructor(scope: string, checkpoint?: Checkpoint) {
    this.scope = scope
    this.context = contextFrom(scope, checkpoint === undefined ? null : snapshotOf(checkpoint))
    this.position = checkpoint?.position ?? 0
  }

  /** As the constructor; one whose checkpoint cannot be read has failed. */
  static from(scope: string, read: () => Checkpoint | null): Replayed {
    try {
      const checkpoint = read()
      return checkpoint === null ? new Replayed(scope) : new Replayed(scope, checkpoint)
    } catch (error) {
      const failed = new Replayed(scope)
      failed.failure = error as Error
      return failed
    }
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

/** Reasons that versions before `probe` gave for the call that asks whether a quota is there again. */
const beforeProbe: ReadonlySet<Reason> = new Set(['open', 'drain', 'primary'])

/** The text of what is decided now, in the words that an earlier version recorded for the same. */
const asEarlier = (recorded: ReadonlyArray<Decision>, now: ReadonlyArray<Decision>): string =>
  JSON.stringify(
    now.map((decision, index) => {
      const reason = recorded[index]?.reason
      return decision.reason === 'probe' && reason !== undefined && beforeProbe.has(reason)
        ? { ...decision, reason }
        : decision
    }),
  )

/** Feeds one entry of the journal. Throws where it is decided otherwise than it was, or is not what a host writes. */
export const feedEntry = (path: string, replayed: Replayed, entry: StoredEntry): void => {
  const written = split(entry.record)
  const is = JSON.stringify(replayed.feed(written ?? readRecord(path, entry), entry.position))
  if (written?.decisions === is) return
  const recorded = readRecord(path, entry).decisions
  const was = JSON.stringify(recorded)
  if (was !== is && was !== asEarlier(recorded, replayed.context.decisions))
    throw new ReplayDiverged(entry.scope, entry.position, was, is)
}

/**
 * The scopes of the journal as they were when the last host ended: every one in which something is
 * live or that has entries without a checkpoint, and so many of those that rest. One whose history
 * cannot be gone on from has failed, alone. Rejects with `JournalCorrupt` where rows cannot be read.
 */
export const replayJournal = async (
  journal: Journal,
  path: string,
  mostResting = Number.MAX_SAFE_INTEGER,
): Promise<ReadonlyMap<string, Replayed>> => {
  const scopes = new Map<string, Replayed>()
  for (const checkpoint of await journal.checkpoints({ mostResting })) {
    scopes.set(
      checkpoint.scope,
      Replayed.from(checkpoint.scope, () => checkpoint),
    )
  }
  for await (const batch of journal.read({ uncovered: true })) {
    for (const entry of batch) {
      const replayed =
        scopes.get(entry.scope) ?? Replayed.from(entry.scope, () => journal.recall(entry.scope))
      scopes.set(entry.scope, replayed)
      if (replayed.failure !== null) continue
      try {
        feedEntry(path, replayed, entry)
      } catch (error) {
        replayed.failure = error as Error
        replayed.uncoveredFrom ??= entry.position
      }
    }
  }
  return scopes
}
