/** A long burst is committed while the caller still writes it. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { entry, listen, temporaryPath } from './fixture.ts'

const patienceMs = 10_000

describe('a burst of entries in one turn of the event loop', () => {
  it('is on the disk in part before the turn ends, and told durable only after it', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    onTestFinished(() => journal.close())
    const reader = new DatabaseSync(path, { readOnly: true })
    onTestFinished(() => reader.close())
    const count = reader.prepare('select count(*) as n from entries')
    const written = (): number => (count.get() as { n: number }).n
    const heard = listen(journal)
    for (let n = 1; n <= 1_000; n += 1) journal.append(entry(n))
    // This turn does not end: only another thread can have written.
    for (const endsMs = performance.now() + patienceMs; written() === 0; ) {
      if (performance.now() > endsMs) throw new Error(`nothing was written within ${patienceMs} ms`)
    }
    expect(written()).toBeLessThan(1_000)
    expect(heard.told).toEqual([])
    await heard.durable(1_000)
    expect(written()).toBe(1_000)
  })
})
