/** The work of a person on a journal that no host has open: bring it up to date, drop scopes, drop old entries. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { JournalUnavailable, type KnownScope } from './journal.ts'
import { openTables } from './reader.ts'
import { migrations, readVersion, schemaVersion } from './schema.ts'
import { openSqliteJournal } from './sqlite.ts'

export interface JournalMigration {
  readonly from: number
  readonly to: number
  /** The purpose of each step, in order. */
  readonly steps: ReadonlyArray<string>
}

/** What opening the journal with this release would change in its tables. Changes nothing. Throws `JournalTooNew`. */
export const plannedMigration = (file: string): JournalMigration => {
  const { db, path } = openTables(file)
  try {
    const from = readVersion(db, path)
    return { from, to: schemaVersion, steps: migrations.slice(from).map(({ why }) => why) }
  } finally {
    db.close()
  }
}

/** Brings the journal up to date, as a host that opens it does. Rejects with `JournalLocked` while one has it. */
export const migrateJournal = async (file: string): Promise<JournalMigration> => {
  const planned = plannedMigration(file)
  if (planned.steps.length > 0) await (await openSqliteJournal(file, { compactEveryMs: 0 })).close()
  return planned
}

/** Every scope that the journal knows. */
export const listScopes = (file: string): ReadonlyArray<KnownScope> => {
  const { db, entries, checkpoints } = openTables(file)
  try {
    return entries.scopes(checkpoints)
  } finally {
    db.close()
  }
}

/** Drops what the journal knows of one scope, live or not. Answers false when it knows no such scope. */
export const dropScope = async (file: string, scope: string): Promise<boolean> => {
  if (!listScopes(file).some((known) => known.scope === scope)) return false
  const journal = await openSqliteJournal(file, { compactEveryMs: 0 })
  try {
    await journal.forget(scope)
    return true
  } finally {
    await journal.close()
  }
}

/** Drops entries that checkpoints stand for and that are older than `keepMs`. */
export const compactJournal = async (file: string, keepMs: number): Promise<{ readonly dropped: number }> => {
  const path = resolve(file)
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    throw new JournalUnavailable(path, 'does not exist', 'check the path')
  const journal = await openSqliteJournal(path, { keepEntriesMs: keepMs, compactEveryMs: 0 })
  try {
    return await journal.compact()
  } finally {
    await journal.close()
  }
}
