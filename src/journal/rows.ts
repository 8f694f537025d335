/** Entries as rows: checksums, and reading them back slice by slice with every row and gap checked. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { JournalCorrupt, type KnownScope, knownScope, type StoredEntry } from './journal.ts'
import { messageOf } from './opening.ts'
import type { ReadSlice } from './wire.ts'

/** CRC-32 over all that a row says. Finds damage, not forgery. */
export const entryChecksum = (position: number, at: number, scope: string, record: string): number => {
  return crc32(`${position} ${at} ${scope}\n${record}`)
}

/** What a scope's newest checkpoint says of itself. */
interface NewestRow {
  readonly scope: string
  readonly position: number
  readonly at: number
  readonly resting: 0 | 1
}

/** Rows looked at in one slice: a slice takes a few ms at most, so it never holds up a commit for longer. */
const sliceRows = 1_000

/** Positions that are looked through for a text in one slice. */
const namingPositions = 4_096

/** The row id is a number whatever happens to the rest. */
export type Row = [position: number, at: unknown, scope: unknown, record: unknown, checksum: unknown]

export interface EntrySlice {
  readonly entries: ReadonlyArray<StoredEntry>
  /** Everything up to here was looked at. */
  readonly through: number
  readonly done: boolean
}

/**
 * Reads entries slice by slice. Every row is checked before it is filtered: a row whose scope or
 * time was damaged would otherwise just be missing from a filtered read.
 */
