/** A place that is taken back in the very moment in which its client leaves. */
import { expect, it } from 'vitest'
import { noAmbient } from '../../../src/carrier/ambient.ts'
import { Place } from '../../../src/gateway/calls/place.ts'
import { runnerOf } from '../../../src/host/internal.ts'
import { callOf } from '../../../src/host/request.ts'
import { ManualClock, openHost, type Permit } from '../../../src/index.ts'
import { openMemoryJournal } from '../../../src/journal/memory.ts'
import { settle } from '../../host/bench.ts'

const policy = { capacity: 2, reserve: 1, inFlight: 'cancel', graceMs: 5_000, lingerMs: 0 } as const

it("is nobody's when an auxiliary is preempted and its client goes before it hears of it", async () => {
  const clock = new ManualClock(1_000_000)
  let sync = (): void => {}
  let isSlow = false
  const schedule = (commit: () => void): void => {
    if (isSlow) sync = commit
    else queueMicrotask(commit)
  }
  const host = await openHost({ clock, journal: openMemoryJournal({ schedule }) })
  const scope = host.scope('pool', policy)
  const runner = runnerOf(scope)
  const granted: Permit[] = []
  const holder = {
    isPresent: true,
    granted: (permit: Permit) => void granted.push(permit),
    refused: () => {},
    missed: () => {},
  }
  const call = callOf({ id: 'a', lane: 'auxiliary' }, scope.name, noAmbient)
  const place = new Place(runner, call, clock, holder)
  place.ask()
  await settle()
  expect(granted).toHaveLength(1)
  // The primary takes the place back, and the disk has not said so yet.
  isSlow = true
  const primary = scope.run({ lane: 'primary' }, () => 'served')
  expect(granted[0]!.isAborted).toBe(false)
  place.end({ outcome: 'cancelled' })
  isSlow = false
  sync()
  await settle()
  expect(await primary).toBe('served')
  clock.advance(1_000)
  await settle()
  expect(granted).toHaveLength(1)
  expect(scope.status.auxiliary).toMatchObject({ waiting: 0, inFlight: 0 })
  // The next primary waits for nobody.
  expect(await scope.run({ lane: 'primary' }, () => 'at once')).toBe('at once')
  await host.close()
})
