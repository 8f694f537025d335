/**
 * Why a call waits, or how it ended: from a running host, from a dead host, and from the rest that retention
 * left.
 */

import { describe, expect, it } from 'vitest'
import { explainFrom, explainState } from '../../src/host/explain.ts'
import { checkpointsNaming, stateInJournal } from '../../src/host/explain-search.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { Bench } from '../host/bench.ts'
import { temporaryPath } from '../journal/fixture.ts'
import { beginsAt } from './scenes.ts'

/** An auxiliary runs, a primary waits for it, and others wait for the primary. */
const held = async (journal: string | Journal = ':memory:'): Promise<Bench> => {
  const bench = await Bench.open({}, journal, beginsAt)
  await bench.auxiliary('running')
  await bench.primary('turn')
  await bench.auxiliary('mine', { principal: 'residence-a' })
  await bench.auxiliary('other', { principal: 'residence-b' })
  await bench.auxiliary('asked', { principal: 'residence-a' })
  return bench
}

const dead = async (path: string, callId: string, nowMs?: number) => {
  const reader = await openSqliteReader(path)
  const explanation = await explainFrom(reader, path, callId, {
    stateOf: stateInJournal(reader, path),
    ...(nowMs === undefined ? {} : { nowMs }),
  })
  reader.close()
  return explanation
}

describe('a waiting call', () => {
  it('is told with its place and what it waits for, from a running host', async () => {
    const bench = await held()
    await bench.pass(5_000)
    kernelOf(bench.host).runners.get('anthropic/k1/m')?.tell({ type: 'clock.woke' })
    expect(await bench.host.explain('asked')).toEqual({
      callId: 'asked',
      scope: 'anthropic/k1/m',
      standing: 'waiting',
      lines: [
        '2023-11-14 22:13:25.000 UTC still waits after 5.0 s, behind 2 auxiliaries (2 background_ingestion, 1 of its own principal): a primary is pending (primary-pending, in primaryPending)',
        '2023-11-14 22:13:25.000 UTC the scope: gate closed, 1 of 32 places taken, 1 primary waits (longest 5.0 s), 3 auxiliaries wait (longest 5.0 s)',
        '2023-11-14 22:13:20.000 UTC submitted: auxiliary, background_ingestion, for residence-a, about 60000 input tokens',
        '2023-11-14 22:13:20.000 UTC deferred: a primary is pending (primary-pending, in primaryPending)',
      ],
    })
    expect((await bench.host.explain('turn'))?.lines[0]).toBe(
      '2023-11-14 22:13:25.000 UTC still waits after 5.0 s, behind 0 primaries (0 of its own principal): auxiliaries in flight have to settle first (auxiliaries-in-flight, in primaryPending); looked at again in 25 s at the latest',
    )
    await bench.host.close()
  })

  it('is behind those that go before it, not those that came before it', async () => {
    const bench = await held()
    await bench.primary('later')
    await bench.primary('needs', { dependsOn: ['other'] })
    await bench.primary('next', { priorityClass: 'interactive' })
    const behind = async (id: string) => /behind \d+ \w+/.exec((await bench.host.explain(id))!.lines[0]!)?.[0]
    expect(await behind('next')).toBe('behind 0 primaries')
    expect(await behind('later')).toBe('behind 2 primaries')
    // The call has no place in the order until the call that it waits for has ended.
    expect(await behind('needs')).toBe('behind 2 primaries')
    await bench.host.close()
  })

  it('is told the same from the journal of a host that was killed, and that its owner is awaited after a restart', async () => {
    const path = temporaryPath()
    const bench = await held(await openSqliteJournal(path))
    await bench.pass(1)
    const running = await bench.host.explain('asked')
    // Killed: nothing is written any more.
    await kernelOf(bench.host).journal.close()
    expect(await dead(path, 'asked', bench.clock.now())).toEqual(running)
    await using second = await openHost({ journal: path, clock: bench.clock })
    const lines = (await second.explain('asked'))?.lines ?? []
    expect(lines[2]).toBe(
      '2023-11-14 22:13:20.001 UTC nobody has asked for it since it went back to its place; it expires at 2023-11-14 22:23:20.001 UTC',
    )
    expect((await second.explain('running'))?.lines[0]).toContain('it was running when its host died')
  })
})

