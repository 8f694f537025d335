/**
 * A primary larger than the ceiling: when it is tried, which calls may run meanwhile, and which refusals are
 * remembered.
 */
import { describe, expect, it } from 'vitest'
import type { Evidence, PolicyInput } from '../../../machines/index.ts'
import { refusalOf, Story } from '../story.ts'

const minuteMs = 60_000

/** A ramp that used this much in the last minute, and then refused a primary of 180k. */
const refused = (
  strategy: PolicyInput['strategy'],
  { used = 100_000, facts = {}, ...policy }: PolicyInput & { used?: number; facts?: Evidence['facts'] } = {},
): Story => {
  const story = new Story({
    capacity: 4,
    reserve: 0,
    strategy: strategy!,
    quietWindowMs: minuteMs,
    maxDeferralMs: 3_600_000,
    pacingBaseMs: 0,
    pacingMaxMs: 0,
    ...policy,
  })
  if (used > 0) {
    story.auxiliary('used', { inputTokens: used })
    story.settle('used')
  }
  story.pass(5_000)
  story.primary('p', { inputTokens: 180_000 })
  story.refuse('p', refusalOf('acceleration', { facts }))
  return story
}

/** Milliseconds from the refusal until the primary is tried. */
const triedAfter = (story: Story): number => {
  const from = story.at
  for (let waits = 0; story.running.indexOf('p') < 0 && waits < 50; waits += 1)
    story.pass(Math.max(1, story.wakesInMs as number))
  return story.at - from
}

const untilBoundary = (story: Story, count: number): number => {
  const next = Math.floor(story.at / minuteMs) + count
  return next * minuteMs - story.at
}

describe('a primary that nothing says will not fit', () => {
  it('goes at once, whatever its tokens', () => {
    expect(new Story().primary('p', { inputTokens: 900_000 })).toEqual(['admit p: primary'])
  })

  it('goes at once after one as large was accepted', () => {
    const story = refused('quiet')
    triedAfter(story)
    story.accept('p')
    story.settle('p')
    expect(story.primary('q', { inputTokens: 180_000 })).toEqual(['admit q: primary'])
  })
})

describe('a refused primary is tried again', () => {
  it.each<[string, Parameters<typeof refused>, (story: Story) => number]>([
    [
      'when the trailing minute has emptied to the stated ceiling, the whole of its second included',
      ['quiet', { facts: { currentLimit: 200_000 } }],
      () => 56_000,
    ],
    ['at the ceiling that a stated limit means', ['quiet', { facts: { limit: 200_000 } }], () => 56_000],
    [
      'within the quiet window, though its minute empties later',
      ['quiet', { facts: { currentLimit: 200_000 }, quietWindowMs: 20_000 }],
      () => 20_000,
    ],
    [
      'at the minute boundary at which the stated ceilings reach it',
      ['backfill', { facts: { currentLimit: 100_000, nextLimit: 140_000 } }],
      (story) => untilBoundary(story, 2),
    ],
    [
      'at the next boundary, where the next ceiling holds it',
      ['adaptive', { facts: { currentLimit: 100_000, nextLimit: 180_000 } }],
      (story) => untilBoundary(story, 1),
    ],
    [
      'at the third boundary, where the ceiling rises slowly',
      ['backfill', { facts: { currentLimit: 100_000, nextLimit: 130_000 } }],
      (story) => untilBoundary(story, 3),
    ],
    [
      'at the next boundary, where nobody had sent and nothing is stated',
      ['adaptive', { used: 0 }],
      (story) => untilBoundary(story, 1),
    ],
    [
      'within the quiet window where that ends before the boundary',
      ['backfill', { quietWindowMs: 3_000 }],
      () => 3_000,
    ],
    [
      'at the next boundary, where no quiet is wanted: never at once',
      ['adaptive', { quietWindowMs: 0, used: 0 }],
      (story) => untilBoundary(story, 1),
    ],
    [
      'at the next boundary by a plan to backfill, where no quiet is wanted',
      ['backfill', { quietWindowMs: 0 }],
      (story) => untilBoundary(story, 1),
    ],
    [
      'at the next boundary, where the ceilings that are stated fall',
      ['backfill', { facts: { currentLimit: 140_000, nextLimit: 100_000 } }],
      (story) => untilBoundary(story, 1),
    ],
  ])('%s', (_, [strategy, over], expected) => {
    const story = refused(strategy, over)
    const ms = expected(story)
    expect(triedAfter(story)).toBe(ms)
  })

  it.each<[string, number[], number]>([
    ['the first of two uses leaves enough', [60_000, 15_000], 51_000],
    ['what the second leaves is just enough', [60_000, 20_000], 51_000],
    ['both must leave', [60_000, 20_001], 61_000],
    ['the second alone would not have stood in its way', [15_000, 6_000], 51_000],
  ])('when its minute has emptied to the stated ceiling: %s', (_, [first, second], ms) => {
    const story = new Story({ capacity: 4, reserve: 0, strategy: 'quiet', quietWindowMs: 10 * minuteMs })
    for (const [id, inputTokens] of [
      ['one', first],
      ['two', second],
    ] as const) {
      story.auxiliary(id, { inputTokens: inputTokens as number })
      story.settle(id)
      story.pass(10_000)
    }
    story.at -= 10_000
    story.primary('p', { inputTokens: 180_000 })
    story.refuse('p', refusalOf('acceleration', { facts: { currentLimit: 200_000 } }))
    expect(triedAfter(story)).toBe(ms)
  })
})

