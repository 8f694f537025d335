/**
 * Retention: entries that a checkpoint stands for are dropped once they are old enough, and older
 * checkpoints with them, always so that every state since then can still be rebuilt: what is left
 * of a scope starts at a checkpoint that is kept. Entries of a forgotten scope go at once.
 */
import type { DatabaseSync } from 'node:sqlite'
import { JournalCorrupt } from './journal.ts'
import type { JournalWriter } from './writer.ts'

/** Positions in one slice: about a millisecond, which is what a commit waits for it. */
const slicePositions = 256

/** One pass over the journal, slice by slice. */
export class CompactionRun {
  /** Requests that wait for the end of this run. */
  readonly callers: Array<number> = []
  dropped = 0
  readonly #keepFromMs: number
  readonly #dropsForgotten: boolean
  #forgotten: ReadonlyMap<string, number> = new Map()
  #after = 0
  #floors: ReadonlyMap<string, number> | undefined

  /**
   * @param keepFromMs Entries younger than this are kept, epoch ms.
   * @param dropsForgotten Looks for the entries of forgotten scopes among all; else only among those old enough.
   */
  constructor(keepFromMs: number, dropsForgotten: boolean) {
    this.#keepFromMs = keepFromMs
    this.#dropsForgotten = dropsForgotten
  }

  /** Does one slice; true when the pass is over. */
  slice(writer: JournalWriter): boolean {
    if (this.#floors === undefined) {
      this.#floors = this.#begin(writer)
      return this.#floors.size === 0
    }
    const floors = this.#floors
    let end = 0
    for (const floor of floors.values()) end = Math.max(end, floor)
    return writer.relaxed((db) => {
      const isOver = this.#next(db, writer.path, floors, end)
      if (isOver && this.#dropsForgotten) removeForgotten(db, this.#forgotten)
      return isOver
    })
  }

  #next(db: DatabaseSync, path: string, floors: ReadonlyMap<string, number>, end: number): boolean {
    const first = db
      .prepare('select position from entries where position > ? order by position limit 1')
      .get(this.#after) as { position: number } | undefined
    if (first === undefined || first.position > end) return true
    const through = Math.min(first.position + slicePositions - 1, end)
    this.dropped += dropCovered(db, path, first.position, through, floors)
    this.#after = through
    return through >= end
  }

  /** Up to where each scope's entries may go; drops the checkpoints that only those would need. */
  #begin(writer: JournalWriter): ReadonlyMap<string, number> {
    const kept = writer.checkpoints.rows(this.#keepFromMs)
    writer.relaxed(() => {
      for (const { scope, position } of kept) {
        for (const older of writer.checkpoints.ofScope(scope)) {
          if (older.position < position) writer.checkpoints.drop(scope, older.position)
        }
      }
    })
    const floors = new Map(kept.map(({ scope, position }) => [scope, position]))
    this.#forgotten = writer.entries.forgotten()
    let oldest = 0
    for (const floor of floors.values()) oldest = Math.max(oldest, floor)
    for (const [scope, position] of this.#forgotten) {
      const through = this.#dropsForgotten ? position : Math.min(position, oldest)
      if (through > (floors.get(scope) ?? 0)) floors.set(scope, through)
    }
    return floors
  }
}

const dropCovered = (
  db: DatabaseSync,
  path: string,
  from: number,
  through: number,
  floors: ReadonlyMap<string, number>,
): number => {
  const mark = db.prepare('select through, kept from retention').get() as { through: number; kept: number }
  const newlyPassed = Math.max(0, through - mark.through)
  checkComplete(db, path, mark.through, through)
  const scopes = db
    .prepare('select distinct scope from entries where position between ? and ?')
    .all(from, through) as unknown as Array<{ scope: string }>
  const remove = db.prepare('delete from entries where position between ? and ? and scope = ?')
  let dropped = 0
  for (const { scope } of scopes) {
    const floor = Math.min(through, floors.get(scope) ?? 0)
    if (floor >= from) dropped += Number(remove.run(from, floor, scope).changes)
  }
  // `kept` counts the entries left up to the mark, so that a missing row is noticed.
  const left = mark.kept + newlyPassed - dropped
  db.prepare('update retention set through = ?, kept = ?').run(Math.max(mark.through, through), left)
  return dropped
}

/** Nothing is left of these scopes that would have to be passed over; those forgotten again meanwhile stay. */
const removeForgotten = (db: DatabaseSync, forgotten: ReadonlyMap<string, number>): void => {
  const remove = db.prepare('delete from forgotten where scope = ? and position = ?')
  for (const [scope, position] of forgotten) remove.run(scope, position)
}

/** A row that is already missing must not pass for one that was dropped. Throws `JournalCorrupt`. */
const checkComplete = (db: DatabaseSync, path: string, after: number, through: number): void => {
  if (through <= after) return
  const { n } = db
    .prepare('select count(*) as n from entries where position > ? and position <= ?')
    .get(after, through) as { n: number }
  if (n === through - after) return
  throw new JournalCorrupt(path, `entries ${after + 1}..${through}`, `${through - after - n} are missing`)
}
