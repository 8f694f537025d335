import { describe, expect, it, onTestFinished } from 'vitest'
import { withPriority } from '../../src/carrier/with-priority.ts'
import { mapConcurrent } from '../../src/fan-out/map-concurrent.ts'
import { type LaneScope, openHost, poolPolicy } from '../../src/index.ts'
import { calls, openPool, turn, until } from './fixture.ts'

describe('mapConcurrent within mapConcurrent', () => {
  it('does not deadlock at full width, two levels down', async () => {
    const scope = await openPool({ capacity: 2 })
    const options = { scope, width: 2 }
    const two = [0, 1]
    const results = await mapConcurrent(
      two,
      (one) =>
        mapConcurrent(
          two,
          (other) => mapConcurrent(two, (third) => turn().then(() => one * 4 + other * 2 + third), options),
          options,
        ),
      options,
    )
    expect(results.flat(2)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(scope.status.counters.dependencyGrants).toBeGreaterThan(0)
    expect(calls(scope)).toBe(0)
  })

  it('does not deadlock in the background either, with an interactive call beside it', async () => {
    const scope = await openPool({ capacity: 2, reserve: 1 })
    const options = { scope, width: 4 }
    const flood = withPriority('background_ingestion', () =>
      mapConcurrent([1, 2, 3], () => mapConcurrent([1, 2, 3], () => turn(), options), options),
    )
    const answer = await withPriority('interactive', () => scope.run({}, async () => 'answered'))
    expect(answer).toBe('answered')
    expect(await flood).toHaveLength(3)
  })

  it('does not deadlock when another scope lies between', async () => {
    const host = await openHost()
    onTestFinished(() => host.close())
    const [provider, tools] = ['provider', 'tools'].map((name) =>
      host.scope(name, { ...poolPolicy, capacity: 1 }),
    ) as [LaneScope, LaneScope]
    let answer: unknown = 'none'
    provider
      .run({}, () => tools.run({}, () => provider.run({}, async () => 'nested')))
      .then(
        (nested) => {
          answer = nested
        },
        () => {},
      )
    await until(() => answer !== 'none', 1_000)
    expect(answer).toBe('nested')
  })

  it('fails as a whole when the innermost fails', async () => {
    const scope = await openPool({ capacity: 2 })
    const options = { scope, width: 2 }
    const all = mapConcurrent(
      [1, 2],
      () => mapConcurrent([1, 2], (item) => (item === 2 ? Promise.reject(new Error('deep')) : item), options),
      options,
    )
    await expect(all).rejects.toThrow('deep')
    expect(calls(scope)).toBe(0)
  })
})
