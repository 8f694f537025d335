/** The promises of every journal, in memory and on disk. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Journal, JournalFailure } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openJournal } from '../../src/journal/open.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { entry, fill, listen, readAll, temporaryPath } from './fixture.ts'

const kinds: ReadonlyArray<[name: string, open: () => Promise<Journal>]> = [
  ['memory', async () => openMemoryJournal()],
  ['sqlite', () => openSqliteJournal(temporaryPath())],
]

describe.each(kinds)('%s journal', (_, openKind) => {
  const open = async (): Promise<Journal> => {
    const journal = await openKind()
    onTestFinished(() => journal.close())
    return journal
  }

  it('gives positions 1, 2, 3 at once and tells durability later, in order, never inside append', async () => {
    const journal = await open()
    const heard = listen(journal)
    const positions = [1, 2, 3].map((n) => journal.append(entry(n)))
    expect(positions).toEqual([1, 2, 3])
    expect(heard.told).toEqual([])
    await heard.durable(3)
    expect(heard.told.toSorted((a, b) => a - b)).toEqual(heard.told)
  })

  it('reads back what was appended, in order, also what was appended just before', async () => {
    const journal = await open()
    for (let n = 1; n <= 2_500; n++) journal.append(entry(n, `scope ${n % 3}`))
    const entries = await readAll(journal)
    expect(entries).toEqual(
      Array.from({ length: 2_500 }, (_, i) => ({ position: i + 1, ...entry(i + 1, `scope ${(i + 1) % 3}`) })),
    )
  })

  it('reads one scope, after a position, until a time', async () => {
    const journal = await open()
    for (let n = 1; n <= 30; n++) journal.append(entry(n, n % 2 === 0 ? 'even' : 'odd'))
    const found = await readAll(journal, { scope: 'even', after: 10, untilAt: entry(16).at })
    expect(found.map(({ position }) => position)).toEqual([12, 14, 16])
  })

  it('reads what no checkpoint of its scope stands for', async () => {
    const journal = await open()
    await fill(journal, 2_400, ['quiet', 'busy', 'new'])
    await journal.checkpoint({ scope: 'quiet', position: 10, at: 10, snapshot: '{}' })
    await journal.checkpoint({ scope: 'busy', position: 2_390, at: 2_390, snapshot: '{}' })
    const all = await readAll(journal)
    const floors: { [scope: string]: number } = { quiet: 10, busy: 2_390 }
    const left = all.filter(({ scope, position }) => position > (floors[scope] ?? 0))
    expect(await readAll(journal, { uncovered: true })).toEqual(left)
    const some = { uncovered: true, scope: 'busy', after: 2_392, untilAt: entry(2_398).at }
    expect((await readAll(journal, some)).map(({ position }) => position)).toEqual([2_395, 2_398])
  })

  it('keeps any text as it is', async () => {
    const journal = await open()
    const records = [
      '',
      '"\\u0000"',
      '\u0001',
      'größe 🚦 \u2028',
      '\\u0000',
      '{"a":"\n"}',
      '🚦'.repeat(10_000),
    ]
    for (const record of records) journal.append({ scope: 'ключ/🚦', at: 0.5, record })
    expect((await readAll(journal)).map(({ record }) => record)).toEqual(records)
    expect((await readAll(journal))[0]).toEqual({ position: 1, scope: 'ключ/🚦', at: 0.5, record: '' })
  })

  it.each(['scope', 'record'])(
    'refuses a %s with a NUL character, which not every SQLite reads back',
    async (field) => {
      const journal = await open()
      expect(() => journal.append({ ...entry(1), [field]: 'a\0b' })).toThrow(
        `entry.${field} must hold no NUL character`,
      )
      expect(journal.append(entry(1))).toBe(1)
      expect(await readAll(journal)).toHaveLength(1)
    },
  )

  it('answers the newest checkpoint of each scope, of any size', async () => {
    const journal = await open()
    await fill(journal, 10, ['a', 'b'])
    const big = '🚦x'.repeat(500_000)
    await journal.checkpoint({ scope: 'b', position: 5, at: 5, snapshot: '{}' })
    await journal.checkpoint({ scope: 'a', position: 6, at: 6, snapshot: '{}' })
    await journal.checkpoint({ scope: 'a', position: 8, at: 8, snapshot: big })
    const found = await journal.checkpoints()
    expect(found.map(({ scope, position }) => [scope, position])).toEqual([
      ['a', 8],
      ['b', 5],
    ])
    expect(found[0]!.snapshot === big).toBe(true)
    expect((await journal.checkpoints({ untilAt: 5 })).map(({ scope }) => scope)).toEqual(['b'])
  })

  it('stores a checkpoint only after the entries it stands for', async () => {
    const journal = await open()
    const heard = listen(journal)
    const position = journal.append(entry(1))
    await journal.checkpoint({ scope: entry(1).scope, position, at: 1, snapshot: '{}' })
    expect(heard.told).toEqual([position])
    await expect(journal.checkpoint({ scope: 's', position: 2, at: 1, snapshot: '{}' })).rejects.toThrow(
      'checkpoint at 2, but the last entry is 1',
    )
  })

  it('refuses a time that is no number and takes nothing', async () => {
    const journal = await open()
    expect(() => journal.append({ ...entry(1), at: Number.NaN })).toThrow(
      'entry.at must be epoch ms, got NaN',
    )
    expect(journal.append(entry(1))).toBe(1)
  })

  it('makes everything durable on close, then takes nothing more', async () => {
    const journal = await open()
    const heard = listen(journal)
    for (let n = 1; n <= 3_000; n++) journal.append(entry(n))
    await Promise.all([journal.close(), journal.close()])
    expect(heard.told.at(-1)).toBe(3_000)
    expect(heard.failures).toEqual([])
    expect(() => journal.append(entry(1))).toThrow(JournalFailure)
    expect(() => journal.append(entry(1))).toThrow('the journal is closed')
    await expect(journal.checkpoint({ scope: 's', position: 1, at: 1, snapshot: '{}' })).rejects.toThrow(
      'the journal is closed',
    )
  })
})

describe('sqlite journal, opened again', () => {
  it('goes on where it ended', async () => {
    const path = temporaryPath()
    const first = await openSqliteJournal(path)
    await fill(first, 5)
    await first.checkpoint({ scope: entry(1).scope, position: 3, at: 3, snapshot: '{"v":1}' })
    await first.close()
    const second = await openJournal(path)
    expect(second.append(entry(6))).toBe(6)
    expect((await readAll(second)).map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6])
    expect(await second.checkpoints()).toEqual([
      { scope: entry(1).scope, position: 3, at: 3, snapshot: '{"v":1}' },
    ])
    await second.close()
  })

  it('takes the same checkpoint twice', async () => {
    const journal = await openSqliteJournal(temporaryPath())
    await fill(journal, 1)
    const checkpoint = { scope: entry(1).scope, position: 1, at: 1, snapshot: 'x'.repeat(600_000) }
    await journal.checkpoint(checkpoint)
    await journal.checkpoint(checkpoint)
    expect(await journal.checkpoints()).toEqual([checkpoint])
    await journal.close()
  })
})

describe('memory journal', () => {
  it('lets a simulator decide when a batch is durable, and what survives until then', async () => {
    const syncs: Array<() => void> = []
    const journal = openMemoryJournal({ schedule: (sync) => syncs.push(sync) })
    const heard = listen(journal)
    journal.append(entry(1))
    journal.append(entry(2))
    expect(syncs).toHaveLength(1)
    expect(journal.survivors().entries).toEqual([])
    syncs[0]!()
    expect(heard.told).toEqual([2])
    journal.append(entry(3))
    const again = openMemoryJournal({ history: journal.survivors() })
    expect((await readAll(again)).map(({ position }) => position)).toEqual([1, 2])
    expect(again.append(entry(3))).toBe(3)
  })

  it('fails as a disk would: once, and nothing is durable after', () => {
    const syncs: Array<() => void> = []
    const journal = openMemoryJournal({ schedule: (sync) => syncs.push(sync) })
    const heard = listen(journal)
    journal.append(entry(1))
    journal.fail('commit', new Error('EIO'))
    journal.fail('commit', new Error('EIO'))
    syncs[0]!()
    expect(heard.told).toEqual([])
    expect(heard.failures.map(({ message }) => message)).toEqual(['journal :memory:: commit failed: EIO'])
    expect(() => journal.append(entry(2))).toThrow('EIO')
  })

  it('drops only what a checkpoint stands for when it has grown', async () => {
    const journal = openMemoryJournal({ keepEntries: 10 })
    await fill(journal, 40, ['a', 'b'])
    await journal.checkpoint({ scope: 'a', position: 40, at: 0, snapshot: '{}' })
    const left = await readAll(journal)
    expect(left.filter(({ scope }) => scope === 'b')).toHaveLength(20)
    expect(left.filter(({ scope }) => scope === 'a').map(({ position }) => position)).toEqual([
      32, 34, 36, 38, 40,
    ])
  })
})
