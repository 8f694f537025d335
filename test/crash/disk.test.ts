/** Disks that fail, fill up and stall under a real host, damaged history, and clocks that jump. */

import { spawnSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import { mendScope } from '../../src/host/mend.ts'
import { LaneHost, type LaneScope, ManualClock, openHost, type Permit } from '../../src/index.ts'
import type { Fault } from '../../src/journal/faults.ts'
import { repairJournal } from '../../src/journal/repair.ts'
import { entryChecksum } from '../../src/journal/rows.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { Bench, settle } from '../host/bench.ts'
import { startWriter } from '../journal/child.ts'
import { temporaryPath } from '../journal/fixture.ts'

const key = { provider: 'anthropic', credential: 'k1', model: 'm' }

const openOn = async (faults: ReadonlyArray<Fault>, path = temporaryPath()): Promise<LaneHost> => {
  const host = await openHost({ journal: await openSqliteJournal(path, { faults }) })
  onTestFinished(() => host.close().catch(() => {}))
  return host
}

/** A call that runs until it is told to end. */
const underWay = async (scope: LaneScope, id: string) => {
  const begun = Promise.withResolvers<Permit>()
  const end = Promise.withResolvers<string>()
  const outcome = scope.run({ id, lane: 'auxiliary' }, (permit) => {
    begun.resolve(permit)
    return end.promise
  })
  return { permit: await begun.promise, end: () => end.resolve(`${id} answered`), outcome }
}

describe('a disk that fails', () => {
  // The first commit holds a call with its dispatch.
  it.each<[string, Fault, string]>([
    ['EIO on write', { commit: 2, at: 'write', error: 'EIO' }, 'EIO: i/o error'],
    ['EIO on sync', { commit: 2, at: 'sync', error: 'EIO' }, 'EIO: i/o error'],
    ['no space left', { commit: 2, at: 'write', error: 'ENOSPC' }, 'ENOSPC: no space left on device'],
  ])('(%s) stops its host with a named error, and nothing is dispatched after', async (_, fault, message) => {
    const host = await openOn([fault])
    const scope = host.scope(key)
    const running = await underWay(scope, 'running')
    const dispatched: string[] = []
    const refused = scope.run({ id: 'next', lane: 'auxiliary' }, async () => dispatched.push('next'))
    await expect(refused).rejects.toMatchObject({
      _tag: 'ScopeFailed',
      callId: 'next',
      message: expect.stringContaining(message),
    })
    await expect(scope.run({ id: 'later' }, async () => dispatched.push('later'))).rejects.toMatchObject({
      _tag: 'ScopeFailed',
    })
    const other = host.scope('another scope of the same journal')
    await expect(other.run({ id: 'o' }, async () => dispatched.push('o'))).rejects.toMatchObject({
      _tag: 'ScopeFailed',
    })
    expect(dispatched).toEqual([])
    expect(kernelOf(host).failure?.message).toContain(message)
    // Running calls are left alone, and their owners get the answers.
    expect(running.permit.signal.aborted).toBe(false)
    running.end()
    expect(await running.outcome).toBe('running answered')
  })

  it('harms no other host', async () => {
    const [failing, healthy] = await Promise.all([
      openOn([{ commit: 1, at: 'sync', error: 'EIO' }]),
      openOn([]),
    ])
    await expect(failing.scope(key).run({ id: 'a' }, async () => 1)).rejects.toMatchObject({
      _tag: 'ScopeFailed',
    })
    expect(await healthy.scope(key).run({ id: 'a' }, async () => 2)).toBe(2)
  })

  it('leaves a journal that the next host takes up: what was told stays, what was running is unknown', async () => {
    const path = temporaryPath()
    const host = await openOn([{ commit: 2, at: 'write', error: 'EIO' }], path)
    const scope = host.scope(key)
    const running = await underWay(scope, 'running')
    await expect(scope.run({ id: 'lost' }, async () => 1)).rejects.toMatchObject({ _tag: 'ScopeFailed' })
    running.end()
    await running.outcome
    await host.close().catch(() => {})
    const next = await openOn([], path)
    await expect(next.scope(key).run({ id: 'running' }, async () => 2)).rejects.toMatchObject({
      _tag: 'OutcomeUnknown',
    })
    expect(await next.scope(key).run({ id: 'lost' }, async () => 3)).toBe(3)
  })
})

describe('a disk that takes 500 ms for a sync', () => {
  it('stalls neither the event loop nor the scopes of other journals, and loses nothing', async () => {
    const [slow, quick] = await Promise.all([openOn([{ commit: 2, at: 'sync', delayMs: 500 }]), openOn([])])
    const scope = slow.scope(key)
    const first = await underWay(scope, 'first')
    let turns = 0
    let counting = true
    const count = () => {
      turns += 1
      if (counting) setImmediate(count)
    }
    count()
    const order: string[] = []
    const held = scope.run({ id: 'held', lane: 'auxiliary' }, async () => order.push('held'))
    const beside = slow.scope('beside').run({ id: 'beside' }, async () => order.push('beside'))
    for (let n = 0; n < 2; n += 1) await quick.scope(key).run({ id: `q${n}` }, async () => n)
    order.push('quick')
    await Promise.all([held, beside])
    counting = false
    first.end()
    await first.outcome
    expect(order[0]).toBe('quick')
    expect(order.slice(1).sort()).toEqual(['beside', 'held'])
    expect(turns).toBeGreaterThan(500)
  })
})

describe('history that cannot be read', () => {
  const used = async (): Promise<string> => {
    const path = temporaryPath()
    const host = await openHost({ journal: path })
    for (const id of ['a', 'b', 'c']) await host.scope(key).run({ id }, async () => id)
    // Killed, so that no checkpoint stands for the entries.
    await kernelOf(host).journal.close()
    return path
  }

  const alter = (path: string, statement: string): void => {
    const db = new DatabaseSync(path)
    db.exec(statement)
    db.close()
  }

  it.each([
    [
      'a changed row',
      "update entries set record = replace(record, 'submitted', 'settled') where position = 4",
      4,
    ],
    ['a missing row', 'delete from entries where position = 4', 4],
  ])(
    '(%s) keeps the host closed and names it; repaired, it opens with every other row',
    async (_, statement, row) => {
      const path = await used()
      alter(path, statement)
      await expect(openHost({ journal: path })).rejects.toMatchObject({
        _tag: 'JournalCorrupt',
        row: `entries ${row}`,
        message: expect.stringContaining("see 'rightofway journal check'"),
      })
      const { repaired, kept } = repairJournal(path, mendScope)
      expect([repaired, kept.entries]).toEqual([true, 6])
      await using host = await openHost({ journal: path })
      expect(host.status().map(({ scope }) => scope)).toEqual(['anthropic/k1/m'])
    },
  )

  /** Writes another record into entry 2, as if it had always been there. */
  const rewrite = (path: string, change: (record: string) => string): void => {
    const db = new DatabaseSync(path)
    const row = db.prepare('select at, scope, record from entries where position = 2').get() as {
      at: number
      scope: string
      record: string
    }
    const record = change(row.record)
    const checksum = entryChecksum(2, row.at, row.scope, record)
    db.prepare('update entries set record = ?, checksum = ? where position = 2').run(record, checksum)
    db.close()
  }

  it.each<[string, (record: string) => string]>([
    ['spread over lines', (record) => JSON.stringify(JSON.parse(record), null, 2)],
    [
      'in another order',
      (record) => {
        const { event, decisions } = JSON.parse(record)
        return JSON.stringify({ decisions, event })
      },
    ],
    ['with a field beside', (record) => record.replace('"decisions"', '"note":1,"decisions"')],
  ])('is read when its text is written otherwise: %s', async (_, change) => {
    const path = await used()
    rewrite(path, change)
    await using host = await openHost({ journal: path })
    expect(host.status().map(({ scope }) => scope)).toEqual(['anthropic/k1/m'])
  })

  /** The scope of that history refuses its calls and says why; another one of the same host runs. */
  const failsAlone = async (path: string, why: object): Promise<void> => {
    await using host = await openHost({ journal: path })
    const failed = await host
      .scope(key)
      .run({ id: 'x' }, async () => 'sent')
      .catch((error: unknown) => error)
    expect(failed).toMatchObject({ _tag: 'ScopeFailed', scope: 'anthropic/k1/m', cause: why })
    expect(kernelOf(host).failures.get('anthropic/k1/m')).toMatchObject(why)
    await expect(host.scope('another').run({}, async () => 'sent')).resolves.toBe('sent')
  }

  it('fails its scope alone when it was decided otherwise than this version does, also the next time', async () => {
    const path = await used()
    rewrite(path, (record) => record.replace(/"decisions":.*/, '"decisions":[{"callId":"a"}]}'))
    await failsAlone(path, { _tag: 'ReplayDiverged', position: 2 })
    await failsAlone(path, { _tag: 'ReplayDiverged', position: 2 })
    await using host = await openHost({ journal: path })
    expect(await kernelOf(host).forget('anthropic/k1/m')).toBe(true)
    await expect(host.scope(key).run({ id: 'x' }, async () => 'sent')).resolves.toBe('sent')
  })

  it.each([
    '{"event":"nonsense"}',
    '{"event":{"type":7},"decisions":[]}',
    '{"event":{"type":"x"},"decisions":7}',
  ])('fails its scope alone when a record is not what this version writes: %s', async (record) => {
    const path = await used()
    rewrite(path, () => record)
    await failsAlone(path, { _tag: 'JournalCorrupt', problem: 'not an event with its decisions' })
  })

  it('is refused when a newer version wrote it', async () => {
    const path = await used()
    alter(path, 'pragma user_version = 99')
    await expect(openHost({ journal: path })).rejects.toMatchObject({ _tag: 'JournalTooNew', found: 99 })
  })

  it('is refused while another process writes it', async () => {
    const path = temporaryPath()
    const holder = startWriter(path, 'hold')
    await holder.hears(({ opened }) => opened !== undefined)
    await expect(openHost({ journal: path })).rejects.toMatchObject({
      _tag: 'JournalLocked',
      holder: { pid: holder.process.pid },
    })
    holder.process.kill('SIGKILL')
    await holder.ended
  })
})

describe('a clock that jumps', () => {
  const hour = 3_600_000

  it('back: times go on from where they were, and waits end when they would have', async () => {
    const timers = new ManualClock(1_000_000)
    let offsetMs = 0
    // As on a real machine: setting its clock moves no timer.
    const clock = {
      now: () => timers.now() + offsetMs,
      after: timers.after.bind(timers),
      elapsed: () => timers.now(),
    }
    const host = await openHost({ clock })
    const scope = host.scope(key, { capacity: 1, auxiliaryPendingTimeoutMs: 60_000 })
    const stamps: number[] = []
    kernelOf(host).observe(({ event }) => stamps.push(event.at))
    const running = await underWay(scope, 'running')
    const outcome = scope.run({ id: 'waiting', lane: 'auxiliary' }, async () => 1).catch((error) => error)
    await settle()
    timers.advance(12_345)
    offsetMs = -hour
    timers.advance(60_000 - 12_345 - 1)
    await settle()
    expect(host.status()[0]?.auxiliary.waiting).toBe(1)
    timers.advance(1)
    expect(await outcome).toMatchObject({ _tag: 'PendingTimeout' })
    running.end()
    await running.outcome
    await settle()
    expect(stamps).toEqual([...stamps].sort((one, other) => one - other))
    expect(stamps[0]).toBeGreaterThanOrEqual(1_000_000)
    await host.close()
  })

  it('forward, as after sleep: what is due ends at once, by its own name', async () => {
    const bench = await Bench.open({ capacity: 1 })
    await bench.auxiliary('running', { deadlineAt: 1_000_000 + 10 * hour })
    await bench.auxiliary('waiting', { deadlineAt: 1_000_000 + hour })
    bench.clock.jump(1_000_000 + 2 * hour)
    await bench.pass(1)
    expect(bench.outcomes.get('waiting')).toMatchObject({ _tag: 'DeadlineExceeded' })
    // The machine slept as well: the call could not be aborted in time, and its deadline is not reached.
    expect(bench.outcomes.get('running')).toMatchObject({ _tag: 'ActiveTimeout' })
    await bench.host.close()
  })

  it('between two hosts: a journal from the future does not stop time', async () => {
    const bench = await Bench.open()
    const journal = kernelOf(bench.host).journal
    await bench.auxiliary('a')
    await bench.finish('a')
    const clock = new ManualClock(1_000)
    const { Kernel } = await import('../../src/host/kernel.ts')
    const second = new LaneHost(await Kernel.open({ journal, journalPath: 'memory', clock }))
    expect(kernelOf(second).clock.now()).toBeGreaterThanOrEqual(1_000_000)
    clock.advance(500)
    const permit = await second.scope('later').admit({ id: 'x', deadlineAt: clock.now() + 100 })
    clock.advance(200)
    await settle()
    expect(permit.signal.aborted).toBe(true)
    await second.close()
  })
})

it.runIf(process.platform === 'linux')('a disk that is really full stops the host by name', () => {
  const script = new URL('./fill.ts', import.meta.url).pathname
  // Beyond the size limit (200 KiB) a write fails, since the signal is ignored.
  const limited = `trap '' XFSZ; ulimit -f 200; exec "$0" --disable-warning=ExperimentalWarning "$@"`
  const { stdout } = spawnSync('bash', ['-c', limited, process.execPath, script, temporaryPath()], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  const said = stdout.trim().split('\n')
  expect(said.at(-1)).toMatch(
    /^ScopeFailed: scope pool stopped: journal .* failed: (disk I\/O error|database or disk is full)$/,
  )
  // Nothing ran after the failure, and everything that ran had been written down.
  expect(said.slice(0, -1).every((line) => line.startsWith('ran '))).toBe(true)
  expect(said.length).toBeGreaterThan(10)
})
