/** A broken invariant stops its scope, and no other. */
import { expect, it } from 'vitest'
import { InvalidInput, InvariantBroken, type Usage } from '../../machines/index.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'

it('a scope that breaks one fails every call with it, and the other scopes run on', async () => {
  await using host = await openHost()
  const [bad, good] = [host.scope('bad', { capacity: 1 }), host.scope('good', { capacity: 1 })]
  const stopped: Array<readonly [string, unknown]> = []
  const stopHearing = kernelOf(host).whenScopeFails((scope, cause) => stopped.push([scope, cause]))
  const held = await bad.admit({ id: 'held' })
  const waits = bad.admit({ id: 'waits' }).catch((error: unknown) => error)
  Object.assign(kernelOf(host).runners.get('bad')!.context.counts, { primaryWaiting: 7 })
  const next = bad.admit({ id: 'next' }).catch((error: unknown) => error)

  for (const [error, callId] of [
    [await waits, 'waits'],
    [await next, 'next'],
    [await bad.admit({ id: 'later' }).catch((thrown: unknown) => thrown), 'later'],
  ] as const) {
    expect(error).toMatchObject({ _tag: 'ScopeFailed', scope: 'bad', callId })
    const { cause } = error as { readonly cause: InvariantBroken }
    expect(cause).toBeInstanceOf(InvariantBroken)
    expect(cause).toMatchObject({ invariant: 'I3', scope: 'bad', event: 'call.submitted' })
    expect(cause.message).toContain('2 calls wait')
  }
  expect(stopped).toEqual([['bad', expect.any(InvariantBroken)]])
  stopHearing()
  // Work that runs is left alone.
  expect(held.signal.aborted).toBe(false)
  held.settle({ outcome: 'completed' })

  expect(await good.run({ id: 'other' }, async () => 'done')).toBe('done')
  expect(good.status.counters.completed).toBe(1)
})

it.each<[string, Usage, string]>([
  ['no number', { inputTokens: Number.NaN, outputTokens: null }, 'settlement.usage.inputTokens'],
  ['below 0', { inputTokens: null, outputTokens: -1 }, 'settlement.usage.outputTokens'],
])(
  'a usage that is %s is refused to its holder; the permit stays, and is settled after all',
  async (_, usage, field) => {
    await using host = await openHost()
    const scope = host.scope('worker-pool', { capacity: 1 })
    const permit = await scope.admit({ id: 'c' })
    const before = kernelOf(host).runners.get('worker-pool')!.position
    expect(() => permit.settle({ outcome: 'completed', usage })).toThrow(InvalidInput)
    expect(() => permit.settle({ outcome: 'completed', usage })).toThrow(field)
    expect(kernelOf(host).runners.get('worker-pool')!.position).toBe(before)
    expect([permit.settled, scope.status.primary.inFlight]).toEqual([false, 1])
    expect(permit.settle({ outcome: 'completed' })).toBe('ended')
    expect(scope.status.counters.completed).toBe(1)
  },
)

it('headers that show no number are corrected and counted, and decide nothing a second time', async () => {
  await using host = await openHost()
  const scope = host.scope('worker-pool', { capacity: 1 })
  const seen: string[] = []
  const permit = await scope.admit({ id: 'c' })
  kernelOf(host).observe(({ event }) => seen.push(event.type))
  const reading = {
    dimension: 'requests-per-minute',
    limit: Number.NaN,
    remaining: 1,
    resetAtMs: null,
  } as const
  scope.learn([reading])
  scope.learn([{ ...reading, dimension: 'none' as never }])
  await expect.poll(() => seen).toEqual(['provider.evidence'])
  expect(kernelOf(host).runners.get('worker-pool')!.correctedValues).toBe(2)
  expect(scope.status.primary.inFlight).toBe(1)
  permit.settle({ outcome: 'completed' })
})
