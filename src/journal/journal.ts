/**
 * The journal: an append-only history of every scope's events with the decisions they caused,
 * and checkpoints that shorten recovery. A decision may be seen outside only after the journal
 * has said that its entry is durable (write ahead).
 *
 * The interface is callback-shaped on purpose: `append` is on the path of every event, and one
 * commit makes many entries durable (group commit), so a promise per entry would cost more than
 * the entry itself.
 */
// The worker loads this file: all of effect would make it start half a second later.
import * as Data from 'effect/Data'

/** One event of one scope, as it is written. */
export interface JournalEntry {
  /** Name of the scope (`provider/fingerprint/model` or a free name). Never holds a key. */
  readonly scope: string
  /** The event's own time, epoch milliseconds. */
  readonly at: number
  /** JSON text `{"event": ..., "decisions": [...]}`. Content-free. Like `scope` without a NUL character. */
  readonly record: string
}

/** Throws RangeError for an entry that a journal cannot keep as it is. */
export const checkEntry = ({ at, scope, record }: JournalEntry): void => {
  if (!Number.isFinite(at)) throw new RangeError(`entry.at must be epoch ms, got ${at}`)
  // The SQLite of Node up to 24.4 reads text only up to its first NUL.
  if (scope.includes('\0')) throw new RangeError('entry.scope must hold no NUL character')
  if (record.includes('\0')) throw new RangeError('entry.record must hold no NUL character')
}

/** An entry read back. */
export interface StoredEntry extends JournalEntry {
  /** Place in the journal: 1, 2, 3, ... in commit order over all scopes. */
  readonly position: number
}

/** A snapshot of one scope that stands for all of its entries up to `position`. */
export interface Checkpoint {
  readonly scope: string
  readonly position: number
  /** Epoch milliseconds of the last event it contains. */
  readonly at: number
  /** JSON text of the versioned snapshot (`machines/snapshot/codec.ts`). */
  readonly snapshot: string
  /**
   * Nothing in the scope waits, runs or is due: a host that opens the journal loads it only when the
   * scope is asked for. Default false.
   */
  readonly resting?: boolean
}

export interface CheckpointQuery {
  /** For each scope its newest checkpoint whose time is at or before this, epoch milliseconds. The newest of all when absent. */
  readonly untilAt?: number
  /** Only this scope. */
  readonly scope?: string
  /** Of scopes whose newest checkpoint says that they rest only so many, those with the newest entries. All when absent. */
  readonly mostResting?: number
}

/** What a journal takes up. */
export interface JournalUsage {
  /** Of the main file, with pages that are free for reuse. */
  readonly bytes: number
  /** Bytes that were written and not yet moved into the main file. A number that only grows means that a reader pins it. */
  readonly walBytes: number
  /** The last move was kept from finishing by a reader that has not ended. */
  readonly walPinned: boolean
  readonly entries: number
  /** Time of the oldest entry, epoch milliseconds; null when there is none. */
  readonly oldestAt: number | null
}

/** A scope that a journal knows. */
export interface KnownScope {
  readonly scope: string
  /** Of its newest checkpoint; 0 when it has none. */
  readonly position: number
  /** Epoch milliseconds of that checkpoint; null when it has none. */
  readonly at: number | null
  /** Whether that checkpoint says that nothing in it waits, runs or is due. */
  readonly resting: boolean
}

export interface ReadQuery {
  /** Only this scope; all scopes when absent. */
  readonly scope?: string
  /** Only entries after this position. Default 0. */
  readonly after?: number
  /** Only entries whose time is at or before this, epoch milliseconds. */
  readonly untilAt?: number
  /**
   * Leaves out entries that a checkpoint of their scope stands for: neither their records nor their
   * checksums are looked at, only that none is missing. Default false.
   */
  readonly uncovered?: boolean
  /**
   * Only entries whose record holds this text, up to position `through`: looked for where the journal is
   * kept, so that many entries cost the caller's thread nothing. Gaps are not looked for.
   */
  readonly naming?: { readonly text: string; readonly through: number }
}

export interface JournalListener {
  /** Every entry with `position <= through` is durable. Called in order, never inside `append`. */
  readonly durable: (through: number) => void
  /**
   * The journal can no longer be trusted to keep what it is given: nothing after the last
   * `durable` position is durable, and nothing more will be. Called at most once.
   */
  readonly failed: (error: JournalFailure) => void
}

