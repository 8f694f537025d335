/** What a journal takes on the disk, and how far back it reaches. */
import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { JournalUsage } from './journal.ts'

/** The size of a journal, without what only its writer knows. */
export type JournalSize = Omit<JournalUsage, 'walPinned'>

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

export const journalSize = (db: DatabaseSync, path: string): JournalSize => {
  // Counting the rows would read the whole file: up to `through` exactly `kept` are left, and after it none is missing.
  const { n, oldest } = db
    .prepare(
      `select kept + max(0, coalesce((select max(position) from entries), 0) - through) as n,
         (select at from entries order by position limit 1) as oldest from retention`,
    )
    .get() as { n: number; oldest: number | null }
  return { bytes: bytesOf(path), walBytes: bytesOf(`${path}-wal`), entries: n, oldestAt: oldest }
}
