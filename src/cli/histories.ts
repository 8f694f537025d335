/** The recorded history of each scope of a journal file. */
import { type Record as JournalRecord, readRecord } from '../host/read-record.ts'
import type { OpenTables } from '../journal/reader.ts'

export interface History {
  readonly history: JournalRecord[]
  /** The snapshot at which the history begins; absent when the history is whole. */
  readonly snapshot?: unknown
}

/**
 * Each scope's history from its beginning, or from the oldest checkpoint if the entries before it were
 * compacted.
 */
export const historiesOf = (tables: OpenTables, scope: string | null, untilAt: number | null) => {
  const { entries, checkpoints, path } = tables
  const compacted = entries.retention().through > 0
  const bases = new Map<string, number>()
  const histories = new Map<string, History>()
  for (const row of compacted ? checkpoints.allRows() : []) {
    if (bases.has(row.scope) || (scope !== null && row.scope !== scope)) continue
    bases.set(row.scope, row.position)
    histories.set(row.scope, { history: [], snapshot: JSON.parse(checkpoints.load(row).snapshot) })
  }
  const slice = { ...(scope === null ? {} : { scope }), ...(untilAt === null ? {} : { untilAt }) }
  for (let after = 0, done = false; !done; ) {
    const read = entries.slice({ ...slice, after, first: after === 0 })
    for (const entry of read.entries) {
      if (entry.position <= (bases.get(entry.scope) ?? 0)) continue
      const { history } = histories.get(entry.scope) ?? begin(histories, entry.scope)
      history.push(readRecord(path, entry))
    }
    after = read.through
    done = read.done
  }
  return histories
}

const begin = (histories: Map<string, History>, scope: string): History => {
  const fresh: History = { history: [] }
  histories.set(scope, fresh)
  return fresh
}
