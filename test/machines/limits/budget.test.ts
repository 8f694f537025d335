/** Budgets by arithmetic: the charge of a call, the corrections, and the time at which the next call fits. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Budget,
  type Cost,
  charge,
  declare,
  fitsAt,
  learn,
  type MeterName,
  meterNames,
  neverFits,
  noBudget,
} from '../../../machines/limits/budget.ts'
import type { Limits } from '../../../machines/model/policy.ts'
import { noLimits } from '../../../machines/model/presets.ts'
import { Story } from '../story.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const at = 1_000_000

const limits = (over: Partial<Limits>): Limits => ({ ...noLimits, ...over })
const cost = (over: Partial<Cost>): Cost => ({ requests: 0, inputTokens: 0, outputTokens: 0, ...over })
const costOn = (name: MeterName, amount: number): Cost =>
  name.startsWith('requests')
    ? cost({ requests: amount })
    : name.startsWith('input')
      ? cost({ inputTokens: amount })
      : cost({ outputTokens: amount })
const levelAt = (budget: Budget, name: MeterName, atMs: number): number =>
  charge(budget, cost({}), atMs)[name]?.level ?? Number.NaN

describe('a meter', () => {
  it.each(meterNames)('%s: is full at first, and holds its limit at once', (name) => {
    const budget = declare(noBudget, limits({ [name]: 600 }), at)
    expect(fitsAt(budget, costOn(name, 600), at)).toBe(at)
  })

  it.each(meterNames)('%s: refills by its limit per window, to the millisecond', (name) => {
    const windowMs = name.endsWith('PerDay') ? dayMs : minuteMs
    const spent = charge(declare(noBudget, limits({ [name]: 600 }), at), costOn(name, 600), at)
    expect(fitsAt(spent, costOn(name, 600), at)).toBe(at + windowMs)
    expect(fitsAt(spent, costOn(name, 1), at)).toBe(at + windowMs / 600)
    expect(levelAt(spent, name, at + windowMs / 2)).toBe(300)
  })

  it.each([
    ['a part of the window', 15_000, 150],
    ['a whole window', 60_000, 600],
    ['more than a window: never above the limit', 600_000, 600],
    ['nothing', 0, 0],
    ['a clock that went back: nothing is taken away', -30_000, 0],
  ])('that was spent holds, after %s (%i ms), %i of 600', (_, elapsedMs, level) => {
    const spent = charge(
      declare(noBudget, limits({ requestsPerMinute: 600 }), at),
      cost({ requests: 600 }),
      at,
    )
    expect(levelAt(spent, 'requestsPerMinute', at + elapsedMs)).toBe(level)
  })

  it('counts only its own kind', () => {
    const budget = declare(
      noBudget,
      limits({ requestsPerMinute: 1, inputTokensPerMinute: 100, outputTokensPerMinute: 100 }),
      at,
    )
    expect(
      fitsAt(charge(budget, cost({ inputTokens: 100 }), at), cost({ outputTokens: 100, requests: 1 }), at),
    ).toBe(at)
    expect(
      fitsAt(charge(budget, cost({ outputTokens: 100 }), at), cost({ inputTokens: 100, requests: 1 }), at),
    ).toBe(at)
  })

  it('the last of several meters decides', () => {
    const budget = declare(noBudget, limits({ inputTokensPerMinute: 600, inputTokensPerDay: 86_400 }), at)
    const spent = charge(budget, cost({ inputTokens: 600 }), at)
    expect(fitsAt(spent, cost({ inputTokens: 60 }), at)).toBe(at + 6_000)
    const day = charge(budget, cost({ inputTokens: 86_400 }), at)
    expect(fitsAt(day, cost({ inputTokens: 60 }), at + dayMs / 2)).toBe(at + dayMs / 2)
    expect(fitsAt(day, cost({ inputTokens: 60 }), at)).toBeGreaterThanOrEqual(at + 60_000)
  })

  it('what it takes and gives back leaves it as it was, and never above its limit', () => {
    const amount = fc.nat({ max: 5_000 })
    fc.assert(
      fc.property(amount, amount, fc.nat({ max: 200_000 }), (one, other, elapsedMs) => {
        const full = declare(noBudget, limits({ inputTokensPerMinute: 5_000 }), at)
        const spent = charge(full, cost({ inputTokens: one }), at)
        const later = at + elapsedMs
        const back = charge(
          charge(spent, cost({ inputTokens: other }), later),
          cost({ inputTokens: -other }),
          later,
        )
        expect(levelAt(back, 'inputTokensPerMinute', later)).toBeCloseTo(
          levelAt(spent, 'inputTokensPerMinute', later),
          6,
        )
        expect(
          levelAt(charge(back, cost({ inputTokens: -9_000 }), later), 'inputTokensPerMinute', later),
        ).toBe(5_000)
      }),
    )
  })

  it('fitsAt names the first millisecond at which the call fits, not one later', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.nat({ max: 1_000_000 }),
        fc.nat({ max: 1_000_000 }),
        (limit, used, wanted) => {
          const spent = charge(
            declare(noBudget, limits({ inputTokensPerMinute: limit }), at),
            cost({ inputTokens: used }),
            at,
          )
          const fits = fitsAt(spent, cost({ inputTokens: wanted }), at)
          const needed = Math.min(wanted, limit)
          const slack = 1e-6
          expect(levelAt(spent, 'inputTokensPerMinute', fits)).toBeGreaterThanOrEqual(needed - slack)
          if (fits > at) expect(levelAt(spent, 'inputTokensPerMinute', fits - 1)).toBeLessThan(needed)
        },
      ),
    )
  })
})

describe('declared limits', () => {
  it.each(meterNames)('%s: a call above it can never fit, one at it can', (name) => {
    const budget = declare(noBudget, limits({ [name]: 10 }), at)
    expect(neverFits(budget, costOn(name, 11))).toEqual({ name, limit: 10 })
    expect(neverFits(budget, costOn(name, 10))).toBeNull()
  })

  it('that change keep what was spent', () => {
    const spent = charge(declare(noBudget, limits({ requestsPerMinute: 10 }), at), cost({ requests: 8 }), at)
    expect(declare(spent, limits({ requestsPerMinute: 20 }), at).requestsPerMinute?.level).toBe(12)
    expect(declare(spent, limits({ requestsPerMinute: 5 }), at).requestsPerMinute?.level).toBe(-3)
  })

  it('that are taken back are gone, and with the last of them the budget', () => {
    const budget = declare(noBudget, limits({ requestsPerMinute: 10 }), at)
    expect(declare(budget, noLimits, at)).toBe(noBudget)
  })
})

describe('what headers show', () => {
  const reading = (over: object) =>
    ({ dimension: 'requests-per-minute', limit: null, remaining: null, resetAtMs: null, ...over }) as never

  it.each([
    ['requests-per-minute', 'requestsPerMinute'],
    ['requests-per-day', 'requestsPerDay'],
    ['tokens-per-minute', 'inputTokensPerMinute'],
    ['tokens-per-day', 'inputTokensPerDay'],
    ['input-tokens-per-minute', 'inputTokensPerMinute'],
    ['output-tokens-per-minute', 'outputTokensPerMinute'],
  ] as const)('%s feeds %s', (dimension, name) => {
    const budget = learn(noBudget, [reading({ dimension, limit: 50, remaining: 7 })], at)
    expect(budget[name]).toEqual({ limit: 50, level: 7, refilledAtMs: at, declared: false })
  })

  it.each([
    ['less than is thought: believed', 3, 3],
    ['more than is thought: believed', 9, 9],
    ['more than the limit: cut off', 50, 10],
    ['nothing of what remains: the old level stays', null, 6],
  ])('of a known limit, %s', (_, remaining, level) => {
    const known = charge(learn(noBudget, [reading({ limit: 10 })], at), cost({ requests: 4 }), at)
    expect(learn(known, [reading({ limit: 10, remaining })], at).requestsPerMinute?.level).toBe(level)
  })

  it.each([
    ['more: what calls in flight will still produce stays reserved', 90, 30],
    ['less', 10, 10],
  ])('of output, which is charged when it exists, a provider that shows %s', (_, remaining, level) => {
    const dimension = 'output-tokens-per-minute'
    const first = learn(noBudget, [reading({ dimension, limit: 100, remaining: 100 })], at)
    const reserved = charge(first, cost({ outputTokens: 70 }), at)
    const shown = learn(reserved, [reading({ dimension, limit: 100, remaining })], at)
    expect(shown.outputTokensPerMinute?.level).toBe(level)
  })

  it.each([
    ['no limit where none is known', null],
    ['a limit of 0', 0],
    ['a negative limit', -1],
  ])('%s teaches nothing', (_, limit) => {
    expect(learn(noBudget, [reading({ limit, remaining: 5 })], at)).toEqual({})
  })

  it('a declared limit stays what its operator says; only what is left is believed', () => {
    const declared = declare(noBudget, limits({ requestsPerMinute: 10 }), at)
    expect(learn(declared, [reading({ limit: 99, remaining: 2 })], at).requestsPerMinute).toEqual({
      limit: 10,
      level: 2,
      refilledAtMs: at,
      declared: true,
    })
  })

  it('a learned limit refuses nothing at the door, and what it shows of input tokens is a belief that binds elsewhere', () => {
    const learned = learn(
      noBudget,
      [reading({ dimension: 'input-tokens-per-minute', limit: 100, remaining: 0 })],
      at,
    )
    expect(neverFits(learned, cost({ inputTokens: 500 }))).toBeNull()
    expect(fitsAt(learned, cost({ inputTokens: 500 }), at)).toBe(at)
  })
})

describe('a call and the budget', () => {
  const budgeted = (over: Partial<Limits> = { inputTokensPerMinute: 1_000 }): Story =>
    new Story({ capacity: 8, reserve: 0, limits: over })
  const level = (story: Story, name: MeterName = 'inputTokensPerMinute'): number =>
    levelAt(story.context.budget, name, story.at)

  it('larger than a declared limit is refused at the door, and charges nothing', () => {
    const story = budgeted()
    expect(story.auxiliary('a', { inputTokens: 1_001 })).toEqual(['reject a: exceeds-limit'])
    expect(level(story)).toBe(1_000)
  })

  it('that does not fit yet waits, charges nothing, and goes when it does', () => {
    const story = budgeted()
    story.auxiliary('a', { inputTokens: 900 })
    expect(story.auxiliary('b', { inputTokens: 400 })).toEqual(['defer b: budget'])
    expect(level(story)).toBe(100)
    expect(story.wakesInMs).toBe(18_000)
    expect(story.pass(17_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release b: open'])
    expect(level(story)).toBe(0)
  })

  it.each([
    [
      'completed with less than estimated: the rest returns',
      'completed',
      { inputTokens: 100, outputTokens: 0 },
      900,
    ],
    ['completed with more: the debt stays', 'completed', { inputTokens: 1_500, outputTokens: 0 }, -500],
    ['completed without a word: the estimate stands', 'completed', undefined, 400],
    ['failed before acceptance: all returns', 'failed', undefined, 1_000],
    ['cancelled before acceptance: all returns', 'cancelled', undefined, 1_000],
    ['timed out: nothing is known, the estimate stands', 'timedOut', undefined, 400],
  ] as const)('%s', (_, outcome, usage, expected) => {
    const story = budgeted()
    story.auxiliary('a', { inputTokens: 600 })
    story.settle('a', outcome, usage)
    expect(level(story)).toBe(expected)
  })

  it.each(['failed', 'cancelled'] as const)(
    'that %s after acceptance has been charged by the provider',
    (outcome) => {
      const story = budgeted()
      story.auxiliary('a', { inputTokens: 600 })
      story.accept('a')
      story.settle('a', outcome)
      expect(level(story)).toBe(400)
    },
  )

  it('that was refused by the provider gives all back, and is charged again when it goes again', () => {
    const story = new Story({
      capacity: 8,
      reserve: 0,
      pacingBaseMs: 0,
      pacingMaxMs: 0,
      limits: { requestsPerMinute: 10 },
    })
    story.auxiliary('a')
    expect(level(story, 'requestsPerMinute')).toBe(9)
    story.refuse('a')
    story.pass(100)
    expect(story.running).toEqual(['a'])
    expect(level(story, 'requestsPerMinute')).toBeCloseTo(9, 0)
  })

  it('that is withdrawn before it is sent gives all back', () => {
    const story = budgeted()
    story.auxiliary('a', { inputTokens: 600 })
    story.withdraw('a')
    expect(level(story)).toBe(1_000)
  })

  it('primaries are under the budget too, and auxiliaries wait behind them', () => {
    const story = budgeted()
    story.auxiliary('a', { inputTokens: 900 })
    story.settle('a')
    expect(story.primary('p', { inputTokens: 500 })).toEqual(['defer p: budget'])
    expect(story.auxiliary('b', { inputTokens: 10 })).toEqual(['defer b: primary-pending'])
    story.pass(24_000)
    expect(story.running).toEqual(['p'])
  })

  it('a head that does not fit is passed over twice, then its room is kept for it', () => {
    const story = budgeted()
    story.auxiliary('filler', { inputTokens: 700 })
    story.auxiliary('large', { inputTokens: 600, principal: 'l' })
    const small = ['s1', 's2', 's3'].map((id) =>
      story.auxiliary(id, { inputTokens: 50, principal: 's' }).join(),
    )
    expect(small).toEqual(['admit s1: open', 'admit s2: open', 'defer s3: behind-others'])
    story.pass(24_000)
    expect(story.running).toContain('large')
    expect(story.waiting).toEqual(['s3'])
    story.pass(6_000)
    expect(story.waiting).toEqual([])
  })
})
