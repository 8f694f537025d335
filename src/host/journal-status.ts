/** The present state of another process's scopes, read from its journal alone. The journal is never written, and its host is not asked. */
import { openSqliteReader } from '../journal/reader.ts'
import type { JournalSize } from '../journal/size.ts'
import { replayScopes } from './replay.ts'
import { scopeStatus } from './scope-facts.ts'
import type { ScopeStatus } from './status.ts'

export interface JournalStatus {
  /** Whether a process writes the journal now. Of a dead one, all is as it was at each scope's newest event. */
  readonly isLive: boolean
  /** What the journal takes on the disk. */
  readonly journal: JournalSize
  /** In order of their names. */
  readonly scopes: ReadonlyArray<ScopeStatus>
}

/**
 * Reads the journal at `path` beside its writer. `nowMs` is the moment at which ages of a live host are reckoned,
 * epoch milliseconds. Rejects with `JournalUnavailable`, `JournalTooNew` or `JournalCorrupt`.
 */
export const journalStatus = async (path: string, nowMs: number = Date.now()): Promise<JournalStatus> => {
  const reader = await openSqliteReader(path)
  try {
    const { scopes } = await replayScopes(reader, path)
    const isLive = reader.isWritten()
    return {
      isLive,
      journal: reader.size(),
      scopes: scopes.map(({ context }) => scopeStatus(context, isLive ? nowMs : context.at)),
    }
  } finally {
    reader.close()
  }
}
