/** What a host that opens a journal would say of its scopes: the same code reads them. */
import type { CheckHistory } from '../journal/check.ts'
import type { Checkpoint, StoredEntry } from '../journal/journal.ts'
import { feedEntry, Replayed, readRecord } from './recovery.ts'

/** Every checkpoint is decoded, every record read, and what no checkpoint stands for is replayed. */
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
    // What follows in a scope that has failed tells nothing new.
    reported.add(entry.scope)
    report(`entries ${entry.position}`, (error as Error).message)
  }
}