export interface Journal {
  /** Sets the one listener (the host). */
  readonly listen: (listener: JournalListener) => void
  /**
   * Takes an entry and answers its position at once; durability is told to the listener. Throws
   * `JournalFailure` after a failure or close, and RangeError (taking nothing) when `at` is not a
   * finite number, or a text holds a NUL character.
   */
  readonly append: (entry: JournalEntry) => number
  /**
   * Stores a checkpoint after the entries it stands for are durable; older ones of the same scope
   * may be dropped. Resolves when the checkpoint itself is durable. Rejects with RangeError when
   * its position was never given out, with `JournalFailure` when it cannot be kept.
   */
  readonly checkpoint: (checkpoint: Checkpoint) => Promise<void>
  /** The newest checkpoint of every scope that has one, in scope order. Rejects with `JournalCorrupt`. */
  readonly checkpoints: (query?: CheckpointQuery) => Promise<ReadonlyArray<Checkpoint>>
  /**
   * The newest durable checkpoint of a scope, at once; null when there is none. For a scope that
   * rests it is all there is to know. Throws `JournalCorrupt`.
   */
  readonly recall: (scope: string) => Checkpoint | null
  /**
   * Drops a scope: none of its entries so far, and none of its checkpoints, is its history any more.
   * Entries that are appended later begin anew. Resolves when that is durable; rejects with `JournalFailure`.
   */
  readonly forget: (scope: string) => Promise<void>
  /**
   * Says that checkpoints stand for every entry up to this position, so that `read({ uncovered: true })`
   * begins behind it. Told rarely: a journal that does not hear of it reads more when it is opened.
   */
  readonly covered: (through: number) => Promise<void>
  readonly usage: () => Promise<JournalUsage>
  /** Every scope with a checkpoint or an entry, by name. */
  readonly scopes: () => Promise<ReadonlyArray<KnownScope>>
  /**
   * Entries in position order, in batches: at least all that were appended before the call, minus
   * those that retention has dropped. Positions may therefore skip, but only where an entry was
   * dropped on purpose. Rejects with `JournalCorrupt` that names the row.
   */
  readonly read: (query?: ReadQuery) => AsyncIterable<ReadonlyArray<StoredEntry>>
  /** Makes everything appended durable, releases the lock, and ends. Idempotent. */
  readonly close: () => Promise<void>
}

/** The facts of a scope's newest checkpoint, if it has one. */
export const knownScope = (
  scope: string,
  newest: { readonly position: number; readonly at: number; readonly resting?: boolean | 0 | 1 } | undefined,
): KnownScope => ({
  scope,
  position: newest?.position ?? 0,
  at: newest?.at ?? null,
  resting: Boolean(newest?.resting),
})

/** The journal cannot write. `operation` says what failed, `cause` is the system's own error. */
export class JournalFailure extends Data.TaggedError('JournalFailure')<{
  readonly path: string
  readonly operation: string
  readonly cause: unknown
  readonly message: string
}> {
  constructor(path: string, operation: string, cause: unknown) {
    const said = cause instanceof Error ? cause.message : String(cause)
    super({ path, operation, cause, message: `journal ${path}: ${operation} failed: ${said}` })
  }
}

/** History that cannot be read. Recovery stops here (fails closed); `rightofway journal repair` keeps all before `row`. */
export class JournalCorrupt extends Data.TaggedError('JournalCorrupt')<{
  readonly path: string
  /** The table and row, for example `entries 4711`. */
  readonly row: string
  /** What is wrong with it, in a few words. */
  readonly problem: string
  readonly message: string
}> {
  constructor(path: string, row: string, problem: string) {
    const message = `journal ${path}: row ${row} is unreadable: ${problem}; see 'rightofway journal check'`
    super({ path, row, problem, message })
  }
}

/** Who may write a journal now, as the holder itself wrote it into the file. */
export interface LeaseHolder {
  readonly pid: number
  /** The holder's host name; a pid means something only there. */
  readonly host: string
  /** Epoch milliseconds, on the holder's clock, after which any other process may take over. */
  readonly expiresAtMs: number
}

/** Another live process holds the journal. */
export class JournalLocked extends Data.TaggedError('JournalLocked')<{
  readonly path: string
  readonly holder: LeaseHolder
  readonly message: string
}> {
  constructor(path: string, holder: LeaseHolder) {
    super({
      path,
      holder,
      message:
        `journal ${path} is in use by process ${holder.pid} on ${holder.host} ` +
        `(lease until ${new Date(holder.expiresAtMs).toISOString()}); ` +
        'one process writes a journal at a time: stop that one, or give this one another path',
    })
  }
}

/** The file was written by a newer release; an older one must not guess what it means. */
export class JournalTooNew extends Data.TaggedError('JournalTooNew')<{
  readonly path: string
  /** Schema version of the file. */
  readonly found: number
  /** Newest schema version that this release reads. */
  readonly supported: number
  readonly message: string
}> {
  constructor(path: string, found: number, supported: number) {
    super({
      path,
      found,
      supported,
      message:
        `journal ${path} has schema version ${found}, this release reads up to version ${supported}; ` +
        'use the release that wrote it, or export it there and import it here',
    })
  }
}

/** The path cannot hold a journal: folder missing, a directory, another program's file, not writable. */
export class JournalUnavailable extends Data.TaggedError('JournalUnavailable')<{
  readonly path: string
  readonly problem: string
  /** What a person can do about it. */
  readonly remedy: string
  readonly cause?: unknown
  readonly message: string
}> {
  constructor(path: string, problem: string, remedy: string, cause?: unknown) {
    const message = `journal ${path}: ${problem}; ${remedy}`
    super({ path, problem, remedy, message, ...(cause === undefined ? {} : { cause }) })
  }
}