export class EntryReader {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #rows: StatementSync
  readonly #uncovered: StatementSync
  readonly #last: StatementSync
  readonly #covered: StatementSync
  readonly #retention: StatementSync
  readonly #forgotten: StatementSync
  readonly #coveredThrough: StatementSync

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
    this.#rows = db.prepare(
      `select position, at, scope, record, checksum from entries
       where position > ? order by position limit ${sliceRows}`,
    )
    this.#rows.setReturnArrays(true)
    this.#uncovered = db.prepare(
      `with newest as materialized (select scope, max(position) as through from checkpoints group by scope)
       select position, at, e.scope, record, checksum from entries e left join newest n on n.scope = e.scope
       where position > ? and (through is null or position > through) order by position limit ${sliceRows}`,
    )
    this.#uncovered.setReturnArrays(true)
    this.#last = db.prepare('select max(position) as position from entries')
    this.#covered = db.prepare('select max(position) as position from checkpoints')
    this.#retention = db.prepare('select through, kept from retention')
    this.#forgotten = db.prepare('select scope, position from forgotten')
    this.#coveredThrough = db.prepare('select through as position from covered')
  }

  /** The last position that was ever given out: the newest entry's, even when retention has dropped it. */
  lastPosition(): number {
    return Math.max(positionOf(this.#last), positionOf(this.#covered), this.retention().through)
  }

  /** Up to `through` entries may have been dropped; exactly `kept` of those are left. */
  retention(): { readonly through: number; readonly kept: number } {
    const row = this.#retention.get() as { through: number; kept: number } | undefined
    if (row === undefined) throw new JournalCorrupt(this.#path, 'retention 1', 'it is missing')
    return row
  }

  /** Reads the next slice in one read transaction of its own. Throws `JournalCorrupt`. */
  slice(query: ReadSlice): EntrySlice {
    return inReadTransaction(this.#db, () => {
      const dropped = this.#checkRetention(query.first && query.after === 0)
      if (query.naming !== undefined) return this.#namingSlice(query, query.naming)
      return query.uncovered === true ? this.#uncoveredSlice(query, dropped) : this.#slice(query, dropped)
    })
  }

  /** Up to where each forgotten scope's entries are nobody's history. */
  forgotten(): ReadonlyMap<string, number> {
    const rows = this.#forgotten.all() as unknown as Array<{ scope: string; position: number }>
    return new Map(rows.map(({ scope, position }) => [scope, position]))
  }

  /** Every scope with a checkpoint or an entry, by name. Looks at every entry. */
  scopes(checkpoints: { rows(): ReadonlyArray<NewestRow> }): ReadonlyArray<KnownScope> {
    return inReadTransaction(this.#db, () => {
      const newest = new Map(checkpoints.rows().map((row) => [row.scope, row]))
      const named = this.#db
        .prepare(
          `select distinct e.scope from entries e left join forgotten f on f.scope = e.scope
           where f.position is null or e.position > f.position`,
        )
        .all() as unknown as Array<{ scope: string }>
      const names = new Set([...newest.keys(), ...named.map(({ scope }) => scope)])
      return [...names].sort().map((scope) => knownScope(scope, newest.get(scope)))
    })
  }

  #slice({ after, scope, untilAt = Number.POSITIVE_INFINITY }: ReadSlice, dropped: number): EntrySlice {
    const entries: Array<StoredEntry> = []
    const forgotten = this.forgotten()
    let through = after
    let count = 0
    for (const row of this.#fetch(this.#rows, after)) {
      const entry = this.#checked(row, Math.max(through, dropped))
      through = entry.position
      count++
      if (entry.position <= (forgotten.get(entry.scope) ?? 0)) continue
      if (entry.at <= untilAt && (scope === undefined || entry.scope === scope)) entries.push(entry)
    }
    const done = count < sliceRows
    if (done) this.#checkEnd(Math.max(through, dropped))
    return { entries, through, done }
  }

  /** SQLite searches the records, many positions in a slice; only its finds are checked. */
  #namingSlice(query: ReadSlice, { text, through }: { text: string; through: number }): EntrySlice {
    const { after, scope, untilAt = Number.POSITIVE_INFINITY } = query
    const end = Math.min(after + namingPositions, through)
    const forgotten = this.forgotten()
    const rows = this.#db.prepare(
      `select position, at, scope, record, checksum from entries
       where position > ? and position <= ? and instr(record, ?) > 0 order by position`,
    )
    rows.setReturnArrays(true)
    const entries = (rows.all(after, end, text) as unknown as ReadonlyArray<Row>)
      .map((row) => this.#checked(row, Number.MAX_SAFE_INTEGER))
      .filter(
        (entry) =>
          entry.position > (forgotten.get(entry.scope) ?? 0) &&
          entry.at <= untilAt &&
          (scope === undefined || entry.scope === scope),
      )
    return { entries, through: end, done: end >= through }
  }

  /** Positions skip where a checkpoint stands for an entry, so that none is missing is found by counting. */
  #uncoveredSlice(query: ReadSlice, dropped: number): EntrySlice {
    const { first, scope, untilAt = Number.POSITIVE_INFINITY } = query
    const after = Math.max(query.after, positionOf(this.#coveredThrough))
    if (first) this.#checkCount(Math.max(after, dropped))
    const rows = this.#fetch(this.#uncovered, after)
    const forgotten = this.forgotten()
    const entries = rows
      .map((row) => this.#checked(row, Number.MAX_SAFE_INTEGER))
      .filter(
        (entry) =>
          entry.position > (forgotten.get(entry.scope) ?? 0) &&
          entry.at <= untilAt &&
          (scope === undefined || entry.scope === scope),
      )
    const done = rows.length < sliceRows
    if (done) this.#checkEnd(Math.max(positionOf(this.#last), dropped))
    return { entries, through: rows.at(-1)?.[0] ?? after, done }
  }

  /** Throws `JournalCorrupt` unless every position after `after` has its entry. */
  #checkCount(after: number): void {
    const { last, n } = this.#counted(after)
    if (n === last - after) return
    // Something is missing, and only whoever reads row by row can say which.
    for (let slice = this.#slice({ after, first: false }, after); ; ) {
      if (slice.done) break
      slice = this.#slice({ after: slice.through, first: false }, after)
    }
    throw new JournalCorrupt(this.#path, `entries ${after + 1}..${last}`, `${last - after - n} are missing`)
  }

  #counted(after: number): { readonly last: number; readonly n: number } {
    try {
      // A parameter that is used twice is bound twice: up to 24.4 Node cannot bind a numbered one by its place.
      return this.#db
        .prepare('select coalesce(max(position), ?) as last, count(*) as n from entries where position > ?')
        .get(after, after) as { last: number; n: number }
    } catch (error) {
      throw new JournalCorrupt(this.#path, `entries ${after + 1}..`, messageOf(error))
    }
  }

  /** Answers up to where positions may skip. Whether one too many is missing below shows only in their number. */
  #checkRetention(isFromStart: boolean): number {
    const { through, kept } = this.retention()
    if (isFromStart && through > 0) {
      const { n } = this.#db
        .prepare('select count(*) as n from entries where position <= ?')
        .get(through) as { n: number }
      if (n !== kept) {
        throw new JournalCorrupt(this.#path, `entries 1..${through}`, `${kept} were kept, ${n} are here`)
      }
    }
    return through
  }

  /** `all` is quick but names no row when SQLite meets a damaged page; stepping again finds where. */
  #fetch(statement: StatementSync, after: number): ReadonlyArray<Row> {
    try {
      return statement.all(after) as unknown as ReadonlyArray<Row>
    } catch (error) {
      let reached = after
      try {
        for (const row of this.#rows.iterate(after)) {
          reached = this.#checked(row as unknown as Row, Number.MAX_SAFE_INTEGER).position
        }
      } catch (inner) {
        if (inner instanceof JournalCorrupt) throw inner
      }
      throw new JournalCorrupt(this.#path, `entries ${reached + 1}`, messageOf(error))
    }
  }

  #checked(row: Row, contiguousFrom: number): StoredEntry {
    const checked = checkRow(row)
    if (checked.position > contiguousFrom + 1) {
      throw new JournalCorrupt(this.#path, `entries ${contiguousFrom + 1}`, 'it is missing')
    }
    if (checked.entry === undefined) {
      throw new JournalCorrupt(this.#path, `entries ${checked.position}`, badChecksum)
    }
    return checked.entry
  }

  /** A checkpoint stands for entries that were durable before it was, so the newest entry cannot be older. */
  #checkEnd(through: number): void {
    const covered = positionOf(this.#covered)
    if (covered > through) {
      throw new JournalCorrupt(
        this.#path,
        `entries ${through + 1}`,
        `it is missing: a checkpoint stands for entries up to ${covered}`,
      )
    }
  }
}

/** What a scan meets: a good entry, or damage from one position through another (Infinity: nothing can be read beyond). */
export type Scanned =
  | { readonly entry: StoredEntry }
  | { readonly from: number; readonly through: number; readonly problem: string; readonly raw?: Row }

/** Every row in position order, going on after damage where SQLite can. `dropped`: up to where positions may skip. */
export function* scanEntries(db: DatabaseSync, dropped: number): Generator<Scanned> {
  const rows = db.prepare(
    'select position, at, scope, record, checksum from entries where position > ? order by position limit 1000',
  )
  rows.setReturnArrays(true)
  let reached = 0
  for (;;) {
    let count = 0
    try {
      for (const raw of rows.iterate(reached) as unknown as Iterable<Row>) {
        count++
        const { position, entry } = checkRow(raw)
        const expected = Math.max(reached, dropped) + 1
        if (position > expected) yield { from: expected, through: position - 1, problem: 'it is missing' }
        yield entry === undefined
          ? { from: position, through: position, problem: badChecksum, raw }
          : { entry }
        reached = position
      }
    } catch (error) {
      yield { from: reached + 1, through: Number.POSITIVE_INFINITY, problem: messageOf(error) }
      return
    }
    if (count === 0) return
  }
}

const badChecksum = 'its checksum does not fit its content'

/** `entry` is absent when the row is not what was written. */
const checkRow = ([position, at, scope, record, checksum]: Row): {
  readonly position: number
  readonly entry?: StoredEntry
} => {
  const isWellFormed = typeof at === 'number' && typeof scope === 'string' && typeof record === 'string'
  if (!isWellFormed || entryChecksum(position, at, scope, record) !== checksum) return { position }
  return { position, entry: { position, at, scope, record } }
}

/** Runs `work` on one state of the database, whatever a writer does meanwhile. */
export const inReadTransaction = <A>(db: DatabaseSync, work: () => A): A => {
  if (db.isTransaction) return work()
  db.exec('begin')
  try {
    return work()
  } finally {
    db.exec('rollback')
  }
}

const positionOf = (statement: StatementSync): number => {
  const row = statement.get() as { position: number | null } | undefined
  return row?.position ?? 0
}
