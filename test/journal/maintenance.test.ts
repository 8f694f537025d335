/** Check, repair, export, import: what a person does with a journal that is damaged or must move. */

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { mendScope } from '../../src/host/mend.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { JournalCorrupt, JournalLocked, JournalUnavailable } from '../../src/journal/journal.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { repairJournal } from '../../src/journal/repair.ts'
import { schemaVersion } from '../../src/journal/schema.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { exportJournal, importJournal, JournalImportError } from '../../src/journal/transfer.ts'
import { entry, fill, listen, readAll, temporaryPath } from './fixture.ts'

/** A closed journal of 3,000 entries of scopes a, b, c in turn, with checkpoints of `a`. */
const madeJournal = async (
  checkpoints: ReadonlyArray<[scope: string, position: number]> = [],
): Promise<string> => {
  const path = temporaryPath()
  const journal = await openSqliteJournal(path, { keepEntriesMs: Number.MAX_SAFE_INTEGER })
  await fill(journal, 3_000, ['c', 'a', 'b'])
  for (const [scope, position] of checkpoints) {
    await journal.checkpoint({ scope, position, at: position, snapshot: JSON.stringify({ scope, position }) })
  }
  await journal.close()
  return path
}

const sql = (path: string, statement: string): void => {
  const db = new DatabaseSync(path)
  db.exec(statement)
  db.close()
}

/** Overwrites the page of the main file that holds this text. */
const damagePage = (path: string, text: string): void => {
  const bytes = readFileSync(path)
  const page = Math.floor(bytes.indexOf(text) / 4_096)
  bytes.fill(0xff, page * 4_096, page * 4_096 + 64)
  writeFileSync(path, bytes)
}

const positions = async (path: string): Promise<ReadonlyArray<number>> => {
  const reader = await openSqliteReader(path)
  try {
    return (await readAll(reader)).map(({ position }) => position)
  } finally {
    reader.close()
  }
}

const range = (from: number, through: number) =>
  Array.from({ length: through - from + 1 }, (_, i) => from + i)

describe('a whole journal', () => {
  it('passes the check, and repair touches nothing', async () => {
    const path = await madeJournal([['a', 1_000]])
    const found = checkJournal(path)
    expect(found).toEqual({
      ok: true,
      schemaVersion,
      entries: 3_000,
      scopes: ['a', 'b', 'c'],
      problems: [],
      notes: [],
    })
    const bytes = readFileSync(path)
    expect(repairJournal(path, mendScope)).toMatchObject({
      repaired: false,
      kept: { entries: 3_000, checkpoints: 1 },
      copy: null,
    })
    expect(readdirSync(dirname(path)).filter((name) => !/-(wal|shm)$/.test(name))).toEqual(['lanes.db'])
    expect(readFileSync(path).length).toBe(bytes.length)
    await (await openSqliteJournal(path)).close()
  })
})

const damages: ReadonlyArray<[name: string, statement: string, row: string, problem: string]> = [
  [
    'a changed record',
    `update entries set record = replace(record, 'n', 'm') where position = 1500`,
    'entries 1500',
    'its checksum does not fit its content',
  ],
  [
    'a flipped byte that is no UTF-8',
    `update entries set record = cast(x'7b22ff' as text) where position = 1500`,
    'entries 1500',
    'its checksum does not fit its content',
  ],
  [
    'a changed scope',
    `update entries set scope = 'z' where position = 1500`,
    'entries 1500',
    'its checksum does not fit its content',
  ],
  [
    'a changed time',
    'update entries set at = at + 1 where position = 1500',
    'entries 1500',
    'its checksum does not fit its content',
  ],
  ['a missing row', 'delete from entries where position = 1500', 'entries 1500', 'it is missing'],
]

