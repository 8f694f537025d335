/** Checkpoints: the same text as in one piece, made in slices; written when it pays. */
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { advance, type Call, contextFrom, parsePolicy, type ScopeEvent } from '../../machines/index.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { snapshotSize, snapshotSlices, snapshotText } from '../../src/host/checkpointing.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { ManualClock } from '../../src/index.ts'
import type { Checkpoint } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { runs } from '../properties/runs.ts'
import { anyMove, anyPolicy, Drive } from '../properties/scope-drive.ts'

const wait = { capacity: 1, auxiliaryPendingTimeoutMs: 30 * 86_400_000 }

const call = (id: string, principal = 'a'): Call => ({
  id,
  turnId: null,
  lane: 'auxiliary',
  priorityClass: 'background_ingestion',
  principal,
  inputTokens: 1_000,
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
})

/** A scope with this many waiting calls of many principals, and as many ended ones. */
const crowded = (waiting: number, ended: number) => {
  let context = contextFrom('crowded')
  let at = 1
  const tell = (event: object) => {
    context = advance(context, { ...event, at: at++ } as ScopeEvent)
  }
  tell({ type: 'policy.changed', policy: parsePolicy({ ...wait, settledRetention: 1_000_000 }) })
  for (let n = 0; n < ended; n += 1) {
    tell({ type: 'call.submitted', call: call(`ended "${(n * 7_919) % ended}" é`) })
    tell({ type: 'call.settled', callId: `ended "${(n * 7_919) % ended}" é`, outcome: 'completed' })
  }
  for (let n = 0; n < waiting; n += 1) {
    tell({ type: 'call.submitted', call: call(`waiting-${n}`, `principal ${(n * 31) % 5_000}`) })
  }
  return context
}

describe('a snapshot in slices', () => {
  it('equals the snapshot in one piece, byte for byte, whatever happened', async () => {
    const story = fc.record({ policy: anyPolicy, moves: fc.array(anyMove, { maxLength: 40 }) })
    await fc.assert(
      fc.asyncProperty(story, async ({ policy, moves }) => {
        const drive = new Drive(policy)
        for (const move of moves) drive.move(move)
        expect(await snapshotText(drive.context)).toBe(JSON.stringify(encodeScope(drive.context)))
      }),
      { numRuns: runs(300) },
    )
  })

  it.each([
    [3, 0],
    [1_000, 1_000],
    [1_001, 2_049],
    [12_345, 3_000],
  ])('equals it with %i waiting and %i ended calls', async (waiting, ended) => {
    const context = crowded(waiting, ended)
    expect(await snapshotText(context)).toBe(JSON.stringify(encodeScope(context)))
    expect(snapshotSize(context)).toBeGreaterThanOrEqual(waiting + ended)
  })

  it('takes no turn when it is small, and many short ones when it is large', () => {
    expect([...snapshotSlices(crowded(100, 100))]).toEqual([])
    const context = crowded(30_000, 10_000)
    const stringify = vi.spyOn(JSON, 'stringify')
    const sort = vi.spyOn(Array.prototype, 'sort')
    onTestFinished(() => void vi.restoreAllMocks())
    const sizes: number[] = []
    const slices = snapshotSlices(context)
    for (let done = false; !done; ) {
      stringify.mockClear()
      sort.mockClear()
      done = slices.next().done === true
      const written = stringify.mock.calls.map(([value]) => (Array.isArray(value) ? value.length : 1))
      const sorted = sort.mock.contexts.map((items) => (items as ReadonlyArray<unknown>).length)
      sizes.push([...written, ...sorted].reduce((sum, size) => sum + size, 0))
    }
    // Counted rather than timed: a neighbour on the machine may fall into any slice.
    expect(sizes.length).toBeGreaterThan(100)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_100)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(2 * 40_000)
  })
})

describe('when a host writes checkpoints', () => {
  const watched = () => {
    const memory = openMemoryJournal()
    const kept: Checkpoint[] = []
    const checkpoint = (one: Checkpoint) => {
      kept.push(one)
      return memory.checkpoint(one)
    }
    return { kept, journal: { ...memory, checkpoint } }
  }

  const open = async () => {
    const { kept, journal } = watched()
    const kernel = await Kernel.open({ journal, journalPath: 'memory', clock: new ManualClock(1_000) })
    return { kept, kernel, runner: kernel.scope('s', wait) }
  }

  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }

  it('writes less often the more there is to write: events cost the same at any depth', async () => {
    const { kept, kernel, runner } = await open()
    const submit = (n: number) => runner.tell({ type: 'call.submitted', call: call(`c${n}`) })
    const churn = async (from: number, events: number) => {
      const before = kept.length
      for (let n = from; n < from + events / 2; n += 1) {
        submit(n)
        runner.tell({ type: 'call.withdrawn', callId: `c${n}` })
        if (n % 500 === 0) await turns(2)
      }
      await turns(500)
      const written = kept.slice(before).reduce((sum, { snapshot }) => sum + snapshot.length, 0)
      return { count: kept.length - before, perEvent: written / events }
    }
    const shallow = await churn(1_000_000, 40_000)
    for (let n = 0; n < 5_000; n += 1) submit(n)
    const deep = await churn(2_000_000, 40_000)
    expect(shallow.count).toBeGreaterThan(deep.count)
    expect(deep.count).toBeGreaterThan(0)
    expect(deep.perEvent).toBeLessThan(2 * 330)
    await kernel.close(0)
  })

  it('goes on taking events while a snapshot is made, and writes the state of its beginning', async () => {
    const { kept, kernel, runner } = await open()
    for (let n = 0; n < 3_000; n += 1) runner.tell({ type: 'call.submitted', call: call(`c${n}`) })
    const { position, context } = runner
    const written = kernel.checkpoint(runner)
    runner.tell({ type: 'call.withdrawn', callId: 'c7' })
    expect(kernel.checkpoint(runner)).toBe(written)
    await written
    expect(kept).toEqual([
      { scope: 's', position, at: context.at, snapshot: JSON.stringify(encodeScope(context)) },
    ])
    await kernel.close(0)
  })

  it('closes with the newest state of every scope, and writes none that is there already', async () => {
    const { kept, kernel, runner } = await open()
    kernel.scope('untouched')
    for (let n = 0; n < 3_000; n += 1) runner.tell({ type: 'call.submitted', call: call(`c${n}`) })
    void kernel.checkpoint(runner)
    runner.tell({ type: 'call.withdrawn', callId: 'c7' })
    await kernel.close(0)
    // The scope that was only named holds the policy with which it was opened.
    expect(kept.map(({ position }) => position)).toEqual([3_002, 2, 3_003])
    expect(kept.at(-1)?.snapshot).toBe(JSON.stringify(encodeScope(runner.context)))
  })
})
