import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../src/clock.ts'
import { until } from '../fan-out/fixture.ts'
import { bodyOf, madeFolder, openForTest, recordsIn, temporaryFolder } from './fixture.ts'

const ttlMs = 3_000
/** Epoch milliseconds at which these stories begin: files carry the machine's own time. */
const startMs = Math.floor(Date.now() / 1_000) * 1_000

describe('a held lease', () => {
  it('is one private record with a random name and exactly two fields', async () => {
    const folder = temporaryFolder()
    const leases = openForTest(folder, { clock: new ManualClock(startMs + 250) })
    await leases.hold().published
    const [name, ...others] = recordsIn(folder)
    expect(others).toEqual([])
    expect(name).toMatch(/^[0-9a-f]{32}\.json$/)
    expect(await readFile(join(folder, name!), 'utf8')).toBe(
      `{"version":1,"expires_at":${(startMs + 250 + ttlMs) / 1_000}}`,
    )
    expect((statSync(join(folder, name!)).mode & 0o777).toString(8)).toBe('600')
    expect((statSync(folder).mode & 0o777).toString(8)).toBe('700')
    expect(statSync(join(folder, name!)).size).toBeLessThanOrEqual(256)
  })

  it('is private whatever the umask, and readable by its own user', async () => {
    const folder = madeFolder()
    const before = process.umask(0o277)
    try {
      await openForTest(folder).hold().published
      expect((statSync(join(folder, recordsIn(folder)[0]!)).mode & 0o777).toString(8)).toBe('600')
    } finally {
      process.umask(before)
    }
  })

  it('is seen by others, not before they look again, and gone once released', async () => {
    const folder = temporaryFolder()
    const clock = new ManualClock(startMs)
    const [server, worker] = [openForTest(folder, { clock }), openForTest(folder, { clock })]
    expect(worker.active()).toBe(false)
    const lease = server.hold()
    expect(server.active()).toBe(true)
    await lease.published
    expect(worker.active()).toBe(false)
    clock.advance(250)
    expect(worker.active()).toBe(true)
    await lease.release()
    expect(server.active()).toBe(false)
    expect(recordsIn(folder)).toEqual([])
    clock.advance(250)
    expect(worker.active()).toBe(false)
  })

  it('is renewed by heartbeats', async () => {
    const folder = temporaryFolder()
    const clock = new ManualClock(startMs)
    const [server, worker] = [openForTest(folder, { clock }), openForTest(folder, { clock })]
    await server.hold().published
    const path = join(folder, recordsIn(folder)[0]!)
    for (let beat = 1; beat <= 10; beat++) {
      await until(() => clock.nextAt() !== null)
      clock.advance(1_000)
      await expect
        .poll(() => readFile(path, 'utf8'), { interval: 1 })
        .toBe(bodyOf(startMs + beat * 1_000 + ttlMs))
      expect(worker.active()).toBe(true)
    }
  })

  it('ends one TTL after its last heartbeat', async () => {
    const folder = temporaryFolder()
    await openForTest(folder, { clock: new ManualClock(startMs) }).hold().published
    const clock = new ManualClock(startMs)
    const worker = openForTest(folder, { clock })
    clock.advance(ttlMs - 1)
    expect(worker.active()).toBe(true)
    clock.advance(250)
    expect(worker.active()).toBe(false)
  })

  it('is counted: the last of several releases ends it, and a second release of one does nothing', async () => {
    const folder = temporaryFolder()
    const leases = openForTest(folder)
    const [one, other] = [leases.hold(), leases.hold()]
    await one.published
    expect(recordsIn(folder)).toHaveLength(1)
    await one.release()
    await one.release()
    expect(leases.active()).toBe(true)
    expect(recordsIn(folder)).toHaveLength(1)
    await other.release()
    expect(leases.active()).toBe(false)
    expect(recordsIn(folder)).toEqual([])
  })

  it('does not come back with an old heartbeat, however rapid the re-entry', async () => {
    const folder = temporaryFolder()
    const clock = new ManualClock(startMs)
    const leases = openForTest(folder, { clock })
    const endings: Array<Promise<void>> = []
    for (let round = 0; round < 50; round++) {
      const lease = leases.hold()
      if (round % 3 === 0) await lease.published
      if (round % 7 === 0) clock.advance(1_000)
      endings.push(lease.release())
    }
    await Promise.all(endings)
    expect(recordsIn(folder)).toEqual([])
    clock.advance(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(clock.nextAt()).toBe(null)
    expect({ files: recordsIn(folder), failures: leases.counters.failures }).toEqual({
      files: [],
      failures: 0,
    })
  })

  it('lasts for the whole of a stream, and ends when its reader leaves', async () => {
    const leases = openForTest(temporaryFolder())
    const stream = async function* () {
      yield* [1, 2, 3]
    }
    const held: Array<boolean> = []
    for await (const _ of leases.throughout(stream())) held.push(leases.active())
    expect([...held, leases.active()]).toEqual([true, true, true, false])
    for await (const _ of leases.throughout(stream())) break
    expect(leases.active()).toBe(false)
  })

  it('lasts while a function runs, and ends when it throws', async () => {
    const leases = openForTest(temporaryFolder())
    expect(await leases.during(async () => leases.active())).toBe(true)
    await expect(leases.during(() => Promise.reject(new Error('bad')))).rejects.toThrow('bad')
    expect(leases.active()).toBe(false)
  })

  it('takes a new record when it comes back after it had expired, so that no sweep can meet it', async () => {
    const folder = temporaryFolder()
    const clock = new ManualClock(startMs)
    const leases = openForTest(folder, { clock })
    await leases.hold().published
    const [before] = recordsIn(folder)
    await until(() => clock.nextAt() !== null)
    clock.jump(startMs + ttlMs)
    clock.step()
    await until(() => recordsIn(folder).length === 1 && recordsIn(folder)[0] !== before)
  })

  it('is tried again after a failure, which is counted and rejects `published`', async () => {
    const folder = madeFolder()
    const clock = new ManualClock(startMs)
    const leases = openForTest(folder, { clock })
    rmdirSync(folder)
    await expect(leases.hold().published).rejects.toThrow('ENOENT')
    expect(leases.counters.failures).toBe(1)
    mkdirSync(folder, { mode: 0o700 })
    clock.advance(1_000)
    await until(() => recordsIn(folder).length === 1)
  })
})

describe('a watch', () => {
  it('hears how it is, then each change once', async () => {
    const folder = temporaryFolder()
    const clock = new ManualClock(startMs)
    const [server, worker] = [openForTest(folder, { clock }), openForTest(folder, { clock })]
    const heard: Array<boolean> = []
    const stop = worker.watch((active) => heard.push(active))
    clock.advance(2_000)
    const lease = server.hold()
    await lease.published
    clock.advance(500)
    expect(heard).toEqual([false, true])
    await lease.release()
    clock.advance(500)
    expect(heard).toEqual([false, true, false])
    stop()
    await server.hold().published
    clock.advance(500)
    expect(heard).toEqual([false, true, false])
  })

  it('hears of its own process at once', async () => {
    const leases = openForTest(temporaryFolder(), { clock: new ManualClock(startMs) })
    const heard: Array<boolean> = []
    leases.watch((active) => heard.push(active))
    const lease = leases.hold()
    expect(heard).toEqual([false, true])
    const released = lease.release()
    expect(heard).toEqual([false, true, false])
    await released
  })

  it('leaves no timer behind', () => {
    const clock = new ManualClock(startMs)
    const leases = openForTest(temporaryFolder(), { clock })
    const stops = [leases.watch(() => {}), leases.watch(() => {})]
    clock.advance(1_000)
    for (const stop of stops) stop()
    expect(clock.nextAt()).toBe(null)
  })
})
