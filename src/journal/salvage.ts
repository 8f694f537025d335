/**
 * Every good row of a damaged journal into a fresh one, and what that leaves open: which positions are
 * missing, and for which scopes they leave a hole in what has to be replayed.
 */
import type { DatabaseSync } from 'node:sqlite'
import { type JournalProblem, rangeName } from './check.ts'
import { CheckpointStore } from './checkpoints.ts'
import type { Checkpoint, StoredEntry } from './journal.ts'
import { messageOf } from './opening.ts'
import { type PageRow, pageRows, pageTexts } from './pages.ts'
import { entryChecksum } from './rows.ts'

/** A scope whose history since its newest good checkpoint is not whole. */
export interface HoledScope {
  readonly scope: string
  /** The whole entries before it; null where there are none. */
  readonly checkpoint: Checkpoint | null
  /** Good entries after the checkpoint, in order. */
  readonly entries: ReadonlyArray<StoredEntry>
  /** Position of the first entry that may be missing. */
  readonly firstLost: number
  /** Ids that stand somewhere in the damage: any of them may be a call of this scope. */
  readonly damagedIds: ReadonlyArray<string>
}

export interface Salvaged {
  readonly entries: number
  readonly checkpoints: number
  /** Missing positions, as ranges. */
  readonly lost: ReadonlyArray<{ readonly from: number; readonly through: number }>
  /** Highest position that anything tells of. */
  readonly last: number
  readonly holed: ReadonlyArray<HoledScope>
  readonly bad: { readonly entries: number; readonly checkpoints: number }
}

/** What retention said of the old file; null where it cannot be read. */
export interface OldMarks {
  readonly retention: { readonly through: number; readonly kept: number } | null
  readonly forgotten: ReadonlyMap<string, number>
  /** Whether the list of checkpoints could be read whole. */
  readonly knowsCheckpoints: boolean
}

type Aside = (line: object) => void

/** Copies every readable row of `path` into `fresh`. Damaged rows go to `aside`. */
export const salvage = (path: string, fresh: DatabaseSync, marks: OldMarks, aside: Aside): Salvaged => {
  fresh.exec('begin')
  const badEntries = copyRows(path, fresh, marks, aside)
  const checkpoints = keepGoodCheckpoints(path, fresh, marks, aside)
  fresh.exec('commit')
  const { last, lost, reach } = gaps(fresh, marks, checkpoints.last)
  const damagedIds = reach === 0 ? [] : idsInDamage(path, fresh)
  const { newest: bases, bad } = checkpoints
  const holed = holedScopes(fresh, marks, { reach, lost, bases, bad, damagedIds })
  const { n } = fresh.prepare('select count(*) as n from entries').get() as { n: number }
  return {
    entries: n,
    checkpoints: checkpoints.kept,
    lost,
    last,
    holed,
    bad: { entries: badEntries, checkpoints: checkpoints.bad.size },
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)

const entryOf = ({ rowid, cells }: PageRow): (StoredEntry & { readonly checksum: number }) | null => {
  const [own, at, scope, record, checksum] = cells
  if (rowid === null || cells.length !== 5 || own !== null) return null
  if (typeof at !== 'number' || !isText(scope) || !isText(record) || !isWhole(checksum)) return null
  return { position: rowid, at, scope, record, checksum }
}

const named = /"(?:callId|id)":("(?:[^"\\]|\\.)*")/g

const idsIn = (text: string): string[] =>
  [...text.matchAll(named)].flatMap(([, quoted]) => {
    try {
      return [JSON.parse(quoted!) as string]
    } catch {
      return []
    }
  })

const copyRows = (path: string, fresh: DatabaseSync, { forgotten }: OldMarks, aside: Aside) => {
  const putEntry = fresh.prepare('insert or ignore into entries values (?, ?, ?, ?, ?)')
  const putPart = fresh.prepare('insert or ignore into checkpoint_parts values (?, ?, ?, ?)')
  const putHead = fresh.prepare('insert or ignore into checkpoints values (?, ?, ?, ?, ?, ?)')
  let badEntries = 0
  for (const row of pageRows(path)) {
    const entry = entryOf(row)
    if (entry !== null) {
      const { position, at, scope, record, checksum } = entry
      if (entryChecksum(position, at, scope, record) === checksum) {
        if (position > (forgotten.get(scope) ?? 0)) putEntry.run(position, at, scope, record, checksum)
        continue
      }
    }
    const { rowid, cells } = row
    // The list of tables has as many columns, but no row id among them.
    if (rowid !== null && cells.length === 5 && cells[0] === null) {
      badEntries += 1
      aside({ row: `entries ${rowid}`, problem: 'its checksum does not fit its content', raw: cells })
      continue
    }
    const [scope, position, third, fourth, fifth, sixth = 0] = cells
    if (!isText(scope) || !isWhole(position)) continue
    if (rowid !== null && cells.length === 4 && isWhole(third) && isText(fourth))
      putPart.run(scope, position, third, fourth)
    // Older files have no sixth column.
    const isHead = cells.length >= 5 && typeof third === 'number' && isWhole(fourth) && isWhole(fifth)
    if (rowid === null && isHead && isWhole(sixth)) putHead.run(scope, position, third, fourth, fifth, sixth)
  }
  return badEntries
}

