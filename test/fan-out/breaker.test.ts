/** A circuit breaker in front of a fan-out: it is asked before the gate, and told how each call ended. */
import { describe, expect, it } from 'vitest'
import { mapConcurrent } from '../../src/fan-out/map-concurrent.ts'
import { type Breaker, BreakerOpen } from '../../src/index.ts'
import { calls, openPool, turn, turns } from './fixture.ts'

/** The textbook's three states: closed, open after one failure, half-open when it is told that its time has come. */
class ThreeStates implements Breaker {
  state: 'closed' | 'open' | 'half-open' | 'trying'
  constructor(state: 'closed' | 'open' | 'half-open') {
    this.state = state
  }
  allows = (): boolean => {
    if (this.state === 'half-open') {
      this.state = 'trying'
      return true
    }
    return this.state === 'closed'
  }
  succeeded = (): void => {
    this.state = 'closed'
  }
  failed = (): void => {
    this.state = 'open'
  }
}

const statuses = (results: ReadonlyArray<PromiseSettledResult<unknown>>) =>
  results.map(({ status }) => status)

describe('a breaker', () => {
  it('that is open refuses every item, and no permit is asked for', async () => {
    const scope = await openPool({ capacity: 4 })
    const breaker = new ThreeStates('open')
    const run = (collect: boolean) =>
      mapConcurrent([1, 2, 3], () => 'never', { scope, width: 2, breaker, collect: collect as true })
    expect(statuses(await run(true))).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(run(false)).rejects.toThrow(BreakerOpen)
    await expect(run(false)).rejects.toThrow('item 0 was not tried: the circuit breaker is open')
    expect(scope.status.counters.submitted).toBe(0)
  })

  it('that is half-open lets one through, and the rest when that one has succeeded', async () => {
    const scope = await openPool({ capacity: 8 })
    const breaker = new ThreeStates('half-open')
    let tried = 0
    let atOnce = 0
    const first = await mapConcurrent(
      ['a', 'b', 'c'],
      async () => {
        tried += 1
        atOnce = Math.max(atOnce, calls(scope))
        await turns(4)
      },
      { scope, width: 3, breaker, collect: true },
    )
    expect([tried, atOnce, statuses(first)]).toEqual([1, 1, ['fulfilled', 'rejected', 'rejected']])
    const next = await mapConcurrent(['a', 'b', 'c'], turn, { scope, width: 3, breaker, collect: true })
    expect(statuses(next)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
  })

  it('whose trial fails is open again, and asks for no permit any more', async () => {
    const scope = await openPool({ capacity: 8 })
    const breaker = new ThreeStates('half-open')
    const fail = (): Promise<void> => Promise.reject(new Error('down'))
    const results = await mapConcurrent(['a', 'b', 'c'], fail, { scope, width: 1, breaker, collect: true })
    expect(statuses(results)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(scope.status.counters.submitted).toBe(1)
    expect(breaker.state).toBe('open')
  })

  it('is asked first, then the gate, then the function, and is told how it ended', async () => {
    const pool = await openPool({ capacity: 1 })
    const story: string[] = []
    const breaker: Breaker = {
      allows: () => {
        story.push(`breaker, ${pool.status.counters.submitted} asked`)
        return true
      },
      succeeded: () => void story.push('succeeded'),
      failed: (error) => void story.push(`failed: ${(error as Error).message}`),
    }
    const scope: Pick<typeof pool, 'run'> = {
      run: (request, fn) => {
        story.push('gate')
        return pool.run(request, fn)
      },
    }
    await mapConcurrent(
      ['good', 'bad'],
      async (item) => {
        story.push(item)
        if (item === 'bad') throw new Error('broken')
      },
      { scope, width: 1, breaker, collect: true },
    )
    expect(story).toEqual([
      ...['breaker, 0 asked', 'gate', 'good', 'succeeded'],
      ...['breaker, 1 asked', 'gate', 'bad', 'failed: broken'],
    ])
  })
})
