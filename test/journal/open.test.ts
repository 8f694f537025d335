/** Paths that cannot hold a journal are refused, with the next step in the message. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { JournalUnavailable } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openJournal } from '../../src/journal/open.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { entry, temporaryPath } from './fixture.ts'

describe('openJournal', () => {
  it("opens ':memory:', a path, or takes a journal that is open", async () => {
    expect((await openJournal(':memory:')).append(entry(1))).toBe(1)
    const journal = openMemoryJournal()
    expect(await openJournal(journal)).toBe(journal)
    const file = await openJournal(temporaryPath())
    expect(file.append(entry(1))).toBe(1)
    await file.close()
  })

  it.each<[name: string, make: (path: string) => string, message: string]>([
    ['a missing folder', (path) => join(path, 'x.db'), 'does not exist; create it, or pass another path'],
    ['a directory', (path) => dirname(path), 'is a directory; pass a file path such as'],
    [
      'a file that is not SQLite',
      (path) => {
        writeFileSync(path, 'hello, this is some text '.repeat(100))
        return path
      },
      'is not an SQLite file; move it away, or pass another path',
    ],
    [
      "another program's database",
      (path) => {
        const db = new DatabaseSync(path)
        db.exec('create table notes (text)')
        db.close()
        return path
      },
      "is another program's SQLite database; pass another path",
    ],
  ])('refuses %s', async (_, make, message) => {
    const path = make(temporaryPath())
    const opening = openJournal(path)
    await expect(opening).rejects.toBeInstanceOf(JournalUnavailable)
    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.toThrow(`journal ${path}`)
  })

  it('leaves a foreign file as it was', async () => {
    const path = temporaryPath()
    const db = new DatabaseSync(path)
    db.exec('create table notes (text)')
    db.close()
    const before = readFileSync(path)
    await expect(openJournal(path)).rejects.toThrow()
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it.each([
    ['leaseMs', { leaseMs: 1 }, 'leaseMs must be at least 100, got 1'],
    ['keepEntriesMs', { keepEntriesMs: -1 }, 'keepEntriesMs must be at least 0, got -1'],
    ['compactEveryMs', { compactEveryMs: Number.NaN }, 'compactEveryMs must be at least 0, got NaN'],
  ])('refuses a bad %s', async (_, options, message) => {
    await expect(openJournal(temporaryPath(), options)).rejects.toThrow(message)
  })

  it('refuses a journal it may not write, and a folder it may not create one in', () => {
    const path = temporaryPath()
    const locked = join(dirname(path), 'locked')
    mkdirSync(locked)
    writeFileSync(join(locked, 'old.db'), '')
    chmodSync(join(locked, 'old.db'), 0o444)
    chmodSync(locked, 0o555)
    chmodSync(dirname(path), 0o755)
    const script = fileURLToPath(new URL('./writer-process.ts', import.meta.url))
    // Permissions do not bind root: there the process first becomes the user `nobody`.
    const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    const said = (file: string) =>
      spawnSync(process.execPath, [script, join(locked, file), 'idle'], { encoding: 'utf8', ...identity })
        .stdout
    expect(said('new.db')).toContain(
      `cannot be created in ${locked} by this user; give the user write access`,
    )
    expect(said('old.db')).toContain('cannot be written by this user; give the user write access to the file')
    chmodSync(locked, 0o755)
  })
})

describe('openSqliteReader', () => {
  it.each<[name: string, make: (path: string) => void, message: string]>([
    ['nothing', () => {}, 'does not exist; check the path'],
    ['an empty file', (path) => writeFileSync(path, ''), 'is empty: no journal has been written yet'],
    ['a directory', (path) => mkdirSync(path), 'is a directory'],
  ])('refuses %s and makes no file', async (_, make, message) => {
    const path = temporaryPath()
    make(path)
    await expect(openSqliteReader(path)).rejects.toThrow(message)
  })
})
