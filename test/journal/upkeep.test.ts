/** Looking after a journal: copies, versions, scopes, size, and who may have it. */

import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, linkSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { historyProblems } from '../../src/host/check-history.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'
import { backupJournal } from '../../src/journal/backup.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { JournalLocked, JournalUnavailable } from '../../src/journal/journal.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { entryChecksum } from '../../src/journal/rows.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import {
  compactJournal,
  dropScope,
  listScopes,
  migrateJournal,
  plannedMigration,
} from '../../src/journal/upkeep.ts'
import { entry, fill, readAll, temporaryPath } from './fixture.ts'

const readBoot = (): string =>
  process.platform === 'linux' ? readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim() : ''

const sql = (path: string, text: string): void => {
  const db = new DatabaseSync(path)
  db.exec(text)
  db.close()
}

/** A journal of two scopes, closed by its host. */
const closed = async (): Promise<string> => {
  const path = temporaryPath()
  const host = await openHost({ journal: path })
  for (const scope of ['a', 'b'])
    for (let n = 0; n < 5; n += 1)
      await host.scope(scope).run({ id: `call-${n}`, lane: 'auxiliary' }, async () => n)
  await host.close()
  return path
}

const olderCopy = (): string => {
  const path = temporaryPath()
  copyFileSync(join(import.meta.dirname, '../replay/older/0.1.0-closed.db'), path)
  return path
}

describe('a backup', () => {
  it('of a journal in use is whole, belongs to nobody, and overwrites nothing', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    await fill(journal, 500)
    const out = `${path}.copy`
    expect(backupJournal(path, out)).toEqual({ entries: 500 })
    expect(checkJournal(out)).toMatchObject({ ok: true, entries: 500, notes: [] })
    expect(() => backupJournal(path, out)).toThrow('exists already')
    const copy = await openSqliteJournal(out)
    expect(await readAll(copy)).toHaveLength(500)
    await copy.close()
    await journal.close()
  })

  it('by copying the file alone is noticed', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    await fill(journal, 50)
    copyFileSync(path, `${path}.copy`)
    expect(checkJournal(`${path}.copy`)).toMatchObject({
      entries: 0,
      notes: [expect.stringContaining('its newest entries are missing')],
    })
    await journal.close()
    expect(checkJournal(path).notes).toEqual([])
  })
})

describe('versions', () => {
  it('a dry run says what would be done and changes nothing; the run does it once', async () => {
    const path = olderCopy()
    const before = readFileSync(path)
    const planned = plannedMigration(path)
    expect(planned).toMatchObject({ from: 1, to: 2 })
    expect(planned.steps).toHaveLength(1)
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(await migrateJournal(path)).toEqual(planned)
    expect(plannedMigration(path)).toEqual({ from: 2, to: 2, steps: [] })
    expect(checkJournal(path, historyProblems).problems).toEqual([])
  })
})

describe('scopes', () => {
  it('are listed, and dropped by hand', async () => {
    const path = await closed()
    expect(listScopes(path).map(({ scope, resting }) => [scope, resting])).toEqual([
      ['a', true],
      ['b', true],
    ])
    expect(await dropScope(path, 'a')).toBe(true)
    expect(await dropScope(path, 'a')).toBe(false)
    expect(listScopes(path).map(({ scope }) => scope)).toEqual(['b'])
    expect(checkJournal(path, historyProblems).problems).toEqual([])
    const host = await openHost({ journal: path })
    await expect(host.scope('a').run({ id: 'call-0' }, async () => 'sent')).resolves.toBe('sent')
    await expect(host.scope('b').run({ id: 'call-0' }, async () => 'sent')).rejects.toMatchObject({
      _tag: 'AlreadySettled',
    })
    await host.close()
  })
})