describe('while a refused primary waits', () => {
  it('under quiet nobody sends', () => {
    const story = refused('quiet')
    expect(story.auxiliary('a', { inputTokens: 10 })).toEqual(['defer a: primary-pending'])
    expect(story.pass(14_000)).toEqual([])
  })

  it('until a boundary auxiliaries run, each named as that', () => {
    const story = refused('backfill', { facts: { currentLimit: 100_000, nextLimit: 140_000 } })
    expect(story.auxiliary('a', { inputTokens: 10 })).toEqual(['admit a: backfill'])
    story.settle('a')
    expect(story.auxiliary('b', { inputTokens: 10 })).toEqual(['admit b: backfill'])
  })

  it('and its boundary has come, no other auxiliary goes before it', () => {
    const story = refused('backfill', { facts: { currentLimit: 100_000, nextLimit: 140_000 } })
    story.pass(untilBoundary(story, 2))
    expect(story.running).toEqual(['p'])
    expect(story.auxiliary('late', { inputTokens: 10 })).toEqual(['defer late: primary-active'])
  })

  it('and that was not enough, the next minute must be fuller before all are silent', () => {
    const story = refused('stepUp', { used: 0 })
    const fill = (prefix: string, tokens: number) => {
      for (const id of [`${prefix}1`, `${prefix}2`]) {
        story.auxiliary(id, { principal: id, inputTokens: tokens / 2 })
        if (!story.running.includes(id)) return false
        story.accept(id)
        story.settle(id)
      }
      return true
    }
    fill('a', 140_000)
    triedAfter(story)
    story.refuse('p', refusalOf('acceleration'))
    fill('b', 140_000)
    expect(story.auxiliary('more', { inputTokens: 10 })).toEqual(['admit more: warm-up'])
  })
})

describe('what is remembered of a refusal', () => {
  it('holds another primary that is as large, and none that is smaller than the ceiling allows', () => {
    const story = refused('quiet')
    story.primary('large', { inputTokens: 180_000, priorityClass: 'hydration' })
    story.withdraw('p')
    expect(story.running).toEqual([])
    story.withdraw('large')
    expect(story.primary('small', { inputTokens: 50_000 })).toEqual(['admit small: primary'])
  })

  it('of an auxiliary holds a larger primary until the minute has emptied so far, for one window at most', () => {
    const story = new Story({
      capacity: 4,
      reserve: 0,
      quietWindowMs: 30_000,
      pacingBaseMs: 0,
      pacingMaxMs: 0,
    })
    story.auxiliary('used', { inputTokens: 100_000 })
    story.settle('used')
    story.pass(5_000)
    story.auxiliary('a', { inputTokens: 50_000 })
    story.refuse('a', refusalOf('acceleration', { retryable: true }))
    story.withdraw('a')
    const from = story.at
    story.primary('p', { inputTokens: 120_000 })
    expect(story.running).toEqual([])
    expect(triedAfter(story)).toBe(30_000)
    expect(story.at - from).toBe(30_000)
  })

  it.each([
    ['for something else than tokens', refusalOf('overloaded')],
    ['for the requests of a minute', refusalOf('requests-per-minute')],
    ['for its concurrency', refusalOf('concurrency')],
  ])('%s is nothing: the ramp plans only for tokens', (_, evidence) => {
    const story = new Story()
    story.primary('p', { inputTokens: 180_000 })
    story.refuse('p', evidence)
    expect(story.context.ramp).toMatchObject({ plan: null, refusal: null })
  })

  it.each(['acceleration', 'input-tokens-per-minute', 'tokens-per-minute', 'unknown-rate-limit'] as const)(
    'for %s is what the plan is made for',
    (kind) => {
      const story = new Story()
      story.primary('p', { inputTokens: 180_000 })
      story.refuse('p', refusalOf(kind))
      expect(story.context.ramp.plan).toMatchObject({ tokens: 180_000, refusals: 1 })
    },
  )

  it('of a call that left before the last one says nothing new', () => {
    const story = new Story({ capacity: 4, reserve: 0 })
    for (const id of ['p', 'q']) story.primary(id, { inputTokens: 100_000 })
    story.pass(1_000)
    story.refuse('p', refusalOf('acceleration', { facts: { currentLimit: 7 } }))
    story.pass(1)
    story.refuse('q', refusalOf('acceleration', { facts: { currentLimit: 9 } }))
    expect(story.context.ramp.refusal?.statedLimit).toBe(7)
  })

  it('is that of the last, and the plan counts them', () => {
    const story = refused('backfill', { facts: { currentLimit: 100_000, nextLimit: 180_000 } })
    story.pass(untilBoundary(story, 1))
    story.refuse('p', refusalOf('acceleration'))
    expect(story.context.ramp.plan?.refusals).toBe(2)
    expect(story.context.ramp.refusal).toMatchObject({
      statedLimit: null,
      statedNextLimit: null,
      tokens: 180_000,
    })
  })

  it('counts what was dispatched in the minute before, without the refused and with what was really used', () => {
    const story = new Story({
      capacity: 8,
      reserve: 0,
      inFlight: 'tolerate',
      strategy: 'quiet',
      quietWindowMs: 0,
    })
    const trailing = (): number | undefined => {
      story.primary('p', { inputTokens: 180_000 })
      story.refuse('p', refusalOf('acceleration'))
      const { refusal } = story.context.ramp
      story.withdraw('p')
      return refusal?.trailingTokens
    }
    story.auxiliary('a', { inputTokens: 30_000 })
    story.pass(20_000)
    story.auxiliary('b', { inputTokens: 20_000 })
    story.auxiliary('c', { inputTokens: 1_000 })
    expect(trailing()).toBe(51_000)
    story.settle('b', 'completed', { inputTokens: 25_000, outputTokens: null })
    story.pass(1_000)
    story.settle('c', 'failed')
    story.settle('a', 'completed', { inputTokens: 10_000, outputTokens: null })
    story.pass(1)
    expect(trailing()).toBe(35_000)
    story.pass(39_999)
    expect(trailing()).toBe(25_000)
    story.pass(20_000)
    expect(trailing()).toBe(0)
  })
})

