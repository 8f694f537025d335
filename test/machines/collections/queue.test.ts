/** A queue is an array that costs nothing to keep: the same values in the same order, and old versions stay. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  empty,
  fromArray,
  insert,
  peek,
  pop,
  push,
  type Queue,
  toArray,
} from '../../../machines/collections/queue.ts'

type Move = { readonly do: 'push' | 'insert'; readonly value: number } | { readonly do: 'pop' }

const anyMove: fc.Arbitrary<Move> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('push' as const), value: fc.nat({ max: 1_000 }) }) },
  { weight: 2, arbitrary: fc.constant({ do: 'pop' as const }) },
)

const self = (value: number): number => value

const moved = (queue: Queue<number>, move: Move): Queue<number> =>
  move.do === 'pop'
    ? pop(queue)
    : move.do === 'push'
      ? push(queue, move.value)
      : insert(queue, move.value, self)

describe('a queue', () => {
  const pushed = (...values: number[]): Queue<number> => values.reduce(push<number>, empty<number>())

  it.each<[string, () => Queue<number>, number[]]>([
    ['empty', () => empty(), []],
    ['of one', () => pushed(7), [7]],
    ['of many, in order of coming', () => fromArray([3, 1, 2]), [3, 1, 2]],
    ['whose first left', () => pop(fromArray([3, 1, 2])), [1, 2]],
    ['whose last left', () => pop(pushed(7)), []],
    ['emptied again and again', () => pop(pop(fromArray([1]))), []],
    ['into whose front one came back', () => insert(fromArray([2, 3]), 1, self), [1, 2, 3]],
    ['into whose middle one came back', () => insert(fromArray([1, 3]), 2, self), [1, 2, 3]],
    ['into whose end one came back', () => insert(fromArray([1, 2]), 3, self), [1, 2, 3]],
    ['into whose front one came back before newer ones', () => insert(pushed(2, 3), 1, self), [1, 2, 3]],
    ['into whose newer half one came back', () => insert(pushed(1, 2, 4), 3, self), [1, 2, 3, 4]],
    ['behind whose newer half one came back', () => insert(pushed(1, 2, 3), 4, self), [1, 2, 3, 4]],
    [
      'to which one came back that was never taken out',
      () => insert(fromArray([1, 2, 3]), 2, self),
      [1, 2, 3],
    ],
    ['whose newer half still holds what came back', () => insert(pushed(1, 2, 3), 3, self), [1, 2, 3]],
    ['that was empty when one came back', () => insert(empty<number>(), 1, self), [1]],
  ])('%s', (_, queueOf, values) => {
    const queue = queueOf()
    expect(toArray(queue)).toEqual(values)
    expect(queue.size).toBe(values.length)
    expect(peek(queue)).toBe(values[0])
  })

  it('holds what an array holds, whatever comes and goes', () => {
    fc.assert(
      fc.property(fc.array(anyMove, { maxLength: 80 }), (moves) => {
        let queue = empty<number>()
        const model: number[] = []
        for (const move of moves) {
          queue = moved(queue, move)
          if (move.do === 'pop') model.shift()
          else model.push(move.value)
          expect(queue.size).toBe(model.length)
          expect(peek(queue)).toBe(model[0])
          expect(toArray(queue)).toEqual(model)
        }
      }),
    )
  })

  it('that is in order stays in order when one comes back to its place', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat({ max: 500 }), { minLength: 1, maxLength: 30 }),
        fc.nat({ max: 500 }),
        fc.nat({ max: 3 }),
        (values, value, gone) => {
          const sorted = values.filter((one) => one !== value).sort((one, other) => one - other)
          let queue = sorted.reduce(push<number>, empty<number>())
          for (let index = 0; index < gone; index += 1) queue = pop(queue)
          const rest = sorted.slice(gone)
          const model = [...rest, value].sort((one, other) => one - other)
          const back = insert(queue, value, self)
          expect(toArray(back)).toEqual(model)
          expect(back.size).toBe(model.length)
        },
      ),
    )
  })

  it('is never changed by what is made of it', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.array(anyMove, { maxLength: 20 }), (values, moves) => {
        const queue = values.reduce(push<number>, empty<number>())
        moves.reduce(moved, queue)
        insert(queue, 5, self)
        expect(toArray(queue)).toEqual(values)
        expect(queue.size).toBe(values.length)
      }),
    )
  })

  it('keeps no more in memory than its values: after a million comings and goings it is small', () => {
    let queue = fromArray([0, 1, 2])
    for (let value = 3; value < 100_000; value += 1) queue = pop(push(queue, value))
    expect(JSON.stringify(queue).length).toBeLessThan(400)
  })
})
