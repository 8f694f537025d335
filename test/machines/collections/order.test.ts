/** Names in the order of their tags, against a plain sorted list; and balanced, so that every step is O(log n). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ascending,
  least,
  type Order,
  put,
  type Standing,
  sizeOf,
  take,
} from '../../../machines/collections/order.ts'

const byTag = (one: Standing, other: Standing): number =>
  one.tag - other.tag || one.place - other.place || (one.name < other.name ? -1 : 1)

const isSame = (one: Standing, other: Standing): boolean =>
  one.tag === other.tag && one.place === other.place && one.name === other.name

const depthOf = (order: Order): number =>
  order === null ? 0 : 1 + Math.max(depthOf(order.before), depthOf(order.after))

/** Neither side of any node is more than three times as heavy as the other, but for the smallest. */
const isBalanced = (order: Order): boolean => {
  if (order === null) return true
  const [before, after] = [sizeOf(order.before), sizeOf(order.after)]
  const even = before + after < 2 || (before <= 3 * after && after <= 3 * before)
  return even && order.size === before + after + 1 && isBalanced(order.before) && isBalanced(order.after)
}

const agrees = (order: Order, plain: ReadonlyArray<Standing>): void => {
  expect([...ascending(order)]).toEqual(plain)
  expect(least(order)).toEqual(plain[0])
  expect(sizeOf(order)).toBe(plain.length)
  expect(isBalanced(order)).toBe(true)
}

describe('an order', () => {
  it('is a sorted list, whatever is put in and taken out; the order before stays as it was', () => {
    const step = fc.record({
      puts: fc.boolean(),
      tag: fc.integer({ min: -3, max: 12 }),
      place: fc.nat(2),
      name: fc.constantFrom('a', 'b'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        let [order, plain]: [Order, Standing[]] = [null, []]
        for (const { puts, ...standing } of steps) {
          const [before, was] = [order, plain]
          const known = plain.some((one) => isSame(one, standing))
          if (puts && !known) {
            order = put(order, standing)
            plain = [...plain, standing].sort(byTag)
          } else if (!puts) {
            order = take(order, standing)
            plain = plain.filter((one) => !isSame(one, standing))
            if (!known) expect(order).toBe(before)
          }
          agrees(order, plain)
          agrees(before, was)
        }
      }),
    )
  })

  it.each([
    ['ascending', (index: number) => index],
    ['descending', (index: number) => -index],
    ['from both ends', (index: number) => (index % 2 === 0 ? index : -index)],
  ])('is no deeper than a few logarithms when names come %s, and again when most have left', (_, tagOf) => {
    const standing = (index: number): Standing => ({ tag: tagOf(index), place: index, name: `n${index}` })
    let order: Order = null
    for (let index = 0; index < 4_096; index += 1) order = put(order, standing(index))
    expect(depthOf(order)).toBeLessThanOrEqual(2.5 * 12)
    for (let index = 0; index < 4_000; index += 1) order = take(order, standing(index))
    expect(depthOf(order)).toBeLessThanOrEqual(2.5 * 7)
    expect(isBalanced(order)).toBe(true)
  })
})
