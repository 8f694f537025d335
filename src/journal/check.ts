/** `rightofway journal check`: everything that is wrong with a journal, without changing it. */
import { statSync } from 'node:fs'
import { CheckpointStore } from './checkpoints.ts'
import { JournalCorrupt } from './journal.ts'
import { messageOf } from './opening.ts'
import { type OpenTables, openTables } from './reader.ts'
import { inReadTransaction, scanEntries } from './rows.ts'
import { readVersion } from './schema.ts'

export interface JournalProblem {
  /** Table and row, for example `entries 4711`, `checkpoints anthropic/ab12/opus 4000`, or `file`. */
  readonly row: string
  readonly problem: string
}

export interface JournalCheck {
  readonly ok: boolean
  /** 0 when the damage is such that it cannot be read. */
  readonly schemaVersion: number
  /** Good entries. */
  readonly entries: number
  /** Names of the scopes that good entries and checkpoints belong to, sorted. */
  readonly scopes: ReadonlyArray<string>
  /** In the order met; empty when `ok`. At most 1,000 are listed. */
  readonly problems: ReadonlyArray<JournalProblem>
  /** What is worth knowing and no fault, for example that this may be a copy without its WAL. */
  readonly notes: ReadonlyArray<string>
}

/** Looks at what rows say: `historyProblems` of the host finds what a host that opens the journal would. */
export type CheckHistory = (tables: OpenTables, report: (row: string, problem: string) => void) => void

const listedProblems = 1_000

/**
 * Checks every row of the journal in `file`, also while a writer is at work. Throws
 * `JournalTooNew`, or `JournalUnavailable` when there is no journal at `file`.
 */
export const checkJournal = (file: string, history: CheckHistory = () => {}): JournalCheck => {
  let tables: OpenTables
  try {
    tables = openTables(file)
  } catch (error) {
    if (!(error instanceof JournalCorrupt)) throw error
    const problems = [{ row: error.row, problem: error.problem }]
    return { ok: false, schemaVersion: 0, entries: 0, scopes: [], problems, notes: [] }
  }
  try {
    return inReadTransaction(tables.db, () => check(tables, history))
  } finally {
    tables.db.close()
  }
}

const check = (tables: OpenTables, history: CheckHistory): JournalCheck => {
  const { db, path, entries: reader } = tables
  const problems: Array<JournalProblem> = []
  const report = (row: string, problem: string) => {
    if (problems.length < listedProblems) problems.push({ row, problem })
  }
  const scopes = new Set<string>()
  let entries = 0
  let last = 0
  let below = 0
  const { through: dropped, kept } = attempt(() => reader.retention(), { through: 0, kept: 0 }, report)
  for (const scanned of scanEntries(db, dropped)) {
    if ('entry' in scanned) {
      entries++
      scopes.add(scanned.entry.scope)
      last = scanned.entry.position
    } else {
      report(rangeName(scanned.from, scanned.through), scanned.problem)
      last = scanned.through
    }
    if (last <= dropped) below++
  }
  if (below !== kept) report(`entries 1..${dropped}`, `${kept} were kept, ${below} are here`)
  const covered = checkCheckpoints(new CheckpointStore(db, path), scopes, report)
  if (covered > Math.max(last, dropped)) {
    const problem = `missing: a checkpoint stands for entries up to ${covered}`
    report(rangeName(Math.max(last, dropped) + 1, covered), problem)
  }
  for (const message of pageProblems(db)) report('file', message)
  // Rows that cannot be read say nothing.
  if (problems.length === 0) history(tables, report)
  const ok = problems.length === 0
  const notes = notesOf(tables)
  return { ok, schemaVersion: readVersion(db, path), entries, scopes: [...scopes].sort(), problems, notes }
}

/** A journal that a host has open, or died with, has a WAL beside it; a copy of the file alone has none. */
const notesOf = ({ db, path }: OpenTables): ReadonlyArray<string> => {
  const lease = attempt(
    () => db.prepare('select pid, host from lease').get(),
    undefined,
    () => {},
  )
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (lease === undefined || walBytes > 0) return []
  return [
    `it was open by process ${lease['pid']} on ${lease['host']} and has no ${path}-wal beside it: ` +
      "if it was copied while in use, its newest entries are missing; 'rightofway journal backup' copies all",
  ]
}

/** Answers the highest position that a checkpoint stands for. */
const checkCheckpoints = (
  store: CheckpointStore,
  scopes: Set<string>,
  report: (row: string, problem: string) => void,
): number => {
  let covered = 0
  for (const row of attempt(() => store.allRows(), [], report)) {
    covered = Math.max(covered, row.position)
    scopes.add(row.scope)
    attempt(() => store.load(row), undefined, report, `checkpoints ${row.scope} ${row.position}`)
  }
  return covered
}

/** SQLite's own view of its pages. */
const pageProblems = (db: OpenTables['db']): ReadonlyArray<string> => {
  try {
    const rows = db.prepare('pragma quick_check(20)').all() as Array<{ quick_check: string }>
    return rows.map(({ quick_check: message }) => message).filter((message) => message !== 'ok')
  } catch (error) {
    return [messageOf(error)]
  }
}

const attempt = <A>(
  work: () => A,
  otherwise: A,
  report: (row: string, problem: string) => void,
  row = 'file',
): A => {
  try {
    return work()
  } catch (error) {
    if (error instanceof JournalCorrupt) report(error.row, error.problem)
    else report(row, messageOf(error))
    return otherwise
  }
}

/** `entries 7`, `entries 7..9`, or `entries 7..` when nothing beyond can be read. */
export const rangeName = (from: number, through: number): string => {
  if (through === from) return `entries ${from}`
  return Number.isFinite(through) ? `entries ${from}..${through}` : `entries ${from}..`
}