describe('size', () => {
  it('is told, and what checkpoints stand for goes by age', async () => {
    const path = await closed()
    const host = await openHost({ journal: path, retention: { keepMs: 0 } })
    const usage = await kernelOf(host).journal.usage()
    expect(usage).toMatchObject({ walPinned: false, oldestAt: expect.any(Number) })
    expect(usage.entries).toBeGreaterThan(10)
    expect(usage.bytes).toBeGreaterThan(4_096)
    await host.close()
    expect((await compactJournal(path, 0)).dropped).toBeGreaterThan(10)
    expect(checkJournal(path, historyProblems).problems).toEqual([])
  })

  it('is held by dropping the oldest sooner', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path, { keepBytes: 1024 * 1024, compactEveryMs: 0 })
    const long = 'x'.repeat(2_000)
    const now = Date.now()
    for (let n = 1; n <= 2_000; n += 1) {
      const position = journal.append({ scope: 's', at: now - 4_000_000 + n * 1_000, record: long })
      if (n % 100 === 0)
        await journal.checkpoint({ scope: 's', position, at: now - 4_000_000 + n * 1_000, snapshot: '{}' })
    }
    for (let pass = 0; pass < 8; pass += 1) await journal.compact()
    const { entries } = await journal.usage()
    expect(entries).toBeLessThan(1_000)
    await journal.close()
    await expect(openSqliteJournal(path, { keepBytes: 5 })).rejects.toThrow(
      'keepBytes must be at least 1048576',
    )
  })

  it('a reader that pins the WAL is told of, and the WAL is cut down when it has gone', async () => {
    const path = temporaryPath()
    const journal = await openSqliteJournal(path)
    await fill(journal, 10)
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from entries').get()
    const record = 'x'.repeat(10_000)
    for (let n = 0; n < 2_500; n += 1) journal.append({ ...entry(n), record })
    await journal.checkpoint({ scope: 's', position: 1, at: 1, snapshot: '{}' })
    await expect.poll(async () => (await journal.usage()).walPinned).toBe(true)
    expect((await journal.usage()).walBytes).toBeGreaterThan(17 * 1024 * 1024)
    reader.close()
    for (let n = 0; n < 2_500; n += 1) journal.append({ ...entry(n), record })
    await expect.poll(async () => (await journal.usage()).walPinned, { timeout: 5_000 }).toBe(false)
    await fill(journal, 10)
    await expect.poll(async () => (await journal.usage()).walBytes).toBeLessThan(17 * 1024 * 1024)
    await journal.close()
  })
})

describe('who has it', () => {
  const holder = (path: string, changes: string): void => {
    sql(
      path,
      `delete from lease; insert into lease values (1, 1, '${spawnSync('hostname').stdout.toString().trim()}', 'then', 'token', ${Date.now() + 60_000}, 'boot', 'pid:[1]'); ${changes}`,
    )
  }

  it.runIf(process.platform === 'linux').each([
    ['of another pid namespace', `update lease set boot = '${readBoot()}'`],
    ['of another start of the machine', "update lease set namespace = ''"],
  ])('a process 1 %s is not taken for dead', async (_, changes) => {
    const path = await closed()
    holder(path, changes)
    await expect(openSqliteJournal(path)).rejects.toBeInstanceOf(JournalLocked)
  })

  it('a second name of the file is refused, and says so', async () => {
    const path = await closed()
    linkSync(path, `${path}.alias`)
    for (const name of [path, `${path}.alias`]) {
      await expect(openSqliteJournal(name)).rejects.toBeInstanceOf(JournalUnavailable)
      await expect(openSqliteJournal(name)).rejects.toThrow('has 2 names (hard links to inode')
    }
  })

  it('a host waits for it when it is told to, and says for whom', async () => {
    const path = temporaryPath()
    const first = await openHost({ journal: path })
    await expect(openHost({ journal: path })).rejects.toBeInstanceOf(JournalLocked)
    const waitedFor: number[] = []
    const second = openHost({
      journal: path,
      lockWaitMs: 20_000,
      onLocked: ({ holder: { pid } }) => void waitedFor.push(pid),
    })
    await expect.poll(() => waitedFor).toEqual([process.pid])
    await first.close()
    await (await second).close()
    expect(waitedFor).toHaveLength(1)
  })
})

