/** What a host that opens a journal would say of its scopes: the same code reads them. */
import type { CheckHistory } from '../journal/check.ts'
import type { Checkpoint, StoredEntry } from '../journal/journal.ts'
import { readRecord } from './read-record.ts'
import { feedEntry, Replayed } from './recovery.ts'

/** Decodes every checkpoint, reads every record, and replays the entries that no checkpoint covers. */
export const historyProblems: CheckHistory = ({ path, entries, checkpoints }, report) => {
  const scopes = new Map<string, Replayed>()
  for (const row of checkpoints.allRows()) {
    const checkpoint: Checkpoint = checkpoints.load(row)
    const replayed = Replayed.from(row.scope, () => checkpoint)
    if (replayed.failure !== null)
      report(`checkpoints ${row.scope} ${row.position}`, replayed.failure.message)
    scopes.set(row.scope, replayed)
  }
  const reported = new Set([...scopes].filter(([, { failure }]) => failure !== null).map(([scope]) => scope))
  for (let after = 0, first = true, done = false; !done; first = false) {
    const slice = entries.slice({ after, first })
    for (const entry of slice.entries) check(path, scopes, entry, reported, report)
    after = slice.through
    done = slice.done
  }
}

const check = (
  path: string,
  scopes: Map<string, Replayed>,
  entry: StoredEntry,
  reported: Set<string>,
  report: (row: string, problem: string) => void,
): void => {
  const replayed = scopes.get(entry.scope) ?? new Replayed(entry.scope)
  scopes.set(entry.scope, replayed)
  try {
    if (entry.position <= replayed.position) readRecord(path, entry)
    else if (!reported.has(entry.scope)) feedEntry(path, replayed, entry)
  } catch (error) {
    // After a failure, later entries of the scope tell nothing new.
    reported.add(entry.scope)
    report(`entries ${entry.position}`, (error as Error).message)
  }
}
