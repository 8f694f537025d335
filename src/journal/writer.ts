/**
 * The journal's database as its one writer sees it: synchronous, on whatever thread opens it
 * (the worker's). Every write is a transaction that first checks that the lease still holds.
 */
import { closeSync, openSync, statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { CheckpointStore, checkpointParts } from './checkpoints.ts'
import { type Fault, failsSync, meetFault } from './faults.ts'
import {
  type Checkpoint,
  JournalFailure,
  JournalLocked,
  JournalUnavailable,
  type JournalUsage,
  type StoredEntry,
} from './journal.ts'
import { leaseHolder, releaseLease, renewLease, takeLease } from './lease.ts'
import { EntryReader, entryChecksum } from './rows.ts'
import { migrate, readVersion } from './schema.ts'
import { journalSize } from './size.ts'
import type { CheckpointPart } from './wire.ts'

/** Plain data: it travels to the worker. */
export interface WriterOptions {
  /** How long a holder that cannot be seen to be dead keeps the journal, ms. */
  readonly leaseMs: number
  /** Entries and checkpoints younger than this are kept even when a newer checkpoint stands for them, ms. */
  readonly keepEntriesMs: number
  /** Bytes in use above which the oldest of them go sooner. */
  readonly keepBytes?: number
  readonly faults: ReadonlyArray<Fault>
}

/** SQLite waits this long for another connection's transaction, ms. */
const busyTimeoutMs = 5_000
/** Checkpoints kept for going back in time, per scope, within `keepEntriesMs`. */
const keptCheckpoints = 16

export class JournalWriter {
  readonly path: string
  readonly entries: EntryReader
  readonly checkpoints: CheckpointStore
  readonly #db: DatabaseSync
  readonly #options: WriterOptions
  readonly #token: string
  readonly #insert: StatementSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #lease: StatementSync
  #commits = 0
  #walBytes = 0
  #walPinned = false

  /** Opens, migrates and locks. Throws `JournalLocked`, `JournalTooNew`, `JournalUnavailable`, or what SQLite says. */
  constructor(path: string, options: WriterOptions) {
    this.path = path
    this.#options = options
    createPrivately(path)
    refuseOtherNames(path)
    const db = new DatabaseSync(path, { timeout: busyTimeoutMs })
    this.#db = db
    try {
      db.function('entry_checksum', { deterministic: true }, (position, at, scope, record) =>
        entryChecksum(Number(position), Number(at), String(scope), String(record)),
      )
      this.#refuseWhenHeld()
      // Only this connection checkpoints the WAL, and only when it says so: never inside a commit.
      db.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 0')
      // After a reader had pinned it the file is cut down again; SQLite alone never shrinks it.
      db.exec(`pragma journal_size_limit = ${walLimitBytes}`)
      this.#token = this.#transact(() => this.#claim())
      this.#insert = db.prepare('insert into entries values (?, ?, ?, ?, ?)')
      this.#begin = db.prepare('begin immediate')
      this.#commit = db.prepare('commit')
      this.#lease = db.prepare('select token, pid from lease where id = 1')
      this.entries = new EntryReader(db, path)
      this.checkpoints = new CheckpointStore(db, path)
      this.#transact(() => this.checkpoints.dropUnfinished())
      this.moveWal()
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Writes entries in one transaction and one sync. They are durable when it returns. */
  append(batches: ReadonlyArray<ReadonlyArray<StoredEntry>>): void {
    const commit = ++this.#commits
    const { faults } = this.#options
    let bytes = 0
    const isSyncLost = failsSync(faults, commit)
    if (isSyncLost) this.#db.exec('pragma synchronous = off')
    this.#begin.run()
    try {
      this.#checkLease()
      for (const entries of batches) {
        for (const { position, at, scope, record } of entries) {
          this.#insert.run(position, at, scope, record, entryChecksum(position, at, scope, record))
          bytes += record.length + scope.length + rowOverheadBytes
        }
      }
      meetFault(faults, commit, 'write')
      if (!isSyncLost) meetFault(faults, commit, 'sync')
      this.#commit.run()
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback')
      throw error
    }
    if (isSyncLost) meetFault(faults, commit, 'sync')
    meetFault(faults, commit, 'told')
    this.#grewBy(bytes)
  }

  /** Stores one part of a checkpoint. The whole is durable when this returns from the last part. */
  putCheckpoint(part: CheckpointPart): void {
    const spacingMs = this.#options.keepEntriesMs / keptCheckpoints
    const isLast = part.complete !== undefined
    // The WAL is kept from its start to some point, so the sync of the last part covers the others.
    if (isLast) {
      this.#transact(() => {
        this.#checkLease()
        this.checkpoints.put(part, spacingMs)
      })
    } else {
      this.relaxed(() => this.checkpoints.put(part, spacingMs))
    }
    this.#grewBy(part.text.length)
  }

  /** None of the scope's entries up to `through`, and none of its checkpoints, is history any more. Durable when it returns. */
  forget(scope: string, through: number): void {
    this.#transact(() => {
      this.#checkLease()
      this.checkpoints.dropAll(scope, through)
      this.#db.prepare('insert or replace into forgotten values (?, ?)').run(scope, through)
    })
    this.#grewBy(scope.length)
  }

  /** Checkpoints stand for every entry up to `through`. */
  cover(through: number): void {
    this.relaxed((db) => db.prepare('update covered set through = max(through, ?)').run(through))
  }

  /** Lets `copy` fill an empty journal from a damaged one. */
  salvaged<A>(copy: (db: DatabaseSync) => A): A {
    return copy(this.#db)
  }

  /** Stores a whole checkpoint of another journal; none is thinned out. */
  restoreCheckpoint(checkpoint: Checkpoint): void {
    this.#transact(() => {
      for (const part of checkpointParts(checkpoint)) this.checkpoints.put(part)
    })
  }

  /** Says that up to `through` entries may be missing, and how many are here. For a journal made from another. */
  restoreRetention(through: number): void {
    this.#transact(() => {
      this.#db
        .prepare(
          'update retention set through = ?, kept = (select count(*) from entries where position <= ?)',
        )
        .run(through, through)
    })
  }

  /** Runs `change` in a transaction that need not be synced: losing it to a power cut loses nothing. */
  relaxed<A>(change: (db: DatabaseSync) => A): A {
    this.#db.exec('pragma synchronous = normal')
    try {
      return this.#transact(() => {
        this.#checkLease()
        return change(this.#db)
      })
    } finally {
      this.#db.exec('pragma synchronous = full')
      this.#grewBy(0)
    }
  }

  /** Throws `JournalFailure` when another process has taken the journal over. */
  renewLease(): void {
    this.relaxed((db) => renewLease(db, this.#token, Date.now(), this.#options.leaseMs))
  }

  /** Bytes written since the WAL was last moved into the main file, roughly. */
  get walBytes(): number {
    return this.#walBytes
  }

  /** Moves the WAL's content into the main file. Takes as long as the disk takes. */
  moveWal(): void {
    const [answer] = this.#db.prepare('pragma wal_checkpoint(passive)').all() as unknown as Array<{
      busy: number
      log: number
      checkpointed: number
    }>
    const left = Math.max(0, (answer?.log ?? 0) - (answer?.checkpointed ?? 0))
    // A reader still needs the rest. The next move is tried when as much again has come.
    this.#walPinned = left > 0 || answer?.busy === 1
    this.#walBytes = 0
  }

  /** Bytes of pages in use, without those that are free for reuse. */
  usedBytes(): number {
    const { used } = this.#db
      .prepare(
        `select (pages.page_count - free.freelist_count) * size.page_size as used
         from pragma_page_count pages, pragma_freelist_count free, pragma_page_size size`,
      )
      .get() as { used: number }
    return used
  }

  usage(): JournalUsage {
    return { ...journalSize(this.#db, this.path), walPinned: this.#walPinned }
  }

  /** Gives the lease back, unless the file is about to be replaced, and closes the file. */
  close(options: { readonly keepLease?: boolean } = {}): void {
    try {
      if (options.keepLease !== true) this.#transact(() => releaseLease(this.#db, this.#token))
    } finally {
      this.#db.close()
    }
  }

  #refuseWhenHeld(): void {
    if (readVersion(this.#db, this.path) === 0) return
    const holder = leaseHolder(this.#db, Date.now())
    if (holder !== undefined) throw new JournalLocked(this.path, holder)
  }

  #claim(): string {
    // A holder of an older release must be refused before its tables change under it.
    this.#refuseWhenHeld()
    migrate(this.#db, this.path)
    return takeLease(this.#db, this.path, Date.now(), this.#options.leaseMs)
  }

  #checkLease(): void {
    const row = this.#lease.get() as { token: string; pid: number } | undefined
    if (row?.token === this.#token) return
    const taker = row === undefined ? 'nobody (it was released)' : `process ${row.pid}`
    throw new JournalFailure(this.path, 'lease', new Error(`the journal now belongs to ${taker}`))
  }

  #transact<A>(change: () => A): A {
    this.#db.exec('begin immediate')
    try {
      const result = change()
      this.#db.exec('commit')
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback')
      throw error
    }
  }

  #grewBy(bytes: number): void {
    // A commit writes whole pages: the one it was in, and those it filled.
    this.#walBytes += pageBytes * (1 + Math.ceil(bytes / pageBytes))
  }
}

const pageBytes = 4_096
/** Size of the WAL file that is left once its content was moved. */
const walLimitBytes = 16 * 1024 * 1024
const rowOverheadBytes = 24

/** Two names of one file have a WAL each: a writer under the other name, and its entries, would not be seen. */
const refuseOtherNames = (path: string): void => {
  const found = statSync(path)
  if (found.isFile() && found.nlink > 1) {
    const { nlink, dev, ino } = found
    throw new JournalUnavailable(
      path,
      `has ${nlink} names (hard links to inode ${ino} of device ${dev})`,
      "a journal is written under one name only: remove the others ('find / -samefile' lists them)",
    )
  }
}

/** SQLite gives the WAL and its index the mode of the main file, so only that one must be made private. */
const createPrivately = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