describe('history that is gone', () => {
  it('is said to be compacted, and what is left is told', async () => {
    const memory = openMemoryJournal()
    const bench = await held(memory)
    await kernelOf(bench.host).checkpoint(kernelOf(bench.host).runners.get('anthropic/k1/m')!)
    await bench.finish('running')
    const { entries, checkpoints } = memory.survivors()
    const left = entries.filter(({ position }) => position > checkpoints[0]!.position)
    const journal = openMemoryJournal({ history: { entries: left, checkpoints } })
    const stateOf = stateInJournal(journal, 'memory')
    expect(await explainFrom(journal, 'memory', 'turn', { stateOf })).toMatchObject({
      standing: 'in flight',
      lines: [
        expect.stringContaining('now: sent to the provider, since'),
        '(its history before this was compacted: a checkpoint stands for it, which remembers its place)',
        expect.stringContaining('released: it is a primary and its turn came'),
        expect.stringContaining('sent to the provider'),
      ],
    })
    // Nothing but the checkpoint names it.
    expect(await explainFrom(journal, 'memory', 'asked', { stateOf })).toBeNull()
    const [state] = await checkpointsNaming(journal, 'asked')
    expect(explainState(state!, 'asked')).toMatchObject({
      standing: 'waiting',
      lines: [
        expect.stringContaining('still waits after 0.0 s, behind 2 auxiliaries'),
        expect.stringContaining('the scope: gate closed, 1 of 32 places taken'),
        expect.stringContaining('was compacted'),
        expect.stringContaining('submitted: auxiliary'),
      ],
    })
    expect(explainState(state!, 'running')?.standing).toBe('in flight')
    expect(await checkpointsNaming(journal, 'nobody')).toEqual([])
  })

  it('is told by a running host from its own state', async () => {
    const memory = openMemoryJournal({ keepEntries: 2 })
    const bench = await held(memory)
    for (let n = 0; n < 30; n += 1) {
      await bench.auxiliary(`more-${n}`)
      await kernelOf(bench.host).checkpoint(kernelOf(bench.host).runners.get('anthropic/k1/m')!)
    }
    const explanation = await bench.host.explain('mine')
    expect(explanation?.standing).toBe('waiting')
    expect(explanation?.lines.join('\n')).toContain('compacted')
    expect(await bench.host.explain('nobody')).toBeNull()
    await bench.finish('running')
    await bench.finish('turn')
    await bench.host.close()
  })
})

describe('a long journal', () => {
  const many = async (count: number) => {
    const bench = await Bench.open({}, ':memory:', beginsAt)
    await bench.auxiliary('first')
    const runner = kernelOf(bench.host).runners.get('anthropic/k1/m')!
    for (let n = 0; n < count; n += 1) runner.tell({ type: 'clock.woke' })
    await bench.auxiliary('last')
    return bench
  }

  it('is looked at backwards: a call of the last moments costs the same in any journal', async () => {
    const bench = await many(60_000)
    const { journal } = kernelOf(bench.host)
    let seen = 0
    const counted: Pick<Journal, 'read'> = {
      read: async function* (query) {
        for await (const batch of journal.read(query)) {
          seen += batch.length
          yield batch
        }
      },
    }
    expect((await explainFrom(counted, 'memory', 'last'))?.standing).toBe('in flight')
    expect(seen).toBeLessThan(45_000)
    expect((await explainFrom(counted, 'memory', 'first'))?.lines.length).toBe(4)
  })

  it('is looked at only so far, and the explanation says so', async () => {
    const bench = await many(20_000)
    const { journal } = kernelOf(bench.host)
    expect(await explainFrom(journal, 'memory', 'first', { lookBack: 10_000 })).toBeNull()
    await bench.finish('first')
    expect((await explainFrom(journal, 'memory', 'first', { lookBack: 10_000 }))?.lines).toEqual([
      '(its history before this lies further back than was looked)',
      expect.stringContaining('settled: completed'),
    ])
  })

  it('tells of the newest use of an id that was withdrawn and used again', async () => {
    const bench = await many(10)
    await bench.primary('turn')
    const controller = new AbortController()
    await bench.auxiliary('again', { signal: controller.signal, inputTokens: 1 })
    controller.abort()
    await bench.auxiliary('again', { inputTokens: 2 })
    const explanation = await bench.host.explain('again')
    expect(explanation?.lines.join('\n')).toContain('about 2 input tokens')
    expect(explanation?.lines.join('\n')).not.toContain('about 1 input tokens')
  })
})
