/** Recorded scopes for tests: from a journal file, from its export, or from a snapshot. */
import { open } from 'node:fs/promises'
import { contextFrom, type Decision, type ScopeContext } from '../../machines/index.ts'
import { readRecord } from '../host/read-record.ts'
import { type Difference, replayScopes } from '../host/replay.ts'
import type { Checkpoint, Journal, StoredEntry } from '../journal/journal.ts'
import { openMemoryJournal } from '../journal/memory.ts'
import { openSqliteReader } from '../journal/reader.ts'

export interface RecordedJournal {
  /** The newest state of each scope, by its name. */
  readonly scopes: ReadonlyMap<string, ScopeContext>
  /** One of them. Throws RangeError that names all, when there is none of this name. */
  readonly scope: (name: string) => ScopeContext
  /** Every decision that the journal still holds, in order. */
  readonly decisions: ReadonlyArray<Decision>
  /** Entries that this version decides otherwise than was recorded; empty when none. */
  readonly differences: ReadonlyArray<Difference>
}

export interface LoadOptions {
  /** The scopes as they were at this time, epoch milliseconds. Default: the newest state. */
  readonly untilAt?: number
}

/**
 * Reads a journal file, also while a host writes it, or the lines that `rightofway journal export` wrote.
 * Rejects with `JournalUnavailable`, `JournalCorrupt` or `JournalTooNew`.
 */
export const loadJournal = async (path: string, options: LoadOptions = {}): Promise<RecordedJournal> => {
  if (await isExport(path)) return recorded(await exported(path), path, options)
  const reader = await openSqliteReader(path)
  try {
    return await recorded(reader, path, options)
  } finally {
    reader.close()
  }
}

/** The state of a scope from a snapshot: its JSON text or value. Throws `SnapshotUnreadable`. */
export const loadSnapshot = (snapshot: unknown): ScopeContext => {
  const value: unknown = typeof snapshot === 'string' ? JSON.parse(snapshot) : snapshot
  const name = (value as { readonly scope?: unknown } | null)?.scope
  return contextFrom(typeof name === 'string' ? name : 'test/key/model', value)
}

type Readable = Pick<Journal, 'read' | 'checkpoints'>

const recorded = async (
  journal: Readable,
  path: string,
  { untilAt }: LoadOptions,
): Promise<RecordedJournal> => {
  const until = untilAt === undefined ? {} : { untilAt }
  const { scopes, differences } = await replayScopes(journal, path, until)
  const decisions: Decision[] = []
  for await (const batch of journal.read(until)) {
    for (const entry of batch) decisions.push(...readRecord(path, entry).decisions)
  }
  const byName = new Map(scopes.map(({ context }) => [context.scope, context]))
  return {
    scopes: byName,
    scope: (name) => {
      const found = byName.get(name)
      if (found !== undefined) return found
      throw new RangeError(`${path} knows no scope ${name}; there are ${[...byName.keys()].join(', ')}`)
    },
    decisions,
    differences,
  }
}

const isExport = async (path: string): Promise<boolean> => {
  const file = await open(path).catch(() => null)
  if (file === null) return false
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, 0)
    return bytesRead === 1 && buffer.toString() === '{'
  } finally {
    await file.close()
  }
}

const exported = async (path: string): Promise<Readable> => {
  const entries: StoredEntry[] = []
  const checkpoints: Checkpoint[] = []
  const file = await open(path)
  for await (const line of file.readLines()) {
    const value = JSON.parse(line) as { readonly entry?: StoredEntry; readonly checkpoint?: Checkpoint }
    if (value.entry !== undefined) entries.push(value.entry)
    if (value.checkpoint !== undefined) checkpoints.push(value.checkpoint)
  }
  return openMemoryJournal({ history: { entries, checkpoints } })
}
