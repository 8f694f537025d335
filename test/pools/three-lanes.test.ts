/** One interactive call gets a worker slot, an engine read and a provider slot ahead of a background flood in all three. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { currentPriority, withPriority } from '../../src/carrier/with-priority.ts'
import { engineReadPolicy, modelGatePolicy, workerPoolPolicy } from '../../src/config/pools.ts'
import { fingerprint, type LaneHost, type LaneScope, OutcomeUnknown, openHost } from '../../src/index.ts'
import { until } from '../fan-out/fixture.ts'

const model = { provider: 'qwen', credential: fingerprint('key'), model: 'qwen-32b' }

const lanesOf = (host: LaneHost): ReadonlyArray<LaneScope> => [
  host.scope('worker-pool', workerPoolPolicy({ workers: 4 })),
  host.scope('engine-read', engineReadPolicy({ slots: 4 })),
  host.scope(model, modelGatePolicy({ capacity: 4, reserve: 1 })),
]

/** Does `work` within a slot of each scope, the first outermost. */
const through = ([scope, ...rest]: ReadonlyArray<LaneScope>, work: () => Promise<void>): Promise<void> =>
  scope === undefined ? work() : scope.run({}, () => through(rest, work))

const openLanes = async () => {
  const host = await openHost()
  onTestFinished(() => host.close())
  return lanesOf(host)
}

/** Work that ends when it is let go. */
const door = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { wait: () => promise, open: resolve }
}

describe('one interactive call among a background flood in three lanes', () => {
  it('goes through all three while every place of the background is taken and its backlog waits', async () => {
    const lanes = await openLanes()
    const { wait, open } = door()
    const floods = lanes.flatMap((scope) =>
      Array.from({ length: 50 }, () =>
        withPriority('background_ingestion', () => scope.run({}, () => wait())),
      ),
    )
    await until(() =>
      lanes.every(({ status }) => status.auxiliary.inFlight === 3 && status.auxiliary.waiting === 47),
    )

    let seen: unknown
    await withPriority('interactive', () =>
      through(lanes, async () => {
        seen = {
          class: currentPriority(),
          lanes: lanes.map(({ status }) => [status.primary.inFlight, status.auxiliary.inFlight]),
        }
      }),
    )
    expect(seen).toEqual({
      class: 'interactive',
      lanes: [
        [1, 3],
        [1, 3],
        [1, 3],
      ],
    })
    open()
    await Promise.all(floods)
    expect(lanes.map(({ status }) => status.auxiliary.waiting)).toEqual([0, 0, 0])
  })

  it('goes ahead of background tasks that themselves need all three', async () => {
    const lanes = await openLanes()
    const { wait, open } = door()
    const order: Array<string> = []
    const task = (name: string) => () =>
      through(lanes, async () => {
        order.push(name)
        if (order.length <= 3) await wait()
      })
    const flood = Array.from({ length: 20 }, (_, n) =>
      withPriority('background_ingestion', task(`task ${n}`)),
    )
    await until(() => order.length === 3)
    await withPriority('interactive', task('question'))
    expect(order).toEqual(['task 0', 'task 1', 'task 2', 'question'])
    open()
    await Promise.all(flood)
    expect(new Set(order).size).toBe(21)
  })

  it('is next when every place is taken by its like, before any background that came first', async () => {
    const lanes = await openLanes()
    const { wait, open } = door()
    const order: Array<string> = []
    const busy = lanes.flatMap((scope) =>
      Array.from({ length: 4 }, () => withPriority('orchestration', () => scope.run({}, () => wait()))),
    )
    await until(() => lanes.every(({ status }) => status.primary.inFlight === 4))
    const low = withPriority('background_ingestion', () =>
      through(lanes, async () => void order.push('task')),
    )
    const high = withPriority('interactive', () => through(lanes, async () => void order.push('question')))
    await until(() => lanes[0]!.status.primary.waiting === 1)
    open()
    await Promise.all([...busy, low, high])
    expect(order).toEqual(['question', 'task'])
  })
})

describe('a pool whose process ended', () => {
  it('keeps its waiting tasks, and does not run again what may have run', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rightofway-pools-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const journal = join(folder, 'lanes.db')
    const policy = workerPoolPolicy({ workers: 1 })
    const run = (scope: LaneScope, id: string, fn: () => Promise<unknown>) =>
      scope.run({ id, priorityClass: 'background_ingestion' }, fn)

    const before = await openHost({ journal })
    const pool = before.scope('worker-pool', policy)
    let started = false
    const running = run(pool, 'running', () => {
      started = true
      return new Promise(() => {})
    })
    running.catch(() => {})
    await until(() => started)
    const waiting = ['one', 'two'].map((id) => run(pool, id, async () => id))
    await until(() => pool.status.auxiliary.waiting === 2)
    const released = Promise.allSettled(waiting)
    await before.close()
    expect((await released).map(({ status }) => status)).toEqual(['rejected', 'rejected'])

    const after = await openHost({ journal })
    onTestFinished(() => after.close())
    const again = after.scope('worker-pool', policy)
    expect(again.status.auxiliary.waiting).toBe(2)
    await expect(run(again, 'running', async () => 'ran')).rejects.toBeInstanceOf(OutcomeUnknown)
    const answers = ['one', 'two'].map((id) => run(again, id, async () => id))
    expect(await Promise.all(answers)).toEqual(['one', 'two'])
  })
})
