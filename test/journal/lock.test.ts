/** One writer at a time, across processes, and none locked out for ever. */

import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { mendScope } from '../../src/host/mend.ts'
import { JournalLocked } from '../../src/journal/journal.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { repairJournal } from '../../src/journal/repair.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { startWriter } from './child.ts'
import { entry, fill, listen, readAll, temporaryPath } from './fixture.ts'

/** Changes the lease row behind the journal's back. */
const changeLease = (
  path: string,
  change: { pid?: number; host?: string; started?: string; expires?: number },
) => {
  const db = new DatabaseSync(path)
  const { pid = null, host = null, started = null, expires = null } = change
  db.prepare(
    `update lease set pid = coalesce(?, pid), host = coalesce(?, host), started = coalesce(?, started),
     expires_at_ms = coalesce(?, expires_at_ms)`,
  ).run(pid, host, started, expires)
  db.close()
}

/** A journal whose writer went without a word. */
const abandoned = async (path: string): Promise<void> => {
  const child = startWriter(path, 'hold')
  await child.hears(({ durable }) => durable === 10)
  child.process.kill('SIGKILL')
  await child.ended
}

describe('the lease', () => {
  it('refuses a second process while the first lives, and names it', async () => {
    const path = temporaryPath()
    const holder = startWriter(path, 'hold')
    const { opened: pid } = await holder.hears(({ opened }) => opened !== undefined)
    const refused = await openSqliteJournal(path).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(JournalLocked)
    expect((refused as JournalLocked).holder).toMatchObject({ pid, host: hostname() })
    expect(String(refused)).toContain(`is in use by process ${pid} on ${hostname()}`)
    const second = startWriter(path, 'idle')
    expect((await second.hears(({ refused }) => refused !== undefined)).refused).toContain(`process ${pid}`)
    expect(() => repairJournal(path, mendScope)).toThrow(JournalLocked)
  })

  it('refuses a second journal in the same process', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    await expect(openSqliteJournal(path)).rejects.toThrow(`process ${process.pid}`)
    await journal.close()
    await (await openSqliteJournal(path)).close()
  })

  it('goes at once from a killed process to the next, long before it expires', async () => {
    const path = temporaryPath()
    await abandoned(path)
    const journal = await openSqliteJournal(path, { leaseMs: 3_600_000 })
    expect(await readAll(journal)).toHaveLength(10)
    expect(journal.append(entry(1))).toBe(11)
    await journal.close()
  })

  it.each<[name: string, change: Parameters<typeof changeLease>[1], isFree: boolean]>([
    ['another host holds it and its lease runs', { host: 'elsewhere', expires: Date.now() + 60_000 }, false],
    ['another host held it and its lease is over', { host: 'elsewhere', expires: Date.now() - 1 }, true],
    ['the pid lives on this host and its lease runs', { pid: process.ppid, started: '' }, false],
    [
      'the pid lives on this host and its lease is over',
      { pid: process.ppid, started: '', expires: 1 },
      true,
    ],
  ])('when %s', async (_, change, isFree) => {
    const path = temporaryPath()
    await abandoned(path)
    changeLease(path, change)
    const opening = openSqliteJournal(path)
    if (isFree) await (await opening).close()
    else await expect(opening).rejects.toBeInstanceOf(JournalLocked)
  })

  it.runIf(process.platform === 'linux')('is free when the pid now belongs to a later process', async () => {
    const path = temporaryPath()
    await abandoned(path)
    changeLease(path, { pid: process.ppid, started: '1' })
    await (await openSqliteJournal(path)).close()
  })

  it('is kept up by heartbeats for longer than it runs', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { leaseMs: 100 })
    const db = new DatabaseSync(path, { readOnly: true })
    const expiry = () => (db.prepare('select expires_at_ms as ms from lease').get() as { ms: number }).ms
    const first = expiry()
    await expect.poll(expiry, { interval: 10, timeout: 10_000 }).toBeGreaterThan(first + 200)
    db.close()
    await journal.close()
  })

  it('stops a holder that slept past its lease before it writes over the next one', async () => {
    const path = temporaryPath()
    const sleeper = await openSqliteJournal(path, { leaseMs: 3_600_000 })
    const heard = listen(sleeper)
    await fill(sleeper, 3)
    const sleeping = listen(sleeper)
    changeLease(path, { expires: 1 })
    const next = await openSqliteJournal(path)
    sleeper.append(entry(4))
    expect((await sleeping.failed).message).toContain(`the journal now belongs to process ${process.pid}`)
    expect(heard.failures).toEqual([])
    expect(await readAll(next)).toHaveLength(3)
    await sleeper.close()
    expect(next.append(entry(4))).toBe(4)
    await fill(next, 1)
    await next.close()
  })
})

describe('a reader', () => {
  it('reads while another process writes', async () => {
    const path = temporaryPath()
    const writer = startWriter(path, 'flood')
    const { durable = 0 } = await writer.hears(({ durable = 0 }) => durable > 500)
    const reader = await openSqliteReader(path)
    const before = await readAll(reader)
    expect(before.length).toBeGreaterThanOrEqual(durable)
    await writer.hears(({ durable: later = 0 }) => later > before.length + 500)
    expect((await readAll(reader)).length).toBeGreaterThan(before.length)
    expect(await reader.checkpoints()).toEqual([])
    reader.close()
  })
})

describe('the process', () => {
  it('stays alive until what it appended is durable, then ends though nobody closed the journal', async () => {
    const path = temporaryPath()
    const child = startWriter(path, 'leave', { faults: [{ commit: 1, at: 'sync', delayMs: 300 }] })
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.said.at(-1)).toEqual({ exit: 10 })
    expect(child.said).toContainEqual({ durable: 10 })
    const idle = startWriter(path, 'idle')
    expect(await idle.ended).toEqual({ code: 0, signal: null })
  })

  it('shows the file to its owner only', async () => {
    const path = temporaryPath()
    const child = startWriter(path, 'hold')
    await child.hears(({ durable }) => durable === 10)
    const modes = spawnSync('stat', ['-c', '%a', path, `${path}-wal`, `${path}-shm`], { encoding: 'utf8' })
    expect(modes.stdout).toBe('600\n600\n600\n')
  })
})