describe.each(damages)('%s', (_, statement, row, problem) => {
  it('is named by every reading that meets it, whatever it asks for', async () => {
    const path = await madeJournal()
    sql(path, statement)
    expect(checkJournal(path)).toMatchObject({ ok: false, problems: [{ row, problem }] })
    const journal = await openSqliteJournal(path)
    const queries = [
      {},
      { scope: 'b' },
      { untilAt: entry(1_800).at },
      { after: 1_400 },
      { uncovered: true },
      { uncovered: true, scope: 'b' },
    ]
    for (const query of queries) {
      const reading = readAll(journal, query)
      await expect(reading).rejects.toBeInstanceOf(JournalCorrupt)
      await expect(reading).rejects.toMatchObject({ row, problem })
    }
    await journal.close()
  })

  it('is repaired: every good row is kept, what was damaged and the original are put aside', async () => {
    const path = await madeJournal([['a', 1_000]])
    sql(path, statement)
    const original = readFileSync(path)
    const { repaired, kept, movedAside, copy, aside, lost, holedScopes } = repairJournal(path, mendScope)
    expect(repaired).toBe(true)
    expect(kept).toEqual({ entries: 2_999, checkpoints: 1 })
    const isGone = problem === 'it is missing'
    expect(movedAside.entries).toBe(isGone ? 0 : 1)
    expect(lost).toEqual(['entries 1500'])
    expect(holedScopes).toEqual(['a', 'b', 'c'])
    expect(readFileSync(copy!).equals(original)).toBe(true)
    const lines = readFileSync(aside!, 'utf8').trim().split('\n')
    if (!isGone) expect(JSON.parse(lines[0]!)).toMatchObject({ row, problem })
    expect(statSync(aside!).mode & 0o777).toBe(0o600)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(checkJournal(path).problems).toEqual([])
    expect(await positions(path)).toEqual([...range(1, 1_499), ...range(1_501, 3_003)])
    const journal = await openSqliteJournal(path)
    expect(journal.append(entry(1))).toBe(3_004)
    await journal.close()
  })
})

describe('a reading of what no checkpoint stands for', () => {
  // Entry 1500 is scope c's: a checkpoint of it stands for that entry.
  const covered = () => madeJournal([['c', 2_000]])

  it('does not look at a row that one stands for, and notices when such a row is missing', async () => {
    const path = await covered()
    sql(path, `update entries set record = '' where position = 1500`)
    const journal = await openSqliteJournal(path)
    const found = await readAll(journal, { uncovered: true })
    expect(found).toHaveLength(2_000 + 334)
    expect(found.filter(({ scope }) => scope === 'c')[0]!.position).toBe(2_001)
    await expect(readAll(journal)).rejects.toMatchObject({ row: 'entries 1500' })
    await journal.close()
    sql(path, 'delete from entries where position = 1500')
    const again = await openSqliteJournal(path)
    const reading = readAll(again, { uncovered: true })
    await expect(reading).rejects.toMatchObject({ row: 'entries 1500', problem: 'it is missing' })
    await again.close()
  })

  it('notices that the last entries are missing, and a damaged page', async () => {
    const path = await covered()
    sql(path, 'delete from entries where position > 1990')
    const journal = await openSqliteJournal(path)
    await expect(readAll(journal, { uncovered: true })).rejects.toMatchObject({ row: 'entries 1991' })
    await journal.close()
    const torn = await covered()
    damagePage(torn, '{"event":{"n":1500}')
    const damaged = await openSqliteJournal(torn)
    await expect(readAll(damaged, { uncovered: true })).rejects.toBeInstanceOf(JournalCorrupt)
    await damaged.close()
  })

  it('goes by what retention has left', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await fill(journal, 3_000, ['c', 'a', 'b'])
    await journal.checkpoint({ scope: 'c', position: 1_500, at: 1_500, snapshot: '{}' })
    await journal.compact()
    await journal.checkpoint({ scope: 'a', position: 2_000, at: 2_000, snapshot: '{}' })
    const found = await readAll(journal, { uncovered: true })
    const count = (name: string) => found.filter(({ scope }) => scope === name).length
    expect([count('a'), count('b'), count('c')]).toEqual([333, 1_000, 500])
    await journal.close()
    sql(path, 'delete from entries where position = 2')
    const again = await openSqliteJournal(path)
    await expect(readAll(again, { uncovered: true })).rejects.toBeInstanceOf(JournalCorrupt)
    await again.close()
  })
})

