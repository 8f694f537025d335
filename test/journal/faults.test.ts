/** Disks that fail, fill up, stall, or lose writes that were not synced; processes that are killed. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkJournal } from '../../src/journal/check.ts'
import type { Fault, FaultPoint } from '../../src/journal/faults.ts'
import { JournalFailure } from '../../src/journal/journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { type Said, startWriter } from './child.ts'
import { entry, listen, readAll, temporaryPath } from './fixture.ts'

describe('a disk that fails', () => {
  it.each<[name: string, fault: Fault, message: string]>([
    ['EIO on write', { commit: 2, at: 'write', error: 'EIO' }, 'commit failed: EIO: i/o error'],
    ['EIO on sync', { commit: 2, at: 'sync', error: 'EIO' }, 'commit failed: EIO: i/o error'],
    [
      'disk full',
      { commit: 2, at: 'write', error: 'ENOSPC' },
      'commit failed: ENOSPC: no space left on device',
    ],
  ])('%s: told once, nothing is taken or durable after, all before is there', async (_, fault, message) => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { faults: [fault] })
    const heard = listen(journal)
    await heard.durable(journal.append(entry(1)))
    for (let n = 2; n <= 2_000; n++) journal.append(entry(n))
    const checkpointed = journal.checkpoint({ scope: 's', position: 2_000, at: 1, snapshot: '{}' })
    await expect(checkpointed).rejects.toBeInstanceOf(JournalFailure)
    const failure = await heard.failed
    expect(failure.message).toBe(`journal ${path}: ${message}`)
    expect(failure.cause).toMatchObject({ code: 'error' in fault ? fault.error : '' })
    expect(() => journal.append(entry(3))).toThrow(failure)
    expect(await readAll(journal)).not.toHaveLength(0)
    await journal.close()
    expect(heard.failures).toHaveLength(1)
    expect(heard.told).toEqual([1])
    const again = await openSqliteJournal(path)
    expect((await readAll(again)).slice(0, 1)).toEqual([{ position: 1, ...entry(1) }])
    await again.close()
    expect(checkJournal(path).problems).toEqual([])
  })

  it('tells the closing caller when the last batch could not be kept', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { faults: [{ commit: 1, at: 'write', error: 'EIO' }] })
    const heard = listen(journal)
    journal.append(entry(1))
    await expect(journal.close()).rejects.toThrow('EIO')
    expect(heard.failures).toHaveLength(1)
    expect(heard.told).toEqual([])
    await (await openSqliteJournal(path)).close()
  })

  it.runIf(process.platform === 'linux')('stops at a write error of the system itself', async () => {
    const path = temporaryPath()
    const script = fileURLToPath(new URL('./writer-process.ts', import.meta.url))
    // Beyond the size limit (200 KiB) a write fails with EFBIG, since the signal is ignored.
    const limited = `trap '' XFSZ; ulimit -f 200; exec "$0" "$@"`
    const { stdout } = spawnSync('bash', ['-c', limited, process.execPath, script, path, 'flood'], {
      encoding: 'utf8',
      timeout: 20_000,
    })
    const said = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Said)
    const told = Math.max(...said.map(({ durable = 0 }) => durable))
    expect(said.filter(({ failed }) => failed !== undefined)).toEqual([
      { failed: expect.stringMatching(/failed: (disk I\/O error|database or disk is full)/) },
    ])
    expect(said.findLastIndex(({ durable }) => durable !== undefined)).toBeLessThan(
      said.findIndex(({ failed }) => failed !== undefined),
    )
    expect(await survivors(path)).toBeGreaterThanOrEqual(told)
  })

  it('does not stop the event loop while a sync takes 500 ms', async () => {
    const journal = await openSqliteJournal(temporaryPath(), {
      faults: [{ commit: 2, at: 'sync', delayMs: 500 }],
    })
    const heard = listen(journal)
    await heard.durable(journal.append(entry(1)))
    let turns = 0
    let isCounting = true
    const count = () => {
      turns++
      if (isCounting) setImmediate(count)
    }
    count()
    await heard.durable(journal.append(entry(2)))
    isCounting = false
    expect(turns).toBeGreaterThan(1_000)
    await journal.close()
  })
})

/** Every position in a journal that a process left behind, checked to be 1, 2, 3, ... */
const survivors = async (path: string): Promise<number> => {
  const journal = await openSqliteJournal(path)
  const entries = await readAll(journal)
  expect(entries.map(({ position }) => position)).toEqual(entries.map((_, index) => index + 1))
  await journal.close()
  return entries.length
}

