/** `rightofway journal repair`: makes a damaged journal readable again and loses nothing silently. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { checkJournal, type JournalProblem } from './check.ts'
import { CheckpointStore } from './checkpoints.ts'
import { JournalCorrupt, JournalLocked } from './journal.ts'
import { leaseHolder, releaseLease, takeLease } from './lease.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { explainOpening, isDamage, messageOf } from './opening.ts'
import { pageRows } from './pages.ts'
import { EntryReader, entryChecksum } from './rows.ts'
import { type HoledScope, lostNames, type OldMarks, salvage } from './salvage.ts'
import { migrate, readVersion, schemaVersion } from './schema.ts'
import { JournalWriter } from './writer.ts'

/** The state from which a scope with a hole in its history continues. */
export interface MendedScope {
  readonly scope: string
  readonly at: number
  /** One more entry, which says what is not known. */
  readonly record: string
  readonly snapshot: string
  readonly resting: boolean
  /** Ids of calls whose outcome is unknown from now on. */
  readonly calls: ReadonlyArray<string>
}

/** Decides what becomes of a scope with a hole: `mendScope` of the host. */
export type Mend = (path: string, holed: HoledScope) => MendedScope

export interface JournalRepair {
  /** False when nothing was wrong; then nothing was touched. */
  readonly repaired: boolean
  readonly problems: ReadonlyArray<JournalProblem>
  readonly kept: { readonly entries: number; readonly checkpoints: number }
  /** Rows that were there and are not what was written. */
  readonly movedAside: { readonly entries: number; readonly checkpoints: number }
  /** Positions of entries that are nowhere, for example `entries 7..9`. */
  readonly lost: ReadonlyArray<string>
  /** Copy of the file as it was (its WAL beside it with `-wal`); null when nothing was touched. */
  readonly copy: string | null
  /** NDJSON of all rows that were damaged, with the reason; null when nothing was touched. */
  readonly aside: string | null
  /** Scopes that the lost entries may have been about. */
  readonly holedScopes: ReadonlyArray<string>
  /** Of these, those of which nothing is left: they start anew. */
  readonly lostScopes: ReadonlyArray<string>
  /** Calls whose outcome is unknown from now on, by scope: they are never sent again. */
  readonly unknownCalls: ReadonlyArray<{ readonly scope: string; readonly callId: string }>
}

/** A repair may take long and sends no heartbeats; if it dies, its lease is taken over at once on this host. */
const repairLeaseMs = 3_600_000

/**
 * Repairs the journal in `file`: keeps every row that is what was written, wherever in the file it
 * stands, and lets `mend` decide on each scope whose history has a hole. A copy of the file as it was,
 * and the damaged rows, go to files beside it. Throws `JournalLocked` while a live writer holds it,
 * `JournalTooNew`, and `JournalUnavailable` when there is no journal.
 *
 * @param nowMs Names the files put aside, epoch ms.
 */
