import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { currentPriority, withPriority } from '../../src/carrier/with-priority.ts'
import { mapConcurrent } from '../../src/fan-out/map-concurrent.ts'
import { InvalidInput, type LaneScope, type Permit } from '../../src/index.ts'
import { runs } from '../properties/runs.ts'
import { calls, openPool, turn, turns } from './fixture.ts'

describe('mapConcurrent', () => {
  it('answers in the order of the items, whichever ends first', async () => {
    const scope = await openPool({ capacity: 8 })
    const delays = [5, 3, 1, 4, 2]
    const results = await mapConcurrent(
      delays,
      async (delay, _, index) => {
        await turns(delay)
        return [index, delay]
      },
      { scope, width: 5 },
    )
    expect(results).toEqual(delays.map((delay, index) => [index, delay]))
  })

  it('answers nothing for nothing', async () => {
    const scope = await openPool({ capacity: 2 })
    expect(await mapConcurrent([], () => 1, { scope, width: 4 })).toEqual([])
    expect(await mapConcurrent((async function* () {})(), () => 1, { scope, width: 4 })).toEqual([])
    expect(scope.status.counters.submitted).toBe(0)
  })

  it.each([
    { name: 'width 1', width: 1, capacity: 8 },
    { name: 'capacity 1', width: 8, capacity: 1 },
  ])('runs one after the other at $name', async ({ width, capacity }) => {
    const scope = await openPool({ capacity })
    const story: Array<string> = []
    await mapConcurrent(
      ['a', 'b', 'c'],
      async (item) => {
        story.push(`${item} begins`)
        await turns(2)
        story.push(`${item} ends`)
      },
      { scope, width },
    )
    expect(story).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  it.each([
    ['an array', [1, 2, 3] as Iterable<number>],
    [
      'a generator',
      (function* () {
        yield* [1, 2, 3]
      })(),
    ],
    [
      'an async generator',
      (async function* () {
        for (const item of [1, 2, 3]) {
          await turn()
          yield item
        }
      })(),
    ],
    ['a Set', new Set([1, 2, 3])],
  ] as ReadonlyArray<[string, Iterable<number> | AsyncIterable<number>]>)('takes %s', async (_, items) => {
    const scope = await openPool({ capacity: 2 })
    expect(await mapConcurrent(items, (item) => item * 2, { scope, width: 2 })).toEqual([2, 4, 6])
  })

  it('captures the class once, whatever the items or the functions do to it', async () => {
    const scope = await openPool({ capacity: 4 })
    const items = (function* () {
      for (let item = 0; item < 4; item++) yield withPriority('interactive', () => item)
    })()
    const seen = await withPriority('background_ingestion', () =>
      mapConcurrent(
        items,
        () => withPriority(null, () => turn().then(() => scope.status.auxiliary.inFlight)),
        {
          scope,
          width: 2,
        },
      ),
    )
    expect(seen.every((count) => count > 0)).toBe(true)
    const classes = await withPriority('hydration', () =>
      mapConcurrent([1, 2], async () => currentPriority(), { scope, width: 2 }),
    )
    expect(classes).toEqual(['hydration', 'hydration'])
  })

  it('lets an item state its own class, lane and principal', async () => {
    const scope = await openPool({ capacity: 4 })
    const classes = await mapConcurrent(['a', 'b'], async () => currentPriority(), {
      scope,
      width: 2,
      lane: 'auxiliary',
      call: (principal) => (principal === 'a' ? { principal } : { principal, priorityClass: 'hydration' }),
    })
    expect(classes).toEqual(['background_ingestion', 'hydration'])
  })

  it('takes the width before the permit: the scope never knows of more calls than the width', async () => {
    const scope = await openPool({ capacity: 8 })
    let most = 0
    await mapConcurrent(
      Array.from({ length: 40 }, (_, item) => item),
      async () => {
        most = Math.max(most, calls(scope))
        await turn()
      },
      { scope, width: 3 },
    )
    expect(most).toBe(3)
  })

  it.each([0, -1, 1.5, Number.NaN, 65_537])('refuses width %s, with the range', async (width) => {
    const scope = await openPool({ capacity: 1 })
    const refusal = mapConcurrent([1], () => 1, { scope, width })
    await expect(refusal).rejects.toBeInstanceOf(InvalidInput)
    await expect(refusal).rejects.toThrow(
      `mapConcurrent.width: expected an integer in [1, 65536], got ${width}`,
    )
  })
})

describe('mapConcurrent, whatever the load', () => {
  it('keeps the order, the width and the capacity, and ends every item', async () => {
    const story = fc.record({
      width: fc.integer({ min: 1, max: 6 }),
      capacity: fc.integer({ min: 1, max: 6 }),
      items: fc.array(fc.record({ turns: fc.nat({ max: 3 }), fails: fc.boolean() }), { maxLength: 20 }),
    })
    await fc.assert(
      fc.asyncProperty(story, async ({ width, capacity, items }) => {
        const scope = await openPool({ capacity })
        let running = 0
        let peak = 0
        const results = await mapConcurrent(
          items,
          async (item, _, index) => {
            peak = Math.max(peak, ++running)
            await turns(item.turns)
            running -= 1
            if (item.fails) throw index
            return index
          },
          { scope, width, collect: true },
        )
        expect(peak).toBeLessThanOrEqual(Math.min(width, capacity))
        expect(results).toEqual(
          items.map(({ fails }, index) =>
            fails ? { status: 'rejected', reason: index } : { status: 'fulfilled', value: index },
          ),
        )
        expect(calls(scope)).toBe(0)
      }),
      { numRuns: runs(60) },
    )
  })

  it('holds no more than the width of 100,000 items at once', async () => {
    let pulled = 0
    let ended = 0
    let most = 0
    const items = (function* () {
      for (let item = 0; item < 100_000; item++) {
        pulled += 1
        most = Math.max(most, pulled - ended)
        yield item
      }
    })()
    const scope: Pick<LaneScope, 'run'> = { run: async (_, fn) => await fn({} as Permit) }
    const results = await mapConcurrent(
      items,
      (item) => {
        ended += 1
        return item
      },
      { scope, width: 16 },
    )
    expect(results).toHaveLength(100_000)
    expect(results.every((item, index) => item === index)).toBe(true)
    expect(most).toBeLessThanOrEqual(2 * 16)
  })
})