/** The reason that an auxiliary gets now: it names the ramp's present step. */
const meanwhile = (story: Story): string => {
  const [decided] = story.auxiliary('asks', { inputTokens: 1 })
  story.withdraw('asks')
  return (decided as string).split(': ')[1] as string
}

describe('a refused primary that nobody estimated', () => {
  it.each(['adaptive', 'stepUp', 'holdSteady'] as const)(
    'is not tried again at once under %s',
    (strategy) => {
      const story = new Story({ capacity: 4, reserve: 0, strategy })
      story.primary('p')
      expect(story.refuse('p', refusalOf('acceleration'))).toEqual(['defer p: refused-by-provider'])
      expect(story.running).toEqual([])
    },
  )
})

describe('an adaptive ramp', () => {
  it.each<[string, Parameters<typeof refused>[1], string]>([
    ['is quiet first, where others had sent', {}, 'primary-pending'],
    ['does not try quiet, where nobody had sent', { used: 0 }, 'warm-up'],
    ['does not try quiet, where next to nobody had', { used: 9_000 }, 'warm-up'],
    ['is quiet, where a little more had been sent', { used: 9_001 }, 'primary-pending'],
    [
      'waits for the ceiling that is stated, where it rises to the call',
      { facts: { currentLimit: 100_000, nextLimit: 140_000 } },
      'backfill',
    ],
    [
      'is quiet, where the present ceiling would hold the call alone',
      { facts: { currentLimit: 180_000, nextLimit: 220_000 } },
      'primary-pending',
    ],
    [
      'is quiet, where the next ceiling is no higher',
      { facts: { currentLimit: 100_000, nextLimit: 100_000 } },
      'primary-pending',
    ],
    [
      'is quiet, where only the present ceiling is stated',
      { facts: { currentLimit: 100_000 } },
      'primary-pending',
    ],
    ['is quiet, where only the next ceiling is stated', { facts: { nextLimit: 190_000 } }, 'primary-pending'],
  ])('%s', (_, over, told) => {
    expect(meanwhile(refused('adaptive', over))).toBe(told)
  })

  it.each([
    ['quiet', 'primary-pending'],
    ['backfill', 'backfill'],
    ['stepUp', 'warm-up'],
  ] as const)('is not asked under %s, which stays what it is', (strategy, reason) => {
    const story = refused(strategy)
    for (let refusal = 0; refusal < 7; refusal += 1) {
      expect(meanwhile(story)).toBe(reason)
      triedAfter(story)
      story.refuse('p', refusalOf('acceleration'))
    }
  })
})
