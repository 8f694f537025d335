/** Names take turns, and may leave before theirs comes. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  backTo,
  emptyRing,
  first,
  leave,
  names,
  peek,
  placeOf,
  push,
  type Ring,
  readBack,
  written,
} from '../../../machines/collections/ring.ts'
import { anyMove, anyPolicy, Drive } from '../../properties/scope-drive.ts'

const fromNames = (list: ReadonlyArray<string>): Ring => list.reduce(push, emptyRing)

/** Without whose turn it is. */
const pop = (ring: Ring): Ring => leave(ring, peek(ring) as string)

const agrees = (ring: Ring, plain: ReadonlyArray<string>): void => {
  expect([...names(ring)]).toEqual(plain)
  expect(ring.size).toBe(plain.length)
  expect(peek(ring)).toBe(plain[0])
  for (const count of [0, 1, 2, 5]) expect(first(ring, count)).toEqual(plain.slice(0, count))
}

describe('a ring', () => {
  it('is empty at first', () => {
    agrees(emptyRing, [])
    expect(placeOf(emptyRing, 'a')).toBeNull()
  })

  it('lets a name come back to the place that it had, wherever it stands now', () => {
    const ring = fromNames(['a', 'b', 'c'])
    const place = placeOf(ring, 'a') as number
    agrees(backTo(push(pop(ring), 'a'), 'a', place), ['a', 'b', 'c'])
    agrees(backTo(pop(ring), 'a', place), ['a', 'b', 'c'])
    const bothLeft = pop(pop(ring))
    agrees(backTo(backTo(bothLeft, 'b', 1), 'a', 0), ['a', 'b', 'c'])
    agrees(backTo(backTo(bothLeft, 'a', 0), 'b', 1), ['a', 'b', 'c'])
  })

  it('lets a name that left come back behind all others', () => {
    const ring = push(leave(fromNames(['a', 'b', 'c']), 'b'), 'b')
    agrees(ring, ['a', 'c', 'b'])
    agrees(pop(ring), ['c', 'b'])
    agrees(leave(ring, 'b'), ['a', 'c'])
    agrees(pop(pop(leave(ring, 'c'))), [])
  })

  it('drops a name that left twice before its turn came, and knows nothing of it any more', () => {
    let ring = fromNames(['first', 'twice', 'last'])
    for (let time = 0; time < 2; time += 1) ring = push(leave(ring, 'twice'), 'twice')
    const gone = pop(leave(ring, 'twice'))
    agrees(gone, ['last'])
    const behind = pop(pop(leave(ring, 'twice')))
    agrees(behind, [])
    expect([HashMap.size(gone.places), HashMap.size(behind.places), behind.order.size]).toEqual([1, 0, 0])
  })

  it('is what a list would be, whatever was done to it; the ring before stays as it was', () => {
    const steps = fc.array(
      fc.record({ act: fc.constantFrom('push', 'pop', 'rotate', 'leave', 'write'), at: fc.nat(9) }),
      {
        maxLength: 80,
      },
    )
    fc.assert(
      fc.property(steps, (done) => {
        let [ring, plain]: [Ring, ReadonlyArray<string>] = [emptyRing, []]
        for (const { act, at } of done) {
          const [before, was] = [ring, plain]
          const name = `${at}`
          if (act === 'push' && !plain.includes(name)) [ring, plain] = [push(ring, name), [...plain, name]]
          else if (act === 'write') ring = readBack(written(ring), ring.nextPlace)
          else if (act === 'pop' && plain.length > 0) [ring, plain] = [pop(ring), plain.slice(1)]
          else if (act === 'leave' && plain.includes(name))
            [ring, plain] = [leave(ring, name), plain.filter((other) => other !== name)]
          else if (act === 'rotate' && plain.length > 0)
            [ring, plain] = [push(pop(ring), plain[0]!), [...plain.slice(1), plain[0]!]]
          agrees(ring, plain)
          agrees(before, was)
        }
      }),
    )
  })

  it('looks at nobody else when a name leaves in the middle, and does not grow with those that left', () => {
    const many = fromNames(Array.from({ length: 10_000 }, (_, index) => `n${index}`))
    expect(leave(many, 'n5000').order).toBe(many.order)
    const hundred = fromNames(Array.from({ length: 100 }, (_, index) => `n${index}`))
    let fewer = hundred
    for (let index = 1; index <= 40; index += 1) fewer = leave(fewer, `n${index}`)
    expect(fewer.order).toBe(hundred.order)
    let ring = fromNames(['stays'])
    for (let count = 0; count < 10_000; count += 1) ring = leave(push(ring, 'passes'), 'passes')
    expect(ring.order.size).toBeLessThan(100)
    agrees(ring, ['stays'])
  })

  it('holds exactly the principals that have a backlog and are below their quota, at every moment of any history', () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(anyMove, { maxLength: 60 }), (policy, moves) => {
        const drive = new Drive(policy)
        for (const move of moves) {
          drive.move(move)
          const { ring, parked, principals, policy: now } = drive.context
          const backlogged = HashMap.toEntries(principals).filter(([, { waiting }]) => waiting > 0)
          const able = backlogged.filter(([, { inFlight }]) => inFlight < (now.principalQuota ?? Infinity))
          expect([...names(ring)].sort()).toEqual(able.map(([name]) => name).sort())
          expect(parked).toBe(backlogged.length - able.length)
        }
      }),
    )
  })
})
