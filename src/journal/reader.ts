/** Reads a journal beside its writer: another process may be appending meanwhile. Never writes. */
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { CheckpointStore } from './checkpoints.ts'
import { type Journal, JournalUnavailable, type ReadQuery, type StoredEntry } from './journal.ts'
import { leaseHolder } from './lease.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { explainOpening, isForbidden } from './opening.ts'
import { EntryReader } from './rows.ts'
import { readVersion, schemaVersion } from './schema.ts'
import { type JournalSize, journalSize } from './size.ts'

export interface JournalReader extends Pick<Journal, 'read' | 'checkpoints' | 'scopes'> {
  /** Whether a process writes it now: then its scopes live, and time passes for them. */
  readonly isWritten: () => boolean
  readonly size: () => JournalSize
  readonly close: () => void
}

/** A journal's tables, open for reading only. */
export interface OpenTables {
  readonly path: string
  readonly db: DatabaseSync
  readonly entries: EntryReader
  readonly checkpoints: CheckpointStore
}

/**
 * Opens an existing journal for reading. Rejects with `JournalTooNew`, `JournalCorrupt`, or
 * `JournalUnavailable` when there is none at `file`.
 */
export const openSqliteReader = async (file: string): Promise<JournalReader> => {
  const { path, db, entries, checkpoints } = openTables(file)
  return {
    read: (query) => readAll(entries, query),
    checkpoints: async (query) => checkpoints.newest(query),
    scopes: async () => entries.scopes(checkpoints),
    isWritten: () => leaseHolder(db, Date.now()) !== undefined,
    size: () => journalSize(db, path),
    close: () => db.close(),
  }
}

/**
 * Where nobody may write beside the file, SQLite cannot make the index of its WAL: without one the file is
 * read as it stands; with one, a copy of both is read.
 */
const openForReading = (path: string): DatabaseSync => {
  const { DatabaseSync } = nodeSqlite(path)
  const options = { readOnly: true, timeout: 5_000 }
  const db = new DatabaseSync(path, options)
  try {
    db.prepare('select count(*) from sqlite_schema').get()
    return db
  } catch (error) {
    db.close()
    if (!isForbidden(error)) throw error
  }
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0)
    return new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, options)
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-reading-'))
  try {
    const copy = join(folder, 'journal')
    copyFileSync(path, copy)
    copyFileSync(`${path}-wal`, `${copy}-wal`)
    const copied = new DatabaseSync(copy)
    copied.exec('pragma wal_checkpoint(truncate); pragma query_only = on')
    return copied
  } finally {
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  }
}

/** Columns that an older file lacks are kept beside it in memory: the file is read as it is, also where nobody may write. */
const asNewest = `
  create temp view checkpoints as select *, 0 as resting from main.checkpoints;
  create temp table forgotten (scope text, position integer);
  create temp table covered (through integer);
  insert into temp.covered values (0);
`

/** As `openSqliteReader`, for those who need the tables themselves. Throws instead of rejecting. */
export const openTables = (file: string): OpenTables => {
  const path = resolve(file)
  let db: DatabaseSync | undefined
  try {
    if (!existsSync(path)) throw new JournalUnavailable(path, 'does not exist', 'check the path')
    db = openForReading(path)
    const version = readVersion(db, path)
    if (version === 0) {
      throw new JournalUnavailable(path, 'is empty: no journal has been written yet', 'check the path')
    }
    if (version < schemaVersion) db.exec(asNewest)
    return { path, db, entries: new EntryReader(db, path), checkpoints: new CheckpointStore(db, path) }
  } catch (error) {
    db?.close()
    throw explainOpening(path, error)
  }
}

async function* readAll(
  entries: EntryReader,
  { after = 0, ...filter }: ReadQuery = {},
): AsyncGenerator<ReadonlyArray<StoredEntry>> {
  for (let from = after, first = true; ; first = false) {
    const slice = entries.slice({ ...filter, after: from, first })
    if (slice.entries.length > 0) yield slice.entries
    if (slice.done) return
    from = slice.through
  }
}