/** Ids that stand somewhere in the file, but in no good entry: their calls' entries are among those that were lost. */
const idsInDamage = (path: string, fresh: DatabaseSync): ReadonlyArray<string> => {
  const ids = new Set<string>()
  for (const text of pageTexts(path)) for (const id of idsIn(text)) ids.add(id)
  for (const row of fresh.prepare('select record from entries').iterate())
    for (const id of idsIn((row as { record: string }).record)) ids.delete(id)
  return [...ids]
}

interface KeptCheckpoints {
  readonly kept: number
  readonly last: number
  /** Position of the newest good one of each scope. */
  readonly newest: ReadonlyMap<string, number>
  /** Position of the newest bad one of each scope that has one. */
  readonly bad: ReadonlyMap<string, number>
}

const keepGoodCheckpoints = (
  path: string,
  fresh: DatabaseSync,
  marks: OldMarks,
  aside: Aside,
): KeptCheckpoints => {
  const store = new CheckpointStore(fresh, path)
  const newest = new Map<string, number>()
  const bad = new Map<string, number>()
  let kept = 0
  let last = 0
  for (const row of store.allRows()) {
    last = Math.max(last, row.position)
    try {
      store.load(row)
      kept += 1
      newest.set(row.scope, row.position)
    } catch (error) {
      bad.set(row.scope, row.position)
      store.drop(row.scope, row.position)
      aside({ ...row, problem: messageOf(error) })
    }
  }
  for (const [scope, position] of marks.forgotten) store.dropAll(scope, position)
  store.dropUnfinished()
  return { kept, last, newest, bad }
}

/** Positions that nothing is there for, and up to where something that was to be kept may be missing. */
const gaps = (fresh: DatabaseSync, { retention, forgotten }: OldMarks, covered: number) => {
  const lost: Array<{ from: number; through: number }> = []
  const through = retention?.through ?? 0
  let below = 0
  let reached = through
  for (const row of fresh.prepare('select position from entries order by position').iterate()) {
    const { position } = row as { position: number }
    if (position <= through) below += 1
    else {
      if (position > reached + 1 && forgotten.size === 0)
        lost.push({ from: reached + 1, through: position - 1 })
      reached = position
    }
  }
  const last = Math.max(reached, covered)
  if (last > reached) lost.push({ from: reached + 1, through: last })
  // Stale pages may hold more than was kept; fewer means that some are gone, nobody knows which.
  const isShort = retention !== null && below < retention.kept
  const reach = Math.max(isShort ? through : 0, ...lost.slice(-1).map((range) => range.through))
  return { last, lost, reach }
}

interface Openings {
  readonly reach: number
  readonly lost: Salvaged['lost']
  readonly bases: ReadonlyMap<string, number>
  readonly bad: ReadonlyMap<string, number>
  readonly damagedIds: ReadonlyArray<string>
}

const holedScopes = (fresh: DatabaseSync, marks: OldMarks, openings: Openings): ReadonlyArray<HoledScope> => {
  const { reach, lost, bases, bad, damagedIds } = openings
  const store = new CheckpointStore(fresh, '')
  // Where retention's mark cannot be read, a journal without a gap shows that nothing was dropped.
  const droppable = marks.retention?.through ?? (lost.length === 0 ? 0 : Number.MAX_SAFE_INTEGER)
  // Entries that a lost checkpoint stood for may have been dropped, and the trace of that checkpoint may be gone too.
  const stoodFor = (scope: string, base: number): number => {
    const isKnown = base > 0 && marks.knowsCheckpoints
    return Math.min(droppable, isKnown ? (bad.get(scope) ?? 0) : Number.MAX_SAFE_INTEGER)
  }
  const names = fresh.prepare('select distinct scope from entries').all() as unknown as Array<{
    scope: string
  }>
  const holed = new Map<string, { base: number; entries: StoredEntry[] }>()
  for (const scope of new Set([...names.map((row) => row.scope), ...bad.keys(), ...bases.keys()])) {
    const base = bases.get(scope) ?? 0
    if (base < reach || base < stoodFor(scope, base)) holed.set(scope, { base, entries: [] })
  }
  if (holed.size === 0) return []
  for (const row of fresh
    .prepare('select position, at, scope, record from entries order by position')
    .iterate()) {
    const entry = row as unknown as StoredEntry
    const one = holed.get(entry.scope)
    if (one !== undefined && entry.position > one.base) one.entries.push({ ...entry })
  }
  return [...holed].map(([scope, { base, entries }]) => {
    const row = base === 0 ? undefined : store.newestRow(scope)
    const firstGap = lost.find((range) => range.through > base)?.from ?? reach
    const firstLost = base < stoodFor(scope, base) ? base + 1 : Math.max(base + 1, firstGap)
    return { scope, checkpoint: row === undefined ? null : store.load(row), entries, firstLost, damagedIds }
  })
}

/** As a person reads them. */
export const lostNames = (lost: Salvaged['lost']): ReadonlyArray<JournalProblem['row']> =>
  lost.map(({ from, through }) => rangeName(from, through))
