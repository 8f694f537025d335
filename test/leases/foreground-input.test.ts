import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../src/clock.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { type LaneHost, openHost, type PolicyInput, poolPolicy } from '../../src/index.ts'
import { type ForegroundSink, foregroundInput } from '../../src/leases/foreground-input.ts'
import { until } from '../fan-out/fixture.ts'
import { openForTest, temporaryFolder } from './fixture.ts'

const startMs = Math.floor(Date.now() / 1_000) * 1_000

const sinkOf = (host: LaneHost, name: string): ForegroundSink => ({
  setForeground: (active) => kernelOf(host).scope(name).tell({ type: 'foreground.changed', active }),
})

/** The scope of a worker process. Its foreground is in another process that shares its folder. */
const open = async (policy: PolicyInput = {}) => {
  const clock = new ManualClock(startMs)
  const folder = temporaryFolder()
  // Long enough that no story here depends on a heartbeat, which takes real time.
  const options = { clock, ttlMs: 60_000, lookEveryMs: 250 }
  const [server, worker] = [openForTest(folder, options), openForTest(folder, options)]
  const host = await openHost({ clock })
  onTestFinished(() => host.close())
  const scope = host.scope('maintenance', { ...poolPolicy, capacity: 4, ...policy })
  const stop = foregroundInput([sinkOf(host, 'maintenance')], worker)
  onTestFinished(stop)
  let ended = 0
  const background = (): Promise<void> =>
    scope.run({ priorityClass: 'background_ingestion' }, async () => {
      ended += 1
    })
  return { clock, server, scope, background, stop, ended: () => ended }
}

/** Lets everything that may happen without time happen. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('foreground in another process', () => {
  it('holds background back while it lasts, then lets it go', async () => {
    const { clock, server, scope, background, ended } = await open()
    const lease = server.hold()
    await lease.published
    clock.advance(250)
    const all = Promise.all([background(), background()])
    await settle()
    expect({ ended: ended(), waiting: scope.status.auxiliary.waiting }).toEqual({ ended: 0, waiting: 2 })
    await lease.release()
    clock.advance(250)
    await all
    expect(ended()).toBe(2)
  })

  it('does not hold a primary back', async () => {
    const { clock, server, scope } = await open()
    await server.hold().published
    clock.advance(250)
    expect(await scope.run({ priorityClass: 'orchestration' }, async () => 'answered')).toBe('answered')
  })

  it('holds background back for maxDeferralMs at most, then lets one call go', async () => {
    const { clock, server, background, ended } = await open({ maxDeferralMs: 10_000 })
    await server.hold().published
    clock.advance(250)
    const all = Promise.all([background(), background()])
    await settle()
    for (let second = 0; second < 9; second++) {
      clock.advance(1_000)
      await settle()
    }
    expect(ended()).toBe(0)
    for (const expected of [1, 2]) {
      for (let second = 0; second < 10; second++) {
        clock.advance(1_000)
        await settle()
      }
      expect(ended()).toBe(expected)
    }
    await all
  })

  it('lets background go when the input is stopped', async () => {
    const { clock, server, background, stop } = await open()
    await server.hold().published
    clock.advance(250)
    const waiting = background()
    stop()
    await waiting
  })

  it('ends for a scope that remembers one from before its restart', async () => {
    const host = await openHost()
    onTestFinished(() => host.close())
    const sink = sinkOf(host, 'maintenance')
    sink.setForeground(true)
    const scope = host.scope('maintenance')
    const waiting = scope.run({ lane: 'auxiliary' }, async () => 'done')
    await until(() => scope.status.auxiliary.waiting === 1)
    onTestFinished(foregroundInput([sink], openForTest(temporaryFolder())))
    expect(await waiting).toBe('done')
  })
})
