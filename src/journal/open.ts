/** One way to say where the journal is. */
import type { Journal } from './journal.ts'
import { openMemoryJournal } from './memory.ts'
import { openSqliteJournal, type SqliteJournalOptions } from './sqlite.ts'

/** `':memory:'`, a file path, or a journal that is already open (then the options do not apply). */
export type JournalSpec = string | Journal

/**
 * Opens the journal that `spec` names. Rejects with `JournalUnavailable` when the path cannot
 * hold one (it names the path and what to do), and as `openSqliteJournal` does.
 */
export const openJournal = async (
  spec: JournalSpec,
  options: SqliteJournalOptions = {},
): Promise<Journal> => {
  if (typeof spec !== 'string') return spec
  if (spec === ':memory:') return openMemoryJournal()
  if (spec === '') throw new RangeError("journal path must not be empty; pass a file path or ':memory:'")
  return openSqliteJournal(spec, options)
}
