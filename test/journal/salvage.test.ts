/** Random damage: what is repaired holds every good row, always opens, and sends nothing a second time. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import { mendScope } from '../../src/host/mend.ts'
import { ManualClock, openHost } from '../../src/index.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { pageRows } from '../../src/journal/pages.ts'
import { repairJournal } from '../../src/journal/repair.ts'
import { type Draw, drawFrom } from '../../src/simulation/soak/draw.ts'
import { temporaryPath } from './fixture.ts'

const startMs = 1_700_000_000_000
const pageBytes = 4_096

interface Story {
  readonly bytes: Buffer
  /** Calls that were dispatched, by scope. */
  readonly sent: ReadonlyArray<readonly [scope: string, id: string]>
  readonly entries: ReadonlyMap<number, ReadonlyArray<unknown>>
}
let story: Story

/** What a host left that died with calls under way and others waiting, its WAL folded into the file. */
const madeStory = async (folder: string): Promise<Story> => {
  const path = join(folder, 'lanes.db')
  const clock = new ManualClock(startMs)
  const host = await openHost({ journal: path, clock })
  const sent: Array<readonly [string, string]> = []
  for (let n = 0; n < 400; n += 1) {
    const scope = `pool-${n % 4}`
    const id = `call-${n}`
    await host
      .scope(scope, { capacity: 3 })
      .run({ id, lane: 'auxiliary', inputTokens: n }, async () => sent.push([scope, id]))
    clock.advance(7)
    if (n === 200) await kernelOf(host).checkpoint(kernelOf(host).runners.get('pool-1')!)
  }
  for (let n = 0; n < 20; n += 1) {
    const scope = `pool-${n % 4}`
    const id = `open-${n}`
    const send = () => {
      sent.push([scope, id])
      return new Promise<never>(() => {})
    }
    void host
      .scope(scope)
      .run({ id, lane: 'auxiliary' }, send)
      .catch(() => {})
  }
  // Of three places in each pool one is kept for primaries.
  while (sent.length < 408) await new Promise((resolve) => setImmediate(resolve))
  const copy = `${path}.copy`
  const db = new DatabaseSync(path)
  db.exec(`vacuum into '${copy}'`)
  db.close()
  await host.close()
  const left = new DatabaseSync(copy)
  left.exec('delete from lease')
  const rows = left
    .prepare('select position, at, scope, record, checksum from entries')
    .all() as unknown as Array<{
    position: number
    at: number
    scope: string
    record: string
    checksum: number
  }>
  left.close()
  return {
    bytes: readFileSync(copy),
    sent,
    entries: new Map(
      rows.map(({ position, at, scope, record, checksum }) => [position, [at, scope, record, checksum]]),
    ),
  }
}

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-salvage-'))
  story = await madeStory(folder)
  rmSync(folder, { recursive: true })
})

const damages: Readonly<Record<string, (bytes: Buffer, draw: Draw) => Buffer>> = {
  'a zeroed page': (bytes, draw) => {
    const page = draw.whole(1, bytes.length / pageBytes - 1)
    return bytes.fill(0, page * pageBytes, (page + 1) * pageBytes)
  },
  'three zeroed pages': (bytes, draw) => {
    for (let n = 0; n < 3; n += 1) damages['a zeroed page']!(bytes, draw)
    return bytes
  },
  'rotten bytes': (bytes, draw) => {
    for (let n = 0; n < 30; n += 1) bytes[draw.whole(pageBytes, bytes.length - 1)] = draw.whole(0, 255)
    return bytes
  },
  'a torn page': (bytes, draw) => {
    const page = draw.whole(1, bytes.length / pageBytes - 1)
    return bytes.fill(0xff, page * pageBytes + 512 * draw.whole(0, 7), (page + 1) * pageBytes)
  },
  'a page that was written to another place': (bytes, draw) => {
    const [from, to] = [
      draw.whole(1, bytes.length / pageBytes - 1),
      draw.whole(1, bytes.length / pageBytes - 1),
    ]
    bytes.copy(bytes, to * pageBytes, from * pageBytes, (from + 1) * pageBytes)
    return bytes
  },
  'a cut file': (bytes, draw) => bytes.subarray(0, Math.floor((bytes.length * draw.whole(50, 99)) / 100)),
  'a damaged first page': (bytes, draw) => {
    for (let n = 0; n < 40; n += 1) bytes[draw.whole(0, pageBytes - 1)] = draw.whole(0, 255)
    return bytes
  },
}

const cases = Object.keys(damages).flatMap((name) => [1, 2, 3, 4].map((seed) => [name, seed] as const))

describe('a journal with', () => {
  it.each(cases)(
    '%s (%i): every good row is kept, a host opens, nothing is sent twice',
    async (name, seed) => {
      const path = temporaryPath()
      const damaged = damages[name]!(Buffer.from(story.bytes), drawFrom(seed, name))
      writeFileSync(path, damaged)
      const good = new Set<number>()
      for (const { rowid, cells } of pageRows(path)) {
        const original = rowid === null || cells[0] !== null ? undefined : story.entries.get(rowid)
        if (original?.every((value, index) => value === cells[index + 1])) good.add(rowid!)
      }
      const done = repairJournal(path, mendScope)
      if (!done.repaired) return expect(damaged.equals(story.bytes) || checkJournal(path).ok).toBe(true)
      expect(done.kept.entries).toBe(good.size)
      expect(existsSync(done.copy!)).toBe(true)
      expect(checkJournal(path).problems).toEqual([])
      const host = await openHost({ journal: path, clock: new ManualClock(startMs + 10_000) })
      expect([...kernelOf(host).failures]).toEqual([])
      // What stands nowhere in the file any more nobody can know of.
      const known = readFileSync(done.copy!, 'latin1')
      const again: string[] = []
      for (const [scope, id] of story.sent.filter(([, one]) => known.includes(`"${one}"`)).slice(-60)) {
        await host
          .scope(scope)
          .run({ id, lane: 'auxiliary' }, async () => again.push(id))
          .catch(() => {})
      }
      expect(again).toEqual([])
      await host.close()
      await (await openHost({ journal: path, clock: new ManualClock(startMs + 20_000) })).close()
    },
  )
})

describe('reading pages', () => {
  it('finds what SQLite finds in a whole file', () => {
    const path = temporaryPath()
    writeFileSync(path, story.bytes)
    const found = new Map<number, unknown>()
    for (const { rowid, cells } of pageRows(path))
      if (rowid !== null && cells.length === 5 && cells[0] === null) found.set(rowid, cells.slice(1))
    expect([...found].sort(([one], [other]) => one - other)).toEqual([...story.entries])
  })

  it('reads what is still in the WAL, and long records', () => {
    const path = temporaryPath()
    const db = new DatabaseSync(path)
    db.exec(
      'pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t (id integer primary key, text text)',
    )
    const texts = ['', 'short', 'x'.repeat(5_000), 'ß'.repeat(60_000)]
    for (const text of texts) db.prepare('insert into t (text) values (?)').run(text)
    copyFileSync(path, `${path}.copy`)
    copyFileSync(`${path}-wal`, `${path}.copy-wal`)
    db.close()
    const found = [...pageRows(`${path}.copy`)].filter(({ cells }) => cells.length === 2)
    expect(found.map(({ cells }) => cells[1])).toEqual(texts)
  })
})
