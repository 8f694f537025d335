import { describe, expect, it } from 'vitest'
import { mapConcurrent } from '../../src/fan-out/map-concurrent.ts'
import type { LaneScope } from '../../src/index.ts'
import { calls, inFlight, openPool, until, untilAborted } from './fixture.ts'

describe('a failure in mapConcurrent', () => {
  it('is raised again, aborts running items, withdraws waiting ones, and waits for them', async () => {
    const scope = await openPool({ capacity: 3 })
    const story: Array<string> = []
    const failure = new Error('item 1 is bad')
    const all = mapConcurrent(
      [0, 1, 2, 3, 4, 5],
      async (item, permit) => {
        story.push(`${item} runs`)
        if (item !== 1) return untilAborted(permit, () => story.push(`${item} ended`))
        await until(() => calls(scope) === 5)
        throw failure
      },
      { scope, width: 5 },
    )
    const raised = await all.catch((error: unknown) => error)
    expect(raised).toBe(failure)
    expect(story.sort()).toEqual(['0 ended', '0 runs', '1 runs', '2 ended', '2 runs'])
    expect(calls(scope)).toBe(0)
    expect(scope.status.counters.submitted).toBe(5)
  })

  it('is raised even when it is undefined', async () => {
    const scope = await openPool({ capacity: 1 })
    const raised = mapConcurrent([1], () => Promise.reject(undefined), { scope, width: 1 })
    await expect(raised.then(() => 'done')).rejects.toBe(undefined)
  })

  it('ends a generator and does not wait for an item that never comes', async () => {
    const scope = await openPool({ capacity: 2 })
    let returned = false
    const endless: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => {
        let count = 0
        return {
          next: () =>
            count++ === 0 ? Promise.resolve({ done: false, value: 1 }) : new Promise<never>(() => {}),
          return: () => {
            returned = true
            return new Promise<never>(() => {})
          },
        }
      },
    }
    const all = mapConcurrent(endless, () => Promise.reject(new Error('bad')), { scope, width: 2 })
    await expect(all).rejects.toThrow('bad')
    expect(returned).toBe(true)
  })

  it('may come from the iterable, or from the description of a call', async () => {
    const scope = await openPool({ capacity: 2 })
    const items = (function* () {
      yield 1
      throw new Error('no more')
    })()
    await expect(
      mapConcurrent(items, (_, permit) => untilAborted(permit, () => {}), { scope, width: 2 }),
    ).rejects.toThrow('no more')
    const call = () => ({ inputTokens: -1 })
    await expect(mapConcurrent([1], () => 1, { scope, width: 2, call })).rejects.toThrow('call.inputTokens')
    expect(calls(scope)).toBe(0)
  })

  it('is collected with the results when asked to', async () => {
    const scope = await openPool({ capacity: 2 })
    const results = await mapConcurrent(
      [1, 2, 3],
      (item) => (item === 2 ? Promise.reject(new Error('two')) : item),
      { scope, width: 2, collect: true },
    )
    expect(results).toEqual([
      { status: 'fulfilled', value: 1 },
      { status: 'rejected', reason: new Error('two') },
      { status: 'fulfilled', value: 3 },
    ])
  })

  it.each([false, true])("is the caller's own signal, with collect %s", async (collect) => {
    const scope = await openPool({ capacity: 1 })
    const controller = new AbortController()
    let ended = 0
    const all = mapConcurrent([1, 2, 3], (_, permit) => untilAborted(permit, () => ended++), {
      scope,
      width: 2,
      signal: controller.signal,
      ...(collect ? { collect } : {}),
    } as { scope: LaneScope; width: number })
    await until(() => inFlight(scope) === 1 && calls(scope) === 2)
    controller.abort(new Error('enough'))
    await expect(all).rejects.toThrow('enough')
    expect({ ended, left: calls(scope) }).toEqual({ ended: 1, left: 0 })
    await expect(mapConcurrent([1], () => 1, { scope, width: 2, signal: controller.signal })).rejects.toThrow(
      'enough',
    )
  })

  it("leaves no listener on the caller's signal", async () => {
    const scope = await openPool({ capacity: 2 })
    const { signal } = new AbortController()
    const counts = { added: 0, removed: 0 }
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      counts.added += 1
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      counts.removed += 1
      removeEventListener.apply(signal, args)
    }
    await mapConcurrent([1, 2, 3], () => 1, { scope, width: 2, signal })
    expect(counts).toEqual({ added: 1, removed: 1 })
  })
})
