/**
 * Retention: entries that a checkpoint stands for are dropped once they are old enough, and older
 * checkpoints with them, always so that every state since then can still be rebuilt: what is left
 * of a scope starts at a checkpoint that is kept.
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
  #after = 0
  #floors: ReadonlyMap<string, number> | undefined

  /** @param keepFromMs What is younger than this is kept, epoch ms. */
  constructor(keepFromMs: number) {
    this.#keepFromMs = keepFromMs
  }

  /** Does one slice; true when the pass is over. */
  slice(writer: JournalWriter): boolean {
    if (this.#floors === undefined) {
      this.#floors = this.#begin(writer)
      return this.#floors.size === 0
    }
    const floors = this.#floors
    const end = Math.max(...floors.values())
    return writer.relaxed((db) => {
      const first = db
        .prepare('select position from entries where position > ? order by position limit 1')
        .get(this.#after) as { position: number } | undefined
      if (first === undefined || first.position > end) return true
      const through = Math.min(first.position + slicePositions - 1, end)
      this.dropped += dropCovered(db, writer.path, first.position, through, floors)
      this.#after = through
      return through >= end
    })
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
    return new Map(kept.map(({ scope, position }) => [scope, position]))
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
  // `kept` counts what is left up to the mark, so that a row that goes missing there is noticed.
  const left = mark.kept + newlyPassed - dropped
  db.prepare('update retention set through = ?, kept = ?').run(Math.max(mark.through, through), left)
  return dropped
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
