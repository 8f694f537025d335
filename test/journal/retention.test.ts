/** Retention drops what checkpoints stand for, and only that, without holding up commits. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { checkJournal } from '../../src/journal/check.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { entry, fill, listen, readAll, temporaryPath } from './fixture.ts'

const checkpoint = (scope: string, position: number, at = position) => ({
  scope,
  position,
  at,
  snapshot: '{}',
})

describe('retention', () => {
  it('drops entries up to the newest checkpoint of their scope, and no others', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await fill(journal, 5_000, ['a', 'b'])
    expect(await journal.compact()).toEqual({ dropped: 0 })
    await journal.checkpoint(checkpoint('a', 3_000))
    expect(await journal.compact()).toEqual({ dropped: 1_500 })
    const left = await readAll(journal)
    expect(left.filter(({ scope }) => scope === 'b')).toHaveLength(2_500)
    expect(left.filter(({ scope }) => scope === 'a').map(({ position }) => position)[0]).toBe(3_002)
    await journal.checkpoint(checkpoint('b', 5_000))
    await journal.checkpoint(checkpoint('a', 5_000))
    expect(await journal.compact()).toEqual({ dropped: 3_500 })
    expect(await readAll(journal)).toEqual([])
    expect(journal.append(entry(1))).toBe(5_001)
    await journal.close()
    expect(checkJournal(path)).toMatchObject({ ok: true, entries: 1 })
  })

  it('never gives a position twice, even when all entries were dropped', async () => {
    const path = temporaryPath()
    const first = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await fill(first, 10)
    await first.checkpoint(checkpoint(entry(1).scope, 10))
    await first.compact()
    await first.close()
    const second = await openSqliteJournal(path)
    expect(second.append(entry(1))).toBe(11)
    await second.close()
  })

  it('keeps what is younger than keepEntriesMs, with a checkpoint to start from', async () => {
    const journal = await openSqliteJournal(temporaryPath(), { keepEntriesMs: 3_600_000 })
    await fill(journal, 100, ['a'])
    const now = Date.now()
    await journal.checkpoint(checkpoint('a', 30, now - 3 * 3_600_000))
    await journal.checkpoint(checkpoint('a', 60, now - 2 * 3_600_000))
    await journal.checkpoint(checkpoint('a', 90, now))
    expect(await journal.compact()).toEqual({ dropped: 60 })
    expect((await readAll(journal))[0]!.position).toBe(61)
    expect((await journal.checkpoints({ untilAt: now - 3_600_000 })).map(({ position }) => position)).toEqual(
      [60],
    )
    expect((await journal.checkpoints()).map(({ position }) => position)).toEqual([90])
    expect(await journal.checkpoints({ untilAt: now - 3 * 3_600_000 })).toEqual([])
    await journal.close()
  })

  it('thins out checkpoints that come thick, and keeps the newest', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepEntriesMs: 16_000 })
    await fill(journal, 100, ['a'])
    for (let n = 1; n <= 100; n++) await journal.checkpoint(checkpoint('a', n, n * 100))
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare('select position from checkpoints order by position').all() as Array<{
      position: number
    }>
    const parts = db.prepare('select count(*) as n from checkpoint_parts').get()
    db.close()
    expect(rows.map(({ position }) => position)).toEqual([1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 100])
    expect(parts).toEqual({ n: rows.length })
    await journal.close()
  })

  it('commits in between: entries appended during a run are durable before it ends', async () => {
    const journal = await openSqliteJournal(temporaryPath(), { keepEntriesMs: 0 })
    await fill(journal, 50_000, ['a'])
    await journal.checkpoint(checkpoint('a', 50_000))
    const heard = listen(journal)
    const order: Array<string> = []
    const compacting = journal.compact().then(() => order.push('compacted'))
    const position = journal.append(entry(1, 'a'))
    await heard.durable(position)
    order.push('durable')
    await compacting
    expect(order).toEqual(['durable', 'compacted'])
    await journal.close()
  })

  it('runs by itself', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0, compactEveryMs: 20 })
    await fill(journal, 10, ['a'])
    await journal.checkpoint(checkpoint('a', 10))
    await expect.poll(() => readAll(journal), { interval: 10, timeout: 10_000 }).toEqual([])
    await journal.close()
  })

  it('does not take a row that was missing before for one that it dropped', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepEntriesMs: 0 })
    await fill(journal, 100, ['a', 'b'])
    const db = new DatabaseSync(path)
    db.exec('delete from entries where position = 51')
    db.close()
    await journal.checkpoint(checkpoint('a', 100))
    await expect(journal.compact()).rejects.toMatchObject({ row: 'entries 1..100', problem: '1 are missing' })
    await listen(journal).durable(journal.append(entry(1)))
    await journal.close()
    expect(checkJournal(path).problems).toEqual([{ row: 'entries 51', problem: 'it is missing' }])
  })
})
