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
import { checkJournal, type JournalProblem, rangeName } from './check.ts'
import { type CheckpointRow, CheckpointStore } from './checkpoints.ts'
import { type Checkpoint, JournalCorrupt, type StoredEntry } from './journal.ts'
import { releaseLease, takeLease } from './lease.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { explainOpening, isDamage, messageOf } from './opening.ts'
import { EntryReader, scanEntries } from './rows.ts'
import { JournalWriter } from './writer.ts'

export interface JournalRepair {
  /** False when nothing was wrong; then nothing was touched. */
  readonly repaired: boolean
  readonly problems: ReadonlyArray<JournalProblem>
  readonly kept: { readonly entries: number; readonly checkpoints: number }
  readonly movedAside: { readonly entries: number; readonly checkpoints: number }
  /** Copy of the file as it was (its WAL beside it with `-wal`); null when nothing was touched. */
  readonly copy: string | null
  /** NDJSON of all that is no longer in the journal, with the reason; null when nothing was touched. */
  readonly aside: string | null
  /** Scopes whose only checkpoint was damaged and whose earlier entries are gone: they start anew. */
  readonly lostScopes: ReadonlyArray<string>
}

/** A repair may take long and sends no heartbeats; if it dies, its lease is taken over at once on this host. */
const repairLeaseMs = 3_600_000
const commitEntries = 1_000

/**
 * Repairs the journal in `file`: keeps all before the first bad row, and after it only what a
 * good checkpoint makes whole (entries of a scope whose newest checkpoint comes after the last bad
 * row). The rest, and a copy of the file as it was, go to files beside it. Throws `JournalLocked`
 * while a live writer holds it, `JournalTooNew`, `JournalUnavailable`, and `JournalCorrupt` when
 * not even its list of tables can be read (then the file is left as it is).
 *
 * @param nowMs Names the files put aside, epoch ms.
 */
