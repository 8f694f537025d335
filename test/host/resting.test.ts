/** Scopes at rest leave memory and come back as they were; forgotten ones begin anew. */

import { describe, expect, it } from 'vitest'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { LaneHost, ManualClock, openHost } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { temporaryPath } from '../journal/fixture.ts'

const settled = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}

const opened = async (scopesInMemory: number, path?: string) => {
  const journal = path === undefined ? openMemoryJournal() : await openSqliteJournal(path)
  const clock = new ManualClock(1_000_000)
  const host = new LaneHost(
    await Kernel.open({ journal, journalPath: path ?? 'memory', clock, scopesInMemory }),
  )
  return { host, clock, journal }
}

const answered = async (host: LaneHost, name: string, id: string): Promise<void> => {
  await host.scope(name).run({ id, lane: 'auxiliary' }, async () => 'answer')
}

describe.each([
  ['memory', () => undefined],
  ['sqlite', () => temporaryPath()],
])('over a %s journal, scopes at rest', (_, pathOf) => {
  it('leave memory, the least recently used first, and come back with all that they knew', async () => {
    const { host } = await opened(8, pathOf())
    for (let n = 0; n < 30; n += 1) await answered(host, `scope-${n}`, 'only')
    await settled()
    await expect.poll(() => kernelOf(host).runners.size).toBeLessThanOrEqual(9)
    expect(kernelOf(host).runners.has('scope-0')).toBe(false)
    expect(kernelOf(host).runners.has('scope-29')).toBe(true)
    await expect(answered(host, 'scope-0', 'only')).rejects.toMatchObject({ _tag: 'AlreadySettled' })
    expect(kernelOf(host).runners.has('scope-0')).toBe(true)
    await host.close()
  })

  it('come back byte for byte', async () => {
    const { host } = await opened(4, pathOf())
    const scope = host.scope('kept', { capacity: 3, limits: { inputTokensPerMinute: 1_000 } })
    await scope.run({ id: 'a', lane: 'primary', inputTokens: 100 }, async () => 'answer')
    await settled()
    const before = JSON.stringify(encodeScope(kernelOf(host).runners.get('kept')!.context))
    for (let n = 0; n < 20; n += 1) await answered(host, `other-${n}`, 'only')
    await expect.poll(() => kernelOf(host).runners.has('kept')).toBe(false)
    expect(JSON.stringify(encodeScope(kernelOf(host).scope('kept').context))).toBe(before)
    await host.close()
  })

  it('serve whoever held them before they left, through one scope only', async () => {
    const { host } = await opened(2, pathOf())
    const held = host.scope('held')
    await held.run({ id: 'a', lane: 'auxiliary' }, async () => 1)
    for (let n = 0; n < 10; n += 1) await answered(host, `other-${n}`, 'only')
    await expect.poll(() => kernelOf(host).runners.has('held')).toBe(false)
    const permit = await held.admit({ id: 'b', lane: 'primary' })
    expect(held.status.primary.inFlight).toBe(1)
    expect(host.scope('held').status.primary.inFlight).toBe(1)
    permit.settle({ outcome: 'completed' })
    permit.settle({ outcome: 'completed' })
    expect(host.scope('held').status.counters).toMatchObject({ completed: 2, lateSettlements: 1 })
    await host.close()
  })

  it('stay while anything in them waits, runs, is due or is held', async () => {
    const { host } = await opened(2, pathOf())
    const running = await host.scope('running').admit({ id: 'a' })
    host.scope('between rounds').beginTurn('turn')
    for (let n = 0; n < 20; n += 1) await answered(host, `other-${n}`, 'only')
    await settled()
    expect([...kernelOf(host).runners.keys()]).toEqual(expect.arrayContaining(['running', 'between rounds']))
    running.settle({ outcome: 'completed' })
    await host.close()
  })
})

