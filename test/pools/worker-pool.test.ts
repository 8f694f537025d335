/** Worker and read lanes: the same machine with places and no budgets, and the Edict's floors. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidInput, reserveOf, worstCaseWaitMs } from '../../machines/index.ts'
import {
  bestEffortLaneCap,
  bulkLaneCap,
  engineReadPolicy,
  generationWorkers,
  interactiveFloor,
  workerPoolPolicy,
} from '../../src/config/pools.ts'
import { Gate } from './gate.ts'

const background = 'background_ingestion'

describe('the floor of a worker pool', () => {
  it.each([
    [8, 0, 1],
    [8, 1, 1],
    [8, 3, 3],
    [8, 7, 7],
    [8, 8, 7],
    [8, 99, 7],
    [2, 0, 1],
    [2, 2, 1],
    [1, 0, 0],
    [1, 5, 0],
  ])('of %i workers, %i reserved, is %i', (workers, reserved, floor) => {
    expect(interactiveFloor({ workers, reserved })).toBe(floor)
    expect(reserveOf(workerPoolPolicy({ workers, reserved }))).toBe(floor)
    expect(reserveOf(engineReadPolicy({ slots: workers, reserved }))).toBe(floor)
  })

  it('is at least 1 even when nothing is reserved', () => {
    expect(reserveOf(workerPoolPolicy({ workers: 4 }))).toBe(1)
    expect(reserveOf(engineReadPolicy({ slots: 4, reserved: 0 }))).toBe(1)
  })
})

describe('a worker pool', () => {
  it.each([
    ['worker-pool', workerPoolPolicy({ workers: 4 })],
    ['engine-read', engineReadPolicy({ slots: 4 })],
  ])('(%s): ingestion cannot take the last slot, interactive may', (_, policy) => {
    const gate = new Gate(policy)
    expect(gate.flood(10)).toBe(3)
    gate.outlivesDeferrals()
    expect(gate.inFlightOf('background_ingestion')).toBe(3)
    expect(gate.lands('interactive')).toBe(true)
    expect(gate.lands('interactive')).toBe(false)
  })

  it.each([
    ['worker-pool', workerPoolPolicy({ workers: 1, reserved: 1 })],
    ['engine-read', engineReadPolicy({ slots: 1 })],
  ])('(%s) of 1 is not wedged: background works when nobody else does', (_, policy) => {
    const gate = new Gate(policy)
    const low = gate.ask(background)
    expect(gate.holds(low)).toBe(true)
    const high = gate.ask('interactive')
    const next = gate.ask(background)
    gate.leaves(low)
    expect(gate.holds(high)).toBe(true)
    gate.leaves(high)
    expect(gate.holds(next)).toBe(true)
  })

  it('decides and registers in one step: asking twice in one moment never takes the same place twice', () => {
    const gate = new Gate(workerPoolPolicy({ workers: 4 }))
    const asked = Array.from({ length: 50 }, (_, lane) => gate.ask(background, { principal: `lane-${lane}` }))
    expect(asked.filter((id) => gate.holds(id))).toHaveLength(3)
    expect(gate.context.counts.places).toBe(3)
  })

  it('gives lanes their turns one by one: one that waits for its first worker comes before the next task of a long one', () => {
    const gate = new Gate(workerPoolPolicy({ workers: 3 }))
    gate.flood(100, background, 'codebase')
    const uncovered = gate.ask(background, { principal: 'documents' })
    gate.leaves(gate.inFlight[0]!)
    gate.leaves(gate.inFlight[0]!)
    expect(gate.holds(uncovered)).toBe(true)
  })

  it('shares its places between lanes in proportion to their weights', () => {
    const policy = { ...workerPoolPolicy({ workers: 2 }), weights: { heavy: 3 } }
    const gate = new Gate(policy)
    gate.flood(400, background, 'heavy')
    gate.flood(400, background, 'light')
    const served = { heavy: 0, light: 0 }
    for (let turn = 0; turn < 400; turn++) {
      const [id] = gate.inFlight
      const { call } = [...gate.context.inFlight].find(([key]) => key === id)![1]
      served[call.principal as keyof typeof served] += 1
      gate.leaves(id!)
    }
    expect(Math.abs(served.heavy - 3 * served.light)).toBeLessThanOrEqual(4)
  })

  it('holds a background lane to its cap, and leaves the rest to the others', () => {
    const gate = new Gate(workerPoolPolicy({ workers: 8, laneCap: 2 }))
    expect(gate.flood(10, background, 'codebase')).toBe(2)
    expect(gate.lastReason).toBe('quota')
    expect(gate.flood(10, background, 'documents')).toBe(2)
    expect(gate.flood(10, 'interactive', 'codebase')).toBe(4)
  })

  it('holds two lanes to caps of their own at once, and the lanes that nobody named to a third', () => {
    const workers = 16
    const laneCaps = {
      codebase: bulkLaneCap({ workers, reserved: 2, otherPendingLanes: 4 }),
      upkeep: bestEffortLaneCap(1),
    }
    const gate = new Gate(workerPoolPolicy({ workers, laneCaps, laneCap: 2 }))
    expect(gate.flood(20, background, 'upkeep')).toBe(1)
    expect(gate.lastReason).toBe('quota')
    expect(gate.flood(20, background, 'documents')).toBe(2)
    expect(gate.flood(20, background, 'codebase')).toBe(10)
    expect(gate.lastReason).toBe('quota')
    expect(gate.flood(20, background, 'others')).toBe(2)
    gate.leaves(gate.inFlight[0]!)
    expect(gate.inFlight).toHaveLength(15)
  })

  it('lets background go within worstCaseWaitMs beside interactive work that never ends, lane by lane', () => {
    const policy = workerPoolPolicy({ workers: 2 })
    const gate = new Gate(policy)
    for (let high = 0; high < 4; high++) gate.ask('interactive')
    gate.flood(50, background, 'codebase')
    const low = gate.ask(background, { principal: 'documents' })
    const bound = worstCaseWaitMs(policy, { principals: 2 })
    let waitedMs = 0
    while (!gate.holds(low) && waitedMs <= 2 * bound) {
      gate.passes(1_000)
      waitedMs += 1_000
      for (const id of gate.inFlight) gate.leaves(id)
      while (gate.context.counts.primaryWaiting < 4) gate.ask('interactive')
    }
    expect(waitedMs).toBeLessThanOrEqual(bound + 1_000)
  })
})

describe('the cap of a lane', () => {
  it.each([
    ['what the others leave', { workers: 8, reserved: 1, otherPendingLanes: 2, perLaneMin: 1 }, 5],
    ['at least its own minimum', { workers: 8, reserved: 1, otherPendingLanes: 9, atLeast: 2 }, 2],
    [
      'its minimum only as far as the pool has it',
      { workers: 3, reserved: 1, otherPendingLanes: 9, atLeast: 5 },
      2,
    ],
    ['1 when everything is reserved', { workers: 4, reserved: 4, otherPendingLanes: 3 }, 1],
    ['1 in a pool of one', { workers: 1, reserved: 1, otherPendingLanes: 5, perLaneMin: 3 }, 1],
    ['what the operator says', { workers: 8, explicit: 6 }, 6],
    ['sized by itself when the operator says 0', { workers: 8, explicit: 0 }, 8],
  ])('is %s', (_, cap, expected) => {
    expect(bulkLaneCap(cap)).toBe(expected)
  })

  it.each([
    [0, 1],
    [1, 1],
    [3, 3],
  ])('of best effort with a lane minimum of %i is %i', (perLaneMin, cap) => {
    expect(bestEffortLaneCap(perLaneMin)).toBe(cap)
  })

  it.each([
    [8, undefined, 6],
    [4, undefined, 3],
    [3, undefined, 2],
    [1, undefined, 1],
    [8, 0, 7],
    [8, 99, 1],
  ])('for generating memories with %i workers and floor %s is %i', (workers, floor, expected) => {
    expect(generationWorkers(workers, floor)).toBe(expected)
  })

  it('is never 0, whatever the pool', () => {
    const count = fc.nat({ max: 100 })
    const workers = fc.integer({ min: 1, max: 100 })
    const pool = fc.record({
      workers,
      reserved: count,
      otherPendingLanes: count,
      perLaneMin: count,
      atLeast: count,
    })
    fc.assert(
      fc.property(pool, count, (cap, floor) => {
        expect(bulkLaneCap(cap)).toBeGreaterThanOrEqual(1)
        expect(bestEffortLaneCap(cap.perLaneMin)).toBeGreaterThanOrEqual(1)
        expect(generationWorkers(cap.workers, floor)).toBeGreaterThanOrEqual(1)
        expect(interactiveFloor(cap)).toBeLessThan(cap.workers)
      }),
    )
  })
})

describe('a pool that cannot be', () => {
  it.each([
    ['workerPool.workers', () => workerPoolPolicy({ workers: 0 }), 'an integer in [1, 65536], got 0'],
    ['workerPool.workers', () => workerPoolPolicy({ workers: 1.5 }), 'an integer in [1, 65536], got 1.5'],
    ['workerPool.reserved', () => workerPoolPolicy({ workers: 2, reserved: -1 }), '[0, 65536], got -1'],
    ['workerPool.laneCap', () => workerPoolPolicy({ workers: 2, laneCap: 0 }), '[1, 65536], got 0'],
    [
      'workerPool.laneCaps.codebase',
      () => workerPoolPolicy({ workers: 2, laneCaps: { codebase: 1.5 } }),
      '[1, 65536], got 1.5',
    ],
    ['engineRead.slots', () => engineReadPolicy({ slots: Number.NaN }), '[1, 65536], got NaN'],
    ['engineRead.reserved', () => engineReadPolicy({ slots: 2, reserved: 0.5 }), '[0, 65536], got 0.5'],
  ])('is refused by its %s', (field, make, message) => {
    expect(make).toThrow(InvalidInput)
    expect(make).toThrow(field)
    expect(make).toThrow(message)
  })
})
