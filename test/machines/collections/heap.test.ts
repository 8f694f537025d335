/** A heap of things due at a time: the earliest first, ties by call id, old versions stay. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { add, addAll, type Due, type Heap, rest } from '../../../machines/collections/heap.ts'

const drained = (heap: Heap | null): Due[] => {
  const due: Due[] = []
  for (let left = heap; left !== null; left = rest(left)) due.push(left.due)
  return due
}

const heapOf = (dues: ReadonlyArray<Due>): Heap | null =>
  dues.reduce<Heap | null>((heap, due) => add(heap, due), null)

const inOrder = (one: Due, other: Due): number =>
  one.at - other.at || (one.callId < other.callId ? -1 : one.callId > other.callId ? 1 : 0)

const anyDue = fc.record({ at: fc.nat({ max: 50 }), callId: fc.constantFrom('a', 'b', 'c', 'd') })

/** Leftist: the path to the nearest gap goes right, and is no longer than the logarithm of the size. */
const isLeftist = (heap: Heap | null): boolean => {
  if (heap === null) return true
  const [left, right] = [heap.left?.rank ?? 0, heap.right?.rank ?? 0]
  const size = (heap.left?.size ?? 0) + (heap.right?.size ?? 0) + 1
  return (
    left >= right &&
    heap.rank === right + 1 &&
    heap.size === size &&
    2 ** heap.rank - 1 <= heap.size &&
    isLeftist(heap.left) &&
    isLeftist(heap.right)
  )
}

describe('a heap', () => {
  it.each([
    ['of one', [{ at: 5, callId: 'a' }], ['a']],
    [
      'of several',
      [
        { at: 5, callId: 'a' },
        { at: 3, callId: 'b' },
        { at: 9, callId: 'c' },
      ],
      ['b', 'a', 'c'],
    ],
    [
      'with a tie',
      [
        { at: 5, callId: 'b' },
        { at: 5, callId: 'a' },
      ],
      ['a', 'b'],
    ],
    [
      'with the same thing twice',
      [
        { at: 5, callId: 'a' },
        { at: 5, callId: 'a' },
      ],
      ['a', 'a'],
    ],
  ])('%s gives the earliest first', (_, dues, ids) => {
    expect(drained(heapOf(dues)).map(({ callId }) => callId)).toEqual(ids)
  })

  it('gives what a sorted array gives, and stays balanced', () => {
    fc.assert(
      fc.property(fc.array(anyDue, { maxLength: 100 }), (dues) => {
        const heap = heapOf(dues)
        expect(isLeftist(heap)).toBe(true)
        expect(drained(heap)).toEqual([...dues].sort(inOrder))
      }),
    )
  })

  it('takes many at once as it takes them one by one, and stays balanced', () => {
    fc.assert(
      fc.property(
        fc.array(anyDue, { maxLength: 50 }),
        fc.array(anyDue, { maxLength: 100 }),
        (before, dues) => {
          const heap = addAll(heapOf(before), dues)
          expect(isLeftist(heap)).toBe(true)
          expect(drained(heap)).toEqual([...before, ...dues].sort(inOrder))
        },
      ),
    )
  })

  it('stays balanced while things come and go', () => {
    fc.assert(
      fc.property(fc.array(fc.option(anyDue), { maxLength: 100 }), (moves) => {
        let heap: Heap | null = null
        const model: Due[] = []
        for (const due of moves) {
          if (due === null) {
            if (heap !== null) heap = rest(heap)
            model.sort(inOrder).shift()
          } else {
            heap = add(heap, due)
            model.push(due)
          }
          expect(isLeftist(heap)).toBe(true)
        }
        expect(drained(heap)).toEqual(model.sort(inOrder))
      }),
    )
  })

  it('is never changed by what is made of it', () => {
    fc.assert(
      fc.property(fc.array(anyDue, { minLength: 1 }), anyDue, (dues, due) => {
        const heap = heapOf(dues) as Heap
        add(heap, due)
        rest(heap)
        expect(drained(heap)).toEqual([...dues].sort(inOrder))
      }),
    )
  })
})
