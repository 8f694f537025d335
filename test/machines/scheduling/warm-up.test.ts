/** Which auxiliaries warm a ceiling up: minutes are filled, and no call loses its place by it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { first, fromArray, push, remove, toArray } from '../../../machines/collections/queue.ts'
import { leavesAt } from '../../../machines/collections/usage-window.ts'
import { adaptivePolicy, type PolicyInput, type ScopeContext } from '../../../machines/index.ts'
import { steady } from '../../../machines/limits/pacing.ts'
import { emptyRamp, type Ramp } from '../../../machines/limits/ramp.ts'
import { chooseWarmUp, pack, roomAt, warmAgainAt } from '../../../machines/scheduling/warm-up.ts'
import { refusalOf, Story } from '../story.ts'

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

describe('the room of a warm-up, by what was used and refused', () => {
  const used = (...pairs: ReadonlyArray<readonly [number, number]>) =>
    pairs.map(([agoSeconds, tokens]) => ({ second: second - agoSeconds, tokens }))
  /**
   * Tokens accepted in the minute before the last and in the last; `sent` is the tokens still on their way.
   */
  const after = (before: number, last: number, refusedTokens: number | null, sent = 0): Partial<Ramp> => {
    const accepted = used([70, before], [10, last]).filter(({ tokens }) => tokens > 0)
    return {
      slots: [...accepted, ...used([1, sent])],
      accepted,
      refusedUse: refusedTokens === null ? null : { tokens: refusedTokens, atMs },
    }
  }
  const none = Number.POSITIVE_INFINITY

  it.each<[string, 'build' | 'hold' | null, Partial<Ramp>, [number, number, number, boolean]]>([
    ['is none, and any one call, before anything was seen', 'build', {}, [0, 0, none, false]],
    ['is the same while a level is held that nothing has made', 'hold', {}, [0, 0, none, false]],
    ['is what is left of a level', 'hold', after(0, 100, null, 40), [-40, -40, -40, true]],
    ['is a level below what was refused', 'hold', after(0, 100, 90), [-11, -11, -11, false]],
    ['is what use lifts it to', 'build', after(100, 50, null), [80, 80, none, false]],
    ['is what was seen, where that is more', 'build', after(100, 140, null), [0, 0, none, false]],
    ['ends below what was refused above that', 'build', after(100, 50, 131), [80, 80, 80, false]],
    ['is searched for, where that was refused', 'build', after(100, 50, 130), [50, 65, 79, false]],
    ['is searched for, where no use lifts it', 'build', after(0, 50, 101), [0, 25, 50, false]],
    ['is what was seen, where nothing was refused', null, after(0, 50, null), [0, 0, none, false]],
    ['is less by what is on its way', 'build', after(0, 50, 101, 30), [-30, -5, 20, true]],
    // The accepted tokens may be corrected upwards, above the refused ones.
    ['is below what was refused, though more was taken', 'build', after(0, 50, 41), [-10, -10, -10, false]],
  ])('%s', (_, kind, over, [togetherTokens, aimTokens, mostTokens, unanswered]) => {
    const ramp = rampWith({ ...over, plan: kind === null ? null : { ...plan, kind } })
    const room = roomAt(ramp, atMs)
    expect(room).toEqual({ togetherTokens, aimTokens, mostTokens, unanswered })
  })

  it.each<[string, Partial<Ramp>, number]>([
    ['never, where nothing is used or refused', {}, none],
    ['when use leaves the minute', after(0, 50, null), atMs + 51_000],
    ['when the ceiling may have changed since a refusal', after(0, 50, 101), atMs + 15_000],
    ['when use leaves, where that is before', { ...after(0, 0, 101), slots: used([50, 1]) }, atMs + 11_000],
    [
      'when use leaves, where the refusal is old',
      { ...after(0, 50, null), refusedUse: { tokens: 9, atMs: atMs - 15_000 } },
      atMs + 51_000,
    ],
  ])('changes with time %s', (_, over, expected) => {
    expect(warmAgainAt(rampWith(over), atMs)).toBe(expected)
  })
})

