/** From the journal back to what scopes knew: the newest checkpoint of each, and every entry after it. */
import { Data } from 'effect'
import {
  advance,
  contextFrom,
  type Decision,
  type Reason,
  type ScopeContext,
  SnapshotUnreadable,
} from '../../machines/index.ts'
import type { Checkpoint, Journal, StoredEntry } from '../journal/journal.ts'
import { snapshotText } from './checkpointing.ts'
import { FollowedScope } from './followed-scope.ts'
import { type Record, readRecord, split, type Written } from './read-record.ts'
import { RecordContradicts } from './recorded-calls.ts'
import { restsIn } from './scope-actor.ts'

/** The record of a scope cannot be followed: it says of calls what cannot be, and going on could repeat what was done. */
export class ReplayDiverged extends Data.TaggedError('ReplayDiverged')<{
  readonly position: number
  readonly message: string
}> {
  constructor(scope: string, position: number, recorded: string, problem: string) {
    super({
      position,
      message:
        `journal entry ${position} of ${scope}: recorded decisions ${recorded}: ${problem}; ` +
        'restore a backup, or close the host with the version that wrote it (that writes a checkpoint), then upgrade; ' +
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
  position = 0
  entries = 0
  /** Position of the first entry after its checkpoint; null when there is none. */
  uncoveredFrom: number | null = null
  /** Why its history cannot be gone on from; null when it can. */
  failure: Error | null = null
  /** Position of the first entry that this version decides otherwise; null where there is none. */
  differsFrom: number | null = null
  #context: ScopeContext
  #followed: FollowedScope | null = null

  constructor(scope: string, checkpoint?: Checkpoint) {
    this.scope = scope
    this.#context = contextFrom(scope, checkpoint === undefined ? null : snapshotOf(checkpoint))
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

  get context(): ScopeContext {
    return this.#followed?.context ?? this.#context
  }

  /** Feeds one entry; answers what it decides now. */
  feed({ event }: Pick<Record, 'event'>, position: number): ReadonlyArray<Decision> {
    this.#context = advance(this.#context, event)
    this.#passed(position)
    return this.#context.decisions
  }

  /** As `follow`, by the text of the recorded decisions; `read` is asked only where that is another. */
  followText({ event, decisions }: Written, position: number, read: () => Record): void {
    const agreed = this.#context
    const is = this.feed({ event }, position)
    if (JSON.stringify(is) === decisions) return
    const record = read()
    if (!isSame(record.decisions, is)) this.#part(agreed, record, position)
  }

  /**
   * Feeds one entry whose recorded decisions are what was done. Answers what this version decides now, and
   * whether that is the same. Throws `ReplayDiverged` where the record contradicts itself.
   */
  follow(record: Record, position: number): { readonly is: ReadonlyArray<Decision>; readonly same: boolean } {
    if (this.#followed !== null) {
      this.#passed(position)
      const is = this.#taken(record, position)
      return { is, same: isSame(record.decisions, is) }
    }
    const agreed = this.#context
    const is = this.feed(record, position)
    const same = isSame(record.decisions, is)
    if (!same) this.#part(agreed, record, position)
    return { is, same }
  }

  /** From here on the record says where calls stand. */
  #part(agreed: ScopeContext, record: Record, position: number): void {
    this.differsFrom = position
    this.#followed = new FollowedScope(agreed)
    this.#taken(record, position)
  }

  #taken(record: Record, position: number): ReadonlyArray<Decision> {
    try {
      return (this.#followed as FollowedScope).take(record)
    } catch (error) {
      if (!(error instanceof RecordContradicts)) throw error
      throw new ReplayDiverged(this.scope, position, JSON.stringify(record.decisions), error.message)
    }
  }

  #passed(position: number): void {
    this.position = position
    this.entries += 1
    this.uncoveredFrom ??= position
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

const isSame = (was: ReadonlyArray<Decision>, is: ReadonlyArray<Decision>): boolean => {
  const recorded = JSON.stringify(was)
  return recorded === JSON.stringify(is) || recorded === asEarlier(was, is)
}

/** Feeds one entry of the journal. Throws where the record contradicts itself, or is not what a host writes. */
export const feedEntry = (path: string, replayed: Replayed, entry: StoredEntry): void => {
  const written = replayed.differsFrom === null ? split(entry.record) : null
  if (written === null) {
    replayed.follow(readRecord(path, entry), entry.position)
    return
  }
  replayed.followText(written, entry.position, () => readRecord(path, entry))
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

/** Writes a checkpoint of a scope whose record an older version decided otherwise. Rejects with `JournalFailure`. */
export const keepFollowed = async (journal: Journal, replayed: Replayed): Promise<void> => {
  if (replayed.differsFrom === null || replayed.failure !== null) return
  const { scope, position, context } = replayed
  const snapshot = await snapshotText(context)
  const rest = restsIn(context) ? { resting: true } : {}
  await journal.checkpoint({ scope, position, at: context.at, snapshot, ...rest })
  replayed.entries = 0
  replayed.uncoveredFrom = null
}
