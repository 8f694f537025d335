/** Which auxiliaries warm a ceiling up: minutes are packed, and nobody loses a place by it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { adaptivePolicy } from '../../machines/index.ts'
import { first, fromArray, push, remove, toArray } from '../../machines/queue.ts'
import { emptyRamp, type Ramp } from '../../machines/ramp.ts'
import { leavesAt } from '../../machines/slots.ts'
import { pack, roomAt } from '../../machines/warm-up.ts'
import { refusalOf, Story } from '../machines/story.ts'

const atMs = 1_700_000_040_000
const second = atMs / 1000

const rampWith = (over: Partial<Ramp>): Ramp => ({ ...emptyRamp, ...over })
const plan = { tokens: 181_000, tryAtMs: atMs + 60_000, refusals: 1, targetTokens: 139_000, quietUntilMs: 0 }

describe('the choice of calls', () => {
  it.each([
    [[50, 60, 70], 120, 120],
    [[50, 60, 70], 129, 120],
    [[50, 60, 70], 130, 130],
    [[50, 60, 70], 49, 0],
    [[], 100, 0],
  ])('of %j fills %i with %i', (sizes, room, sum) => {
    expect(pack(sizes, room).reduce((total, index) => total + sizes[index]!, 0)).toBe(sum)
  })

  it('never exceeds its room, and no single call could be added', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 8 })
    fc.assert(
      fc.property(sizes, fc.integer({ min: 0, max: 500 }), (list, room) => {
        const chosen = pack(list, room)
        const sum = chosen.reduce((total, index) => total + list[index]!, 0)
        expect(sum).toBeLessThanOrEqual(room)
        for (const [index, size] of list.entries())
          if (!chosen.includes(index)) expect(sum + size).toBeGreaterThan(room)
      }),
    )
  })
})

describe('the room of a warm-up', () => {
  const taken = [{ second: second - 70, tokens: 100_000 }]
  const minutes = [
    {
      minute: atMs / 60_000 - 1,
      acceptedTokens: 100_000,
      acceptedBeforeTokens: 0,
      refusedTokens: null,
      refusedBeforeTokens: 0,
      statedTokens: null,
    },
  ]
  const known = { slots: taken, accepted: taken, minutes, closedMinute: atMs / 60_000 - 1 }

  it('is what a minute was seen to take, and the growth that is hoped for', () => {
    const room = roomAt(rampWith({ ...known, plan: { ...plan, kind: 'build' } }), atMs)
    expect(room).toMatchObject({ togetherTokens: 130_000, aimTokens: 130_000, unanswered: false })
  })

  it('is halved towards what was refused', () => {
    const refusedUse = { tokens: 120_000, atMs }
    const room = roomAt(rampWith({ ...known, refusedUse, plan: { ...plan, kind: 'build' } }), atMs)
    expect(room).toMatchObject({ togetherTokens: 100_000, aimTokens: 110_000, mostTokens: 119_999 })
  })

  it('is what was seen and no more, while it is only held', () => {
    const room = roomAt(rampWith({ ...known, plan: { ...plan, kind: 'hold' } }), atMs)
    expect(room).toMatchObject({ togetherTokens: 100_000, aimTokens: 100_000, mostTokens: 100_000 })
  })

  it('counts what is on its way as used', () => {
    const slots = [...taken, { second: second - 1, tokens: 40_000 }]
    const room = roomAt(rampWith({ ...known, slots, plan: { ...plan, kind: 'build' } }), atMs)
    expect(room).toMatchObject({ aimTokens: 90_000, unanswered: true })
  })
})

describe('a queue that a warm-up takes from', () => {
  const order = (value: number) => value

  it('loses the one that went, wherever it stood, and keeps the others in order', () => {
    const lists = fc.record({ front: fc.nat(6), back: fc.nat(6), place: fc.nat(13) })
    fc.assert(
      fc.property(lists, ({ front, back, place }) => {
        let queue = fromArray(Array.from({ length: front }, (_, index) => index))
        for (let value = front; value < front + back; value += 1) queue = push(queue, value)
        const expected = toArray(queue).filter((value) => value !== place)
        const left = remove(queue, place, order)
        expect(toArray(left)).toEqual(expected)
        expect(left.size).toBe(expected.length)
        if (left.size > 0) expect(left.front?.value).toBe(expected[0])
      }),
    )
  })

  it('shows its first, and of a long one only what is cheap to reach', () => {
    const long = push(push(fromArray([1]), 2), 3)
    expect(first(long, 2)).toEqual([1, 2])
    expect(first(long, 2, 2)).toEqual([1])
  })

  it('keeps every place: who was passed over in a warm-up goes first in the drain', () => {
    const story = new Story({ ...adaptivePolicy, strategy: 'stepUp', capacityFloor: null })
    story.at = atMs
    story.primary('p', { inputTokens: 181_000 })
    for (const [id, inputTokens] of [
      ['large', 95_000],
      ['small', 40_000],
      ['middle', 60_000],
    ] as const)
      story.auxiliary(id, { inputTokens, principal: 'one' })
    expect(story.refuse('p', refusalOf('acceleration'))).toContain('release middle: warm-up')
    story.settle('middle')
    story.withdraw('p')
    story.pass(10_000)
    expect(story.running[0]).toBe('large')
  })
})

describe('an auxiliary that is refused for its tokens', () => {
  it('backs off no longer than until use leaves the minute', () => {
    const story = new Story({
      ...adaptivePolicy,
      capacityFloor: null,
      pacingBaseMs: 60_000,
      pacingMaxMs: 120_000,
    })
    story.at = atMs
    story.auxiliary('early', { inputTokens: 50_000 })
    story.accept('early')
    story.pass(40_000)
    story.auxiliary('a', { inputTokens: 50_000 })
    story.refuse('a', refusalOf('acceleration'))
    expect(leavesAt(story.context.ramp.accepted, story.at)).toBe(atMs + 61_000)
    expect(story.pass(20_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release a: open'])
  })
})