describe('a check', () => {
  const rewriteEntry = (path: string, position: number, change: (record: string) => string): void => {
    const db = new DatabaseSync(path)
    const row = db.prepare('select at, scope, record from entries where position = ?').get(position) as {
      at: number
      scope: string
      record: string
    }
    const record = change(row.record)
    db.prepare('update entries set record = ?, checksum = ? where position = ?').run(
      record,
      entryChecksum(position, row.at, row.scope, record),
      position,
    )
    db.close()
  }

  /** As if this had been written: with its checksum. */
  const rewriteSnapshot = async (
    path: string,
    change: (snapshot: Record<string, unknown>) => void,
  ): Promise<void> => {
    const reader = await openSqliteReader(path)
    const [newest] = await reader.checkpoints({ scope: 'a' })
    reader.close()
    const snapshot = JSON.parse(newest!.snapshot)
    change(snapshot)
    sql(
      path,
      "delete from checkpoints where scope = 'a'; delete from checkpoint_parts where scope = 'a'; update covered set through = 0",
    )
    const journal = await openSqliteJournal(path)
    await journal.checkpoint({ ...newest!, snapshot: JSON.stringify(snapshot) })
    await journal.close()
  }

  it.each<[string, (snapshot: Record<string, unknown>) => void]>([
    ['without a version', (snapshot) => delete snapshot['version']],
    ['without its ring', (snapshot) => delete snapshot['ring']],
    ['with a broken ring', (snapshot) => void Object.assign(snapshot, { ring: ['nobody'] })],
    ['with text for its budget', (snapshot) => void Object.assign(snapshot, { principals: 7 })],
    ['without its endings', (snapshot) => delete snapshot['ended']],
    ['with text for its belief', (snapshot) => void Object.assign(snapshot, { belief: 'none' })],
    ['with another kind of turn list', (snapshot) => void Object.assign(snapshot, { turns: {} })],
  ])('says what a host would: a snapshot %s fails its scope alone, by name', async (_, change) => {
    const path = await closed()
    await rewriteSnapshot(path, change)
    const { ok, problems } = checkJournal(path, historyProblems)
    expect(ok).toBe(false)
    expect(problems[0]!.row).toMatch(/^checkpoints a \d+$/)
    expect(problems[0]!.problem).toContain('snapshot is unreadable')
    const host = await openHost({ journal: path })
    expect(String(kernelOf(host).failures.get('a'))).toContain('snapshot is unreadable')
    await expect(host.scope('b').run({ id: 'new' }, async () => 'sent')).resolves.toBe('sent')
    await host.close()
  })

  it.each<[string, (record: string) => string]>([
    ['an unknown kind of event', (record) => record.replace('call.submitted', 'call.invented')],
    ['an event without its time', (record) => record.replace(/"at":\d+\}/, '"on":1}')],
    ['a call without its lane', (record) => record.replace('"lane":"auxiliary",', '')],
  ])('names an entry with %s', async (_, change) => {
    const path = await closed()
    // The first entry is the policy, the second one the first submission.
    rewriteEntry(path, 2, change)
    expect(checkJournal(path, historyProblems).problems).toMatchObject([{ row: 'entries 2' }])
  })

  it.runIf(process.getuid?.() === 0)('reads where nobody may write', async () => {
    const path = await closed()
    chmodSync(path, 0o444)
    chmodSync(dirname(path), 0o555)
    const program = `import('${new URL('../../src/journal/check.ts', import.meta.url).href}').then(({ checkJournal }) => console.log(JSON.stringify(checkJournal(${JSON.stringify(path)}))))`
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '-e', program],
      {
        uid: 65_534,
        gid: 65_534,
        encoding: 'utf8',
      },
    )
    chmodSync(dirname(path), 0o755)
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toMatchObject({ ok: true })
  })
})
