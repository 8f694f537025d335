/** Versions of the file: older ones are brought up to date, newer ones are refused. */

import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { mendScope } from '../../src/host/mend.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { JournalTooNew } from '../../src/journal/journal.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { repairJournal } from '../../src/journal/repair.ts'
import { type Migration, migrate, migrations, readVersion, schemaVersion } from '../../src/journal/schema.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { fill, temporaryPath } from './fixture.ts'

const withMark: Migration = {
  version: schemaVersion + 1,
  why: 'made for this test: a column with a value for the rows that are there',
  sql: `alter table entries add column mark text not null default 'old';
        update entries set mark = 'from ' || position`,
}
const broken: Migration = {
  version: schemaVersion + 2,
  why: 'made for this test: fails half way',
  sql: 'drop table entries; nonsense',
}

const madeJournal = async (): Promise<string> => {
  const path = temporaryPath()
  const journal = await openSqliteJournal(path)
  await fill(journal, 3)
  await journal.close()
  return path
}

const migrated = (path: string, steps: ReadonlyArray<Migration>): number => {
  const db = new DatabaseSync(path)
  try {
    db.exec('begin immediate')
    const before = migrate(db, path, steps)
    db.exec('commit')
    return before
  } finally {
    db.close()
  }
}

describe('schema versions', () => {
  it('are consecutive from 1', () => {
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1))
  })

  it('bring an older file up to date and keep its rows', async () => {
    const path = await madeJournal()
    expect(migrated(path, [...migrations, withMark])).toBe(schemaVersion)
    const db = new DatabaseSync(path)
    expect(readVersion(db, path, schemaVersion + 1)).toBe(schemaVersion + 1)
    expect(db.prepare('select position, mark from entries').all()).toEqual([
      { position: 1, mark: 'from 1' },
      { position: 2, mark: 'from 2' },
      { position: 3, mark: 'from 3' },
    ])
    db.close()
    expect(migrated(path, [...migrations, withMark])).toBe(schemaVersion + 1)
  })

  it('leave the file as it was when a step fails', async () => {
    const path = await madeJournal()
    expect(() => migrated(path, [...migrations, withMark, broken])).toThrow('nonsense')
    expect(checkJournal(path)).toMatchObject({ ok: true, schemaVersion, entries: 3 })
  })

  it('of a newer release are refused by everything, and the file is left alone', async () => {
    const path = await madeJournal()
    migrated(path, [...migrations, withMark])
    const message = `journal ${path} has schema version ${schemaVersion + 1}, this release reads up to version ${schemaVersion}; use the release`
    await expect(openSqliteJournal(path)).rejects.toBeInstanceOf(JournalTooNew)
    await expect(openSqliteJournal(path)).rejects.toThrow(message)
    await expect(openSqliteReader(path)).rejects.toThrow(message)
    expect(() => checkJournal(path)).toThrow(message)
    expect(() => repairJournal(path, mendScope)).toThrow(message)
  })
})
