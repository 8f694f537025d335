/** The stored limits of a server that sheds: bounded, in one order, and no more than a restart needs. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import {
  departed,
  emptyQos,
  encodeQos,
  entered,
  exempted,
  type QosState,
  restoreQos,
} from '../../../machines/limits/shed-limits.ts'
import { callOf, ingest, limitsFor } from '../scheduling/shedding.ts'

describe('what is kept of the limits', () => {
  const limits = limitsFor(64)
  const stateOf = (...calls: ReadonlyArray<readonly [string, number]>): QosState =>
    calls.reduce((state, [id, atMs]) => entered(state, limits, callOf(ingest, id), atMs), emptyQos)

  it('holds no principal that has nothing live', () => {
    const state = departed(stateOf(['a', 0], ['b', 0]), callOf(ingest, 'a'))
    expect([...HashMap.entries(state.byPrincipal)]).toEqual([['b', 1]])
  })

  it('is written with the buckets that are not full, in one order for any order of arrival', () => {
    const fullAtMs = [
      [`${ingest} a`, 1_000 / 64],
      [`${ingest} b`, 1_000 / 64],
      [`${ingest} c`, 1_000 / 64],
    ]
    const names = ['a', 'b', 'c']
    for (const order of [names, names.toReversed(), ['b', 'c', 'a']]) {
      const state = order.reduce(
        (before, id) => exempted(before, callOf('interactive', id)),
        stateOf(...order.map((id) => [id, 0] as const)),
      )
      expect(encodeQos(state, 0)).toEqual({ fullAtMs, exempt: names })
      expect(encodeQos(state, 1_000 / 64).fullAtMs).toEqual([])
    }
  })

  it('comes back with the live calls, of which exempt ones do not count', () => {
    const [a, b] = [callOf(ingest, 'a'), callOf(ingest, 'b')]
    const state = exempted(stateOf(['a', 0]), b)
    const written = encodeQos(state, 0)
    const restored = restoreQos(written, [a, b])
    expect(restored.total).toBe(1)
    expect(encodeQos(restored, 0)).toEqual(written)
  })

  it('is a full bucket for everybody, where nothing was written', () => {
    const restored = restoreQos(null, [callOf(ingest, 'a'), callOf(ingest, 'b')])
    expect(restored.total).toBe(2)
    expect(encodeQos(restored, 0)).toEqual({ fullAtMs: [], exempt: [] })
  })

  it('is looked through again when twice as many buckets are open, and 1,024 at the least', () => {
    const names = Array.from({ length: 1_025 }, (_, index) => `p${index}`)
    const crowded = stateOf(...names.map((id) => [id, 0] as const))
    expect([HashMap.size(crowded.fullAtMs), crowded.sweepAbove]).toEqual([1_025, 2_050])
    const more = Array.from({ length: 1_026 }, (_, index) => callOf(ingest, `q${index}`))
    const alone = more.reduce((state, call, index) => entered(state, limits, call, 20 * (index + 1)), crowded)
    expect([HashMap.size(alone.fullAtMs), alone.sweepAbove]).toEqual([1, 1_024])
  })

  it('no bucket of a principal that went away is kept: ten thousand short visitors are forgotten', () => {
    let state = emptyQos
    let most = 0
    for (let index = 0; index < 10_000; index += 1) {
      const call = callOf(ingest, `p${index}`)
      state = departed(entered(state, limitsFor(64), call, index * 20), call)
      most = Math.max(most, HashMap.size(state.fullAtMs))
    }
    expect(most).toBe(1_024)
  })
})