describe('a process that is killed', () => {
  const points: ReadonlyArray<FaultPoint> = ['write', 'sync', 'told']
  it.each(points.flatMap((at) => [1, 2, 5].map((commit) => [at, commit] as const)))(
    'at %s of commit %i keeps all that it was told',
    async (at, commit) => {
      const path = temporaryPath()
      const child = startWriter(path, 'flood', { faults: [{ commit, at, kill: true }] })
      expect(await child.ended).toEqual({ code: null, signal: 'SIGKILL' })
      const told = Math.max(0, ...child.said.map(({ durable = 0 }) => durable))
      const kept = await survivors(path)
      expect(kept).toBeGreaterThanOrEqual(told)
      if (at === 'told') expect(kept).toBeGreaterThan(told)
    },
  )

  it.each([1, 2, 3, 5, 8, 13, 34, 89])('after %i commits, whatever it was doing, too', async (lines) => {
    const path = temporaryPath()
    const child = startWriter(path, 'flood', { keepEntriesMs: 0 }, (_, process) => {
      if (child.said.length > lines) process.kill('SIGKILL')
    })
    await child.ended
    const told = Math.max(0, ...child.said.map(({ durable = 0 }) => durable))
    expect(told).toBeGreaterThan(0)
    expect(await survivors(path)).toBeGreaterThanOrEqual(told)
  })
})

describe('a power loss', () => {
  /** After a power loss no process lives, but the copy says that this one holds it. */
  const powerUp = (path: string) => {
    const db = new DatabaseSync(path)
    db.exec('delete from lease')
    db.close()
  }

  /** A journal with `synced` entries known to be on disk, then `more`; answers both sizes of the WAL. */
  async function written(path: string, synced: number, more: number) {
    const journal = await openSqliteJournal(path)
    const heard = listen(journal)
    let last = 0
    for (let n = 1; n <= synced; n++) last = journal.append(entry(n))
    await heard.durable(last)
    const syncedBytes = statSync(`${path}-wal`).size
    for (let n = 1; n <= more; n++) last = journal.append(entry(synced + n))
    await heard.durable(last)
    const allBytes = statSync(`${path}-wal`).size
    const copy = `${path}.copy`
    copyFileSync(path, copy)
    copyFileSync(`${path}-wal`, `${copy}-wal`)
    await journal.close()
    return { copy, syncedBytes, allBytes }
  }

  it('drops what was not synced, at any byte, and nothing that was', async () => {
    const path = temporaryPath()
    const { copy, syncedBytes, allBytes } = await written(path, 500, 1_200)
    expect(allBytes).toBeGreaterThan(syncedBytes)
    const cuts = [syncedBytes, syncedBytes + 1, syncedBytes + 24, allBytes - 4_096, allBytes - 1, allBytes]
    for (const [index, bytes] of cuts.entries()) {
      const one = `${path}.${index}`
      copyFileSync(copy, one)
      copyFileSync(`${copy}-wal`, `${one}-wal`)
      truncateSync(`${one}-wal`, bytes)
      powerUp(one)
      const kept = await survivors(one)
      expect(kept).toBeGreaterThanOrEqual(500)
      if (bytes === allBytes) expect(kept).toBe(1_700)
    }
  })

  it('opens with all rows before a torn last write', async () => {
    const path = temporaryPath()
    const { copy, syncedBytes, allBytes } = await written(path, 500, 1_200)
    for (const at of [syncedBytes + 30, Math.floor((syncedBytes + allBytes) / 2), allBytes - 100]) {
      const one = `${path}.${at}`
      copyFileSync(copy, one)
      const wal = readFileSync(`${copy}-wal`)
      wal.fill(0xa5, at, at + 64)
      writeFileSync(`${one}-wal`, wal)
      powerUp(one)
      const kept = await survivors(one)
      expect(kept).toBeGreaterThanOrEqual(500)
      expect(kept).toBeLessThanOrEqual(1_700)
      expect(checkJournal(one).problems).toEqual([])
    }
  })

  it('leaves no WAL behind after an orderly close', async () => {
    const path = temporaryPath()
    await written(path, 5, 5)
    expect(existsSync(`${path}-wal`)).toBe(false)
  })
})