export const repairJournal = (file: string, nowMs = Date.now()): JournalRepair => {
  const path = resolve(file)
  checkJournal(path)
  const old = openDamaged(path)
  let isReplaced = false
  try {
    // Checked again under the lease: what was written meanwhile counts too.
    const { ok, problems } = checkJournal(path)
    if (ok) return untouched(old)
    const stamp = new Date(nowMs).toISOString().replace(/[:.]/g, '-')
    const copy = `${path}.damaged-${stamp}`
    const aside = `${path}.removed-${stamp}.ndjson`
    const fresh = `${path}.repaired-${stamp}`
    copyFileSync(path, copy)
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`)
    const outcome = rebuild(old, fresh, aside)
    // Closed with its lease, so that no writer opens the old file in the moment before it is replaced.
    old.db.close()
    replaceJournal(path, fresh)
    isReplaced = true
    return { repaired: true, problems, copy, aside, ...outcome }
  } finally {
    if (!isReplaced && old.db.isOpen) unlock(old)
    if (old.db.isOpen) old.db.close()
  }
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

const openDamaged = (path: string): DamagedJournal => {
  let db: DatabaseSync | undefined
  try {
    db = new (nodeSqlite(path).DatabaseSync)(path, { timeout: 5_000 })
    const entries = new EntryReader(db, path)
    const checkpoints = new CheckpointStore(db, path)
    return { path, db, entries, checkpoints, token: lock(db, path) }
  } catch (error) {
    db?.close()
    throw explainOpening(path, error)
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
    lostScopes: [],
  }
}

type Rebuilt = Pick<JournalRepair, 'kept' | 'movedAside' | 'lostScopes'>

const rebuild = (old: DamagedJournal, fresh: string, asidePath: string): Rebuilt => {
  const aside = openAside(asidePath)
  const writer = new JournalWriter(fresh, { leaseMs: repairLeaseMs, keepEntriesMs: 0, faults: [] })
  try {
    const checkpoints = keepCheckpoints(old, writer, aside)
    const entries = keepEntries(old, writer, aside, checkpoints)
    // What is missing now was moved aside on purpose: from here on only these rows are expected.
    writer.restoreRetention(Math.max(entries.last, checkpoints.last))
    aside.sync()
    return {
      kept: { entries: entries.kept, checkpoints: checkpoints.kept },
      movedAside: { entries: entries.moved, checkpoints: checkpoints.moved },
      lostScopes: [...checkpoints.lost].sort(),
    }
  } finally {
    writer.close()
    aside.close()
  }
}

interface KeptCheckpoints {
  readonly kept: number
  readonly moved: number
  /** Highest position a checkpoint stands for, good or bad. */
  readonly last: number
  /** Position of the newest good checkpoint of each scope. */
  readonly newest: ReadonlyMap<string, number>
  readonly lost: ReadonlySet<string>
}

const keepCheckpoints = (old: DamagedJournal, writer: JournalWriter, aside: Aside): KeptCheckpoints => {
  const newest = new Map<string, number>()
  const bad = new Map<string, number>()
  const dropped = otherwise(() => old.entries.retention().through, Number.MAX_SAFE_INTEGER)
  let kept = 0
  let moved = 0
  let last = 0
  for (const row of otherwise(() => old.checkpoints.allRows(), [])) {
    last = Math.max(last, row.position)
    const loaded = load(old.checkpoints, row)
    if (loaded instanceof Error) {
      moved++
      aside.write({ ...row, problem: messageOf(loaded) })
      bad.set(row.scope, row.position)
      continue
    }
    kept++
    newest.set(row.scope, row.position)
    writer.restoreCheckpoint(loaded)
  }
  // Entries before the only checkpoint may have been dropped: what is left of the scope starts nowhere.
  const lost = new Set<string>()
  for (const [scope, position] of bad) if (!newest.has(scope) && position <= dropped) lost.add(scope)
  return { kept, moved, last, newest, lost }
}

const keepEntries = (
  old: DamagedJournal,
  writer: JournalWriter,
  aside: Aside,
  { newest, lost }: KeptCheckpoints,
): { kept: number; moved: number; last: number } => {
  const dropped = otherwise(() => old.entries.retention().through, Number.MAX_SAFE_INTEGER)
  const [firstBad, lastBad] = damagedRange(old, dropped)
  let batch: Array<StoredEntry> = []
  let kept = 0
  let moved = 0
  let last = 0
  const flush = () => {
    if (batch.length > 0) writer.append([batch])
    batch = []
  }
  for (const scanned of scanEntries(old.db, dropped)) {
    if (!('entry' in scanned)) {
      const { from, through, problem, raw = null } = scanned
      if (Number.isFinite(through)) last = through
      if (raw !== null) moved++
      aside.write({ row: rangeName(from, through), problem, raw })
      continue
    }
    const { entry } = scanned
    last = entry.position
    const isWhole = entry.position < firstBad || (newest.get(entry.scope) ?? 0) >= lastBad
    if (isWhole && !lost.has(entry.scope)) {
      kept++
      if (batch.push(entry) === commitEntries) flush()
    } else {
      moved++
      aside.write({ ...entry, problem: 'an earlier entry is unreadable' })
    }
  }
  flush()
  return { kept, moved, last }
}

/** First and last damaged position; both Infinity when there is none. */
const damagedRange = (old: DamagedJournal, dropped: number): readonly [first: number, last: number] => {
  let first = Number.POSITIVE_INFINITY
  let last = Number.POSITIVE_INFINITY
  let below = 0
  for (const scanned of scanEntries(old.db, dropped)) {
    if ('entry' in scanned) {
      if (scanned.entry.position <= dropped) below++
      continue
    }
    first = Math.min(first, scanned.from)
    last = scanned.through
  }
  const kept = otherwise(() => old.entries.retention().kept, below)
  if (below >= kept || first <= dropped) return [first, last]
  // One that was kept is gone, and nothing says which or whose: only later checkpoints are sure.
  return [1, Number.isFinite(first) ? last : dropped]
}

const load = (store: CheckpointStore, row: CheckpointRow): Checkpoint | Error => {
  try {
    return store.load(row)
  } catch (error) {
    if (error instanceof JournalCorrupt || isDamage(error)) return error as Error
    throw error
  }
}

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