describe('repair', () => {
  it('leaves a scope whole whose later checkpoint comes after the damage', async () => {
    const path = await madeJournal([
      ['a', 2_000],
      ['b', 1_000],
    ])
    sql(path, "update entries set record = 'x' where position = 1500")
    const { kept, holedScopes } = repairJournal(path, mendScope)
    expect(kept).toEqual({ entries: 2_999, checkpoints: 2 })
    expect(holedScopes).toEqual(['b', 'c'])
  })

  it('moves a damaged checkpoint aside', async () => {
    const path = await madeJournal([
      ['a', 1_000],
      ['a', 2_000],
    ])
    sql(path, "update checkpoint_parts set text = 'x' where position = 2000")
    const row = 'checkpoints a 2000'
    expect(checkJournal(path).problems).toEqual([{ row, problem: 'its checksum does not fit its content' }])
    const journal = await openSqliteJournal(path)
    await expect(journal.checkpoints()).rejects.toMatchObject({ row })
    await journal.close()
    expect(repairJournal(path, mendScope)).toMatchObject({
      kept: { entries: 3_000, checkpoints: 1 },
      movedAside: { entries: 0, checkpoints: 1 },
      lostScopes: [],
    })
    const reader = await openSqliteReader(path)
    expect((await reader.checkpoints()).map(({ position }) => position)).toEqual([1_000])
    reader.close()
  })

  it('says which scope is lost when its only checkpoint is damaged and its entries are gone', async () => {
    const path = await madeJournal([['a', 2_000]])
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await journal.compact()
    await journal.close()
    sql(path, "update checkpoint_parts set text = 'x'")
    const { holedScopes, kept } = repairJournal(path, mendScope)
    expect(holedScopes).toContain('a')
    expect(kept.checkpoints).toBe(0)
    expect(kept.entries).toBeGreaterThanOrEqual(2_000)
    expect(checkJournal(path).problems).toEqual([])
  })

  it('notices a row that is missing among those that retention kept', async () => {
    const path = await madeJournal([['a', 2_000]])
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await journal.compact()
    await journal.close()
    expect(checkJournal(path).problems).toEqual([])
    sql(path, "delete from entries where position = (select min(position) from entries where scope = 'b')")
    const problem = '1333 were kept, 1332 are here'
    expect(checkJournal(path).problems).toEqual([{ row: 'entries 1..2000', problem }])
    await expect(positions(path)).rejects.toThrow(problem)
    expect(repairJournal(path, mendScope).kept.entries).toBeGreaterThanOrEqual(2_332)
    expect(checkJournal(path).problems).toEqual([])
  })

  it('notices entries missing at the end when a checkpoint stands for them', async () => {
    const path = await madeJournal([['a', 3_000]])
    sql(path, 'delete from entries where position > 2990')
    expect(checkJournal(path).problems).toMatchObject([{ row: 'entries 2991..3000' }])
    await expect(positions(path)).rejects.toMatchObject({ row: 'entries 2991' })
    expect(repairJournal(path, mendScope)).toMatchObject({
      kept: { checkpoints: 1 },
      repaired: true,
    })
    expect(checkJournal(path).problems).toEqual([])
  })

  it('saves all before and behind a damaged page', async () => {
    const path = await madeJournal()
    damagePage(path, '{"event":{"n":1500}')
    const { ok, problems } = checkJournal(path)
    expect(ok).toBe(false)
    const named = Number(/^entries (\d+)\.\.$/.exec(problems[0]!.row)?.[1])
    expect(named).toBeGreaterThan(1_400)
    expect(named).toBeLessThanOrEqual(1_500)
    await expect(positions(path)).rejects.toMatchObject({ row: `entries ${named}` })
    const { kept, lost } = repairJournal(path, mendScope)
    expect(kept.entries).toBeGreaterThan(2_900)
    expect(lost).toHaveLength(1)
    expect(lost[0]).toMatch(new RegExp(`^entries ${named}\\.\\.`))
  })

  it('repairs a file whose tables cannot be read', async () => {
    const path = await madeJournal()
    const bytes = readFileSync(path)
    bytes.fill(0xff, 100, 4_096)
    writeFileSync(path, bytes)
    expect(checkJournal(path)).toMatchObject({ ok: false, schemaVersion: 0, problems: [{ row: 'file' }] })
    expect(repairJournal(path, mendScope).kept.entries).toBe(3_000)
    expect(await positions(path)).toEqual(range(1, 3_000))
  })

  it('leaves a file alone that is no journal', async () => {
    const path = temporaryPath()
    writeFileSync(path, 'a text of somebody else'.repeat(1_000))
    const bytes = readFileSync(path)
    expect(() => repairJournal(path, mendScope)).toThrow('is not an SQLite file')
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  it('refuses while a writer lives', async () => {
    const path = await madeJournal()
    const journal = await openSqliteJournal(path)
    expect(() => repairJournal(path, mendScope)).toThrow(JournalLocked)
    expect(checkJournal(path).ok).toBe(true)
    await journal.close()
  })
})

const exported = async (path: string): Promise<Array<string>> => {
  const lines: Array<string> = []
  for await (const line of exportJournal(path)) lines.push(line)
  return lines
}

describe('export and import', () => {
  it('carry everything, also what retention has left', async () => {
    const path = await madeJournal([
      ['a', 1_000],
      ['a', 2_000],
      ['b', 1_500],
    ])
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await journal.compact()
    const lines = await exported(path)
    const entries = await readAll(journal)
    const checkpoints = await journal.checkpoints()
    await journal.close()
    const copy = temporaryPath()
    expect(await importJournal(copy, exportJournal(path))).toEqual({
      entries: entries.length,
      checkpoints: 2,
    })
    expect(await exported(copy)).toEqual(lines)
    expect(checkJournal(copy).ok).toBe(true)
    const again = await openSqliteJournal(copy)
    expect(await readAll(again)).toEqual(entries)
    expect(await again.checkpoints()).toEqual(checkpoints)
    expect(again.append(entry(1))).toBe(3_001)
    await again.close()
    expect(statSync(copy).mode & 0o777).toBe(0o600)
  })

  it('tell of one state while a writer goes on', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    await fill(journal, 1_500)
    const lines: Array<string> = []
    for await (const line of exportJournal(path)) {
      if (lines.push(line) === 10) await listen(journal).durable(journal.append(entry(1_501)))
    }
    expect(JSON.parse(lines.at(-1)!)).toEqual({ end: { checkpoints: 0, entries: 1_500 } })
    await journal.close()
  })

  it('refuse a target that is not empty, or in use', async () => {
    const path = await madeJournal()
    await expect(importJournal(path, exportJournal(path))).rejects.toThrow(
      'is not empty (its last entry is 3000)',
    )
    await expect(importJournal(path, [])).rejects.toBeInstanceOf(JournalUnavailable)
    const used = temporaryPath()
    const journal = await openSqliteJournal(used)
    await expect(importJournal(used, exportJournal(path))).rejects.toBeInstanceOf(JournalLocked)
    await journal.close()
    await importJournal(used, exportJournal(path))
    expect(await positions(used)).toHaveLength(3_000)
  })

  const header = '{"journal":"rightofway","version":1,"retainedAfter":0}'
  const one = JSON.stringify({ entry: { position: 1, ...entry(1) } })
  it.each<[problem: string, lines: ReadonlyArray<string>]>([
    ['line 1: is not JSON', ['{']],
    ['line 1: is not the first line of a journal export', ['{"entry":{}}']],
    ['line 1: has export version 9', ['{"journal":"rightofway","version":9,"retainedAfter":0}']],
    ['line 2: entry must have scope, position, at, record', [header, '{"entry":{"position":1}}']],
    ['line 3: entry 1 does not follow entry 1', [header, one, one]],
    [
      'line 2: entry 2 does not follow entry 0',
      [header, JSON.stringify({ entry: { position: 2, ...entry(2) } })],
    ],
    ['line 2: checkpoint must have', [header, '{"checkpoint":{}}']],
    ['line 2: is neither', [header, '{"other":1}']],
    [
      'line 3: the export says {"entries":2,"checkpoints":0}, 1 entries',
      [header, one, '{"end":{"entries":2,"checkpoints":0}}'],
    ],
    ['line 2: the export ends here without its last line', [header, one]],
  ])('refuse %s, and keep nothing', async (problem, lines) => {
    const path = temporaryPath()
    const importing = importJournal(path, lines)
    await expect(importing).rejects.toBeInstanceOf(JournalImportError)
    await expect(importing).rejects.toThrow(`import into journal ${path}: ${problem}`)
    expect(readdirSync(dirname(path))).toEqual(['lanes.db'])
    expect(checkJournal(path)).toMatchObject({ ok: true, entries: 0 })
  })
})