export const repairJournal = (file: string, mend: Mend, nowMs = Date.now()): JournalRepair => {
  const path = resolve(file)
  checkUnlessUnreadable(path)
  const old = openDamaged(path)
  let isReplaced = false
  try {
    // Checked again under the lease: what was written meanwhile counts too.
    const { ok, problems } = checkUnlessUnreadable(path)
    if (ok && old !== null) return untouched(old)
    const stamp = new Date(nowMs).toISOString().replace(/[:.]/g, '-')
    const copy = `${path}.damaged-${stamp}`
    const aside = `${path}.removed-${stamp}.ndjson`
    const fresh = `${path}.repaired-${stamp}`
    copyFileSync(path, copy)
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`)
    const marks = old === null ? noMarks : marksOf(old)
    const outcome = rebuild({ copy, fresh, asidePath: aside, path }, marks, mend)
    // Closed with its lease, so that no writer opens the old file in the moment before it is replaced.
    old?.db.close()
    replaceJournal(path, fresh)
    isReplaced = true
    return { repaired: true, problems, copy, aside, ...outcome }
  } finally {
    if (!isReplaced && old?.db.isOpen) unlock(old)
    if (old?.db.isOpen) old.db.close()
  }
}

/** A file that SQLite does not take for one may still be a journal, with its first page damaged. */
const checkUnlessUnreadable = (path: string): { ok: boolean; problems: ReadonlyArray<JournalProblem> } => {
  try {
    return checkJournal(path)
  } catch (error) {
    if (!isDamage((error as Error).cause) || !holdsEntries(path)) throw error
    return { ok: false, problems: [{ row: 'file', problem: messageOf(error) }] }
  }
}

const holdsEntries = (path: string): boolean => {
  for (const { rowid, cells } of pageRows(path)) {
    const [own, at, scope, record, checksum] = cells
    if (rowid === null || cells.length !== 5 || own !== null) continue
    if (entryChecksum(rowid, Number(at), String(scope), String(record)) === checksum) return true
  }
  return false
}

/** Puts a closed, complete journal in the place of `path`, whose lease the caller holds. */
export const replaceJournal = (path: string, fresh: string): void => {
  // A WAL of the old file must not be taken for one of the new.
  rmSync(`${path}-wal`, { force: true })
  rmSync(`${path}-shm`, { force: true })
  renameSync(fresh, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } catch {
    // Some systems cannot sync a folder; the rename itself is still whole.
  } finally {
    closeSync(folder)
  }
}

/** The damaged file, open for writing so that its lease can be taken. */
interface DamagedJournal {
  readonly path: string
  readonly db: DatabaseSync
  readonly entries: EntryReader
  readonly checkpoints: CheckpointStore
  /** Undefined when the lease itself cannot be read. */
  readonly token: string | undefined
}

/** Null where SQLite cannot open it at all: then no host can write it either. */
const openDamaged = (path: string): DamagedJournal | null => {
  let db: DatabaseSync | undefined
  try {
    db = new (nodeSqlite(path).DatabaseSync)(path, { timeout: 5_000 })
    if (readVersion(db, path) < schemaVersion) bringUpToDate(db, path)
    const entries = new EntryReader(db, path)
    const checkpoints = new CheckpointStore(db, path)
    return { path, db, entries, checkpoints, token: lock(db, path) }
  } catch (error) {
    db?.close()
    if (isDamage(error)) return null
    throw explainOpening(path, error)
  }
}

const bringUpToDate = (db: DatabaseSync, path: string): void => {
  const holder = leaseHolder(db, Date.now())
  if (holder !== undefined) throw new JournalLocked(path, holder)
  db.exec('begin immediate')
  try {
    migrate(db, path)
    db.exec('commit')
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}

/** A lease that cannot be read protects nobody: no writer can commit without reading it either. */
const lock = (db: DatabaseSync, path: string): string | undefined => {
  try {
    db.exec('begin immediate')
    const token = takeLease(db, path, Date.now(), repairLeaseMs)
    db.exec('commit')
    return token
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    if (!isDamage(error)) throw error
    return undefined
  }
}

const unlock = ({ db, token }: DamagedJournal): void => {
  if (token !== undefined) releaseLease(db, token)
}

const untouched = ({ db, checkpoints }: DamagedJournal): JournalRepair => {
  const { n } = db.prepare('select count(*) as n from entries').get() as { n: number }
  return {
    repaired: false,
    problems: [],
    kept: { entries: n, checkpoints: checkpoints.allRows().length },
    movedAside: { entries: 0, checkpoints: 0 },
    copy: null,
    aside: null,
    lost: [],
    holedScopes: [],
    lostScopes: [],
    unknownCalls: [],
  }
}

type Rebuilt = Omit<JournalRepair, 'repaired' | 'problems' | 'copy' | 'aside'>

const noMarks: OldMarks = { retention: null, forgotten: new Map(), knowsCheckpoints: false }

const marksOf = (old: DamagedJournal): OldMarks => ({
  retention: otherwise(() => old.entries.retention(), null),
  forgotten: otherwise(() => old.entries.forgotten(), new Map()),
  knowsCheckpoints: otherwise(() => old.checkpoints.allRows().length >= 0, false),
})

interface Places {
  readonly path: string
  readonly copy: string
  readonly fresh: string
  readonly asidePath: string
}

const rebuild = ({ path, copy, fresh, asidePath }: Places, marks: OldMarks, mend: Mend): Rebuilt => {
  const aside = openAside(asidePath)
  const writer = new JournalWriter(fresh, { leaseMs: repairLeaseMs, keepEntriesMs: 0, faults: [] })
  try {
    const found = writer.salvaged((db) => salvage(copy, db, marks, aside.write))
    let position = found.last
    const unknownCalls: Array<{ scope: string; callId: string }> = []
    for (const holed of found.holed) {
      const { scope, at, record, snapshot, resting, calls } = mend(path, holed)
      position += 1
      writer.append([[{ position, scope, at, record }]])
      writer.restoreCheckpoint({ scope, position, at, snapshot, resting })
      for (const callId of calls) unknownCalls.push({ scope, callId })
    }
    // The missing rows are known from here on: only the rows that are left are expected.
    writer.restoreRetention(position)
    aside.sync()
    return {
      kept: { entries: found.entries, checkpoints: found.checkpoints },
      movedAside: found.bad,
      lost: lostNames(found.lost),
      holedScopes: found.holed.map(({ scope }) => scope).sort(),
      lostScopes: found.holed
        .filter(isNothing)
        .map(({ scope }) => scope)
        .sort(),
      unknownCalls,
    }
  } finally {
    writer.close()
    aside.close()
  }
}

const isNothing = ({ checkpoint, entries }: HoledScope): boolean =>
  checkpoint === null && entries.length === 0

const otherwise = <A>(work: () => A, fallback: A): A => {
  try {
    return work()
  } catch (error) {
    if (error instanceof JournalCorrupt || isDamage(error)) return fallback
    throw error
  }
}

interface Aside {
  readonly write: (line: object) => void
  readonly sync: () => void
  readonly close: () => void
}

const openAside = (path: string): Aside => {
  const file = openSync(path, 'wx', 0o600)
  return {
    write: (line) => writeSync(file, `${JSON.stringify(line)}\n`),
    sync: () => fsyncSync(file),
    close: () => closeSync(file),
  }
}