describe('the auxiliary that warms up next', () => {
  const taken = (agoSeconds: number, tokens: number) => ({ second: second - agoSeconds, tokens })
  /** 100 were taken in the minute before the last: 130 may go together, and one call above that. */
  const hopeful = { slots: [taken(70, 100)], accepted: [taken(70, 100)] }
  const refusedUse = (tokens: number) => ({ refusedUse: { tokens, atMs } })
  /** Calls of these sizes wait for the provider, each with its own principal. */
  const waiting = (
    sizes: ReadonlyArray<number>,
    over: Partial<Ramp>,
    policy: PolicyInput = {},
  ): ScopeContext => {
    const story = new Story({ ...adaptivePolicy, capacityFloor: null, ...policy })
    story.at = atMs
    if (policy.limits !== undefined) {
      story.auxiliary('used', { inputTokens: 30, outputTokens: 30 })
      story.accept('used')
    }
    story.tell({ type: 'provider.evidence', evidence: refusalOf('overloaded', { retryAfterMs: 600_000 }) })
    for (const tokens of sizes)
      story.auxiliary(`${tokens}`, { inputTokens: tokens, outputTokens: tokens, principal: `${tokens}` })
    return { ...story.context, ramp: rampWith({ ...hopeful, plan: { ...plan, kind: 'build' }, ...over }) }
  }
  const chosen = (context: ScopeContext) => chooseWarmUp(context)?.call.inputTokens ?? null

  it.each<[string, ReadonlyArray<number>, Partial<Ramp>, number | null]>([
    ['is nobody, where nobody waits', [], {}, null],
    ['is the smallest of those that fill the minute best', [95, 60, 40], {}, 40],
    ['is not the smallest of all, where that fills it less', [125, 10], {}, 125],
    ['is the smallest of all, where none fits, to find the ceiling', [150, 140, 160], {}, 140],
    [
      'is nobody then, while an answer is to come',
      [150, 140],
      { slots: [taken(70, 100), taken(10, 1)] },
      null,
    ],
    ['goes with others that have not been answered', [129], { slots: [taken(70, 100), taken(10, 1)] }, 129],
    ['is nobody whose use is known to be refused', [135], refusedUse(135), null],
    ['is one whose use is not', [134], refusedUse(135), 134],
    [
      'is nobody, where no use is left',
      [1],
      {
        slots: [taken(70, 100), taken(10, 134)],
        accepted: [taken(70, 100), taken(10, 134)],
        ...refusedUse(135),
      },
      null,
    ],
    [
      'is one that takes what is left',
      [1],
      {
        slots: [taken(70, 100), taken(10, 133)],
        accepted: [taken(70, 100), taken(10, 133)],
        ...refusedUse(135),
      },
      1,
    ],
    ['waits for use that leaves within five seconds', [50], { slots: [taken(56, 1)] }, null],
    ['does not for what leaves later', [50], { slots: [taken(70, 100), taken(55, 1)] }, 50],
    [
      'does not where a level is only held',
      [50],
      {
        slots: [taken(70, 100), taken(56, 50)],
        accepted: [taken(70, 100), taken(56, 50), taken(9, 50)],
        plan: { ...plan, kind: 'hold' },
      },
      50,
    ],
  ])('%s', (_, sizes, over, expected) => {
    expect(chosen(waiting(sizes, over))).toBe(expected)
  })

  it.each([
    ['is nobody whose class backs off', 1_499, null],
    ['is one again after a second and a half, however long the backoff', 1_500, 50],
  ])('%s', (_, agoMs, expected) => {
    const pace = { ...steady, refusals: 1, epochMs: atMs - agoMs, pausedUntilMs: atMs + 60_000 }
    expect(chosen({ ...waiting([50], {}), pacing: { background_ingestion: pace } })).toBe(expected)
  })

  it.each<[string, NonNullable<PolicyInput['limits']>, number | null]>([
    ['its requests', { requestsPerMinute: 1 }, null],
    ['its input tokens', { inputTokensPerMinute: 79 }, null],
    ['its output tokens', { outputTokensPerMinute: 79 }, null],
    ['nothing', { requestsPerMinute: 2, inputTokensPerMinute: 80, outputTokensPerMinute: 80 }, 50],
  ])('is held back by %s where the budget is %j', (_, limits, expected) => {
    expect(chosen(waiting([50], {}, { limits }))).toBe(expected)
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

  it('shows its first, however it came about', () => {
    const lists = fc.record({ front: fc.nat(6), back: fc.nat(6), count: fc.nat(14) })
    fc.assert(
      fc.property(lists, ({ front, back, count }) => {
        let queue = fromArray(Array.from({ length: front }, (_, index) => index))
        for (let value = front; value < front + back; value += 1) queue = push(queue, value)
        expect(first(queue, count)).toEqual(toArray(queue).slice(0, count))
      }),
    )
  })

  it('keeps every place: a call that a warm-up passed over goes first in the drain', () => {
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