describe('a host that opens a journal of many scopes', () => {
  it('loads those that are live, and as many at rest as it keeps', async () => {
    const path = temporaryPath()
    const first = await openHost({ journal: path, scopesInMemory: 5 })
    for (let n = 0; n < 40; n += 1) await answered(first, `scope-${n}`, 'only')
    const waiting = first.scope('scope-3', { capacity: 1 })
    await waiting.admit({ id: 'runs', dispatchAtOnce: true } as never, { dispatchAtOnce: true })
    waiting.admit({ id: 'waits', lane: 'auxiliary' }).catch(() => {})
    await settled()
    await first.close()
    const second = await openHost({ journal: path, scopesInMemory: 5 })
    const names = second.status().map(({ scope }) => scope)
    expect(names).toContain('scope-3')
    expect(names.length).toBeLessThanOrEqual(6)
    expect(second.scope('scope-3').status.auxiliary.waiting).toBe(1)
    await expect(answered(second, 'scope-11', 'only')).rejects.toMatchObject({ _tag: 'AlreadySettled' })
    await second.close()
  })
})

describe.each([
  ['memory', () => undefined],
  ['sqlite', () => temporaryPath()],
])('over a %s journal, a scope that is forgotten', (_, pathOf) => {
  it('is gone from memory, snapshot and journal, and begins anew', async () => {
    const path = pathOf()
    const { host, journal } = await opened(100, path)
    await answered(host, 'stranger', 'a')
    await answered(host, 'friend', 'a')
    expect(await kernelOf(host).forget('stranger')).toBe(true)
    expect(kernelOf(host).knows('stranger')).toBe(false)
    expect((await journal.scopes()).map(({ scope }) => scope)).toEqual(['friend'])
    const scopes = new Set<string>()
    for await (const batch of journal.read()) for (const { scope } of batch) scopes.add(scope)
    expect([...scopes]).toEqual(['friend'])
    await answered(host, 'stranger', 'a')
    await host.close()
    if (path === undefined) return
    const again = await openHost({ journal: path })
    await expect(answered(again, 'stranger', 'a')).rejects.toMatchObject({ _tag: 'AlreadySettled' })
    await again.close()
  })

  it('is not while anything in it is live', async () => {
    const { host } = await opened(100, pathOf())
    const permit = await host.scope('busy').admit({ id: 'a' })
    expect(await kernelOf(host).forget('busy')).toBe(false)
    permit.settle({ outcome: 'completed' })
    expect(await kernelOf(host).forget('busy')).toBe(true)
    expect(await kernelOf(host).forget('never met')).toBe(true)
    await host.close()
  })

  it('begins anew also while its forgetting is under way', async () => {
    const path = pathOf()
    const { host } = await opened(100, path)
    await answered(host, 'stranger', 'a')
    await kernelOf(host).checkpoint(kernelOf(host).runners.get('stranger')!)
    const forgotten = kernelOf(host).forget('stranger')
    await Promise.resolve()
    await Promise.resolve()
    await answered(host, 'stranger', 'a')
    await forgotten
    await host.close()
  })
})

it('what was forgotten leaves the file with the next compaction, and is not missed by anything', async () => {
  const path = temporaryPath()
  const journal = await openSqliteJournal(path)
  const host = new LaneHost(
    await Kernel.open({ journal, journalPath: path, clock: new ManualClock(Date.now()), scopesInMemory: 10 }),
  )
  for (let n = 0; n < 50; n += 1) {
    await answered(host, `stranger-${n}`, 'a')
    if (n % 2 === 0) await kernelOf(host).forget(`stranger-${n}`)
  }
  const { dropped } = await journal.compact()
  expect(dropped).toBeGreaterThanOrEqual(50)
  await host.close()
  const { checkJournal } = await import('../../src/journal/check.ts')
  expect(checkJournal(path).problems).toEqual([])
  const reader = await openSqliteReader(path)
  expect((await reader.scopes()).length).toBe(25)
  reader.close()
})
