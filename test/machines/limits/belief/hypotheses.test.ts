/** Each hypothesis is held against its rule: the believed interval contains the true value. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Belief, unknownBelief } from '../../../../machines/limits/belief/belief.ts'
import {
  type Charges,
  charged,
  mostCharges,
  sentBetween,
  sentInMinute,
} from '../../../../machines/limits/belief/charges.ts'
import { ceilingIn, minuteOf } from '../../../../machines/limits/belief/clock-window.ts'
import { roomAt } from '../../../../machines/limits/belief/forecast.ts'
import { accepted, refused, sent } from '../../../../machines/limits/belief/learn.ts'
import { believedLimits } from '../../../../machines/limits/belief/projection.ts'
import { ceilingAfter } from '../../../../machines/limits/belief/trailing-window.ts'
import { makeRule, type RuleSpec } from '../../../../src/emulator/index.ts'
import { runs } from '../../../properties/runs.ts'
import { refusalOf } from '../../story.ts'

const startMs = 1_700_000_040_000

interface Send {
  readonly afterMs: number
  readonly tokens: number
}

/** Sends calls to a rule, each answered before the next; what is believed after each. */
const drive = (
  spec: RuleSpec,
  sends: ReadonlyArray<Send>,
  kind: 'acceleration' | 'input-tokens-per-minute',
  look: (belief: Belief, atMs: number, state: unknown) => void,
): void => {
  const rule = makeRule(spec, 'none')
  let state = rule.initial(1)
  let belief = unknownBelief
  let atMs = startMs
  for (const { afterMs, tokens } of sends) {
    atMs += afterMs
    belief = sent(belief, tokens, atMs, atMs)
    const answer = rule.check(state, { atMs, inputTokens: tokens, maxOutputTokens: 0 })
    state = answer.state
    const dispatch = { tokens, dispatchedAtMs: atMs, atMs: atMs + 1 }
    if (answer.accepted) belief = accepted(belief, dispatch)
    else belief = refused(sent(belief, -tokens, atMs, atMs + 1), dispatch, refusalOf(kind))
    look(belief, atMs + 1, rule.advance(state, atMs + 1))
  }
}

const anySends = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 1_000, max: 20_000 }),
    tokens: fc.integer({ min: 1_000, max: 80_000 }),
  }),
  { minLength: 5, maxLength: 40 },
)

/** Bounds fade, so that a limit that changes is found: by so much at most within these histories. */
const faded = 1.5

describe('charges', () => {
  it('of a minute are counted whole, however many come, in a bounded list', () => {
    const anyCharges = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 9_000 })),
      { maxLength: 900 },
    )
    fc.assert(
      fc.property(anyCharges, (rows) => {
        let charges: Charges = []
        let atMs = startMs
        const all: Array<{ atMs: number; tokens: number }> = []
        for (const [afterMs, tokens] of rows) {
          atMs += afterMs
          charges = charged(charges, tokens, atMs, atMs)
          all.push({ atMs, tokens })
        }
        expect(charges.length).toBeLessThanOrEqual(mostCharges)
        const since = (fromMs: number) =>
          all.filter((one) => one.atMs > fromMs).reduce((sum, one) => sum + one.tokens, 0)
        // Neighbours are put together at the later time: nothing leaves a window too soon, and it leaves with its neighbours.
        expect(sentInMinute(charges, atMs)).toBeGreaterThanOrEqual(since(atMs - 60_000))
        expect(sentInMinute(charges, atMs)).toBeLessThanOrEqual(since(atMs - 65_000))
        expect(sentBetween(charges, atMs - 140_000, atMs)).toBeGreaterThanOrEqual(since(atMs - 140_000))
      }),
      { numRuns: runs(60) },
    )
  })

  it('give back what was refused, whatever they were put together with', () => {
    let charges: Charges = []
    for (const [offsetMs, tokens] of [
      [0, 500],
      [50, 700],
      [90, 900],
    ] as const)
      charges = charged(charges, tokens, startMs + offsetMs, startMs + 100)
    expect(sentInMinute(charged(charges, -700, startMs + 50, startMs + 200), startMs + 200)).toBe(1_400)
  })
})

describe('a trailing minute', () => {
  it('holds the ceiling of a limit that follows use, for any use, after any history', () => {
    const floor = 90_000
    const tier = 400_000
    const growth = 1.35
    const truth = (before: number) => Math.min(tier, Math.max(floor, Math.floor(growth * before)))
    fc.assert(
      fc.property(anySends, fc.integer({ min: 0, max: 400_000 }), (sends, before) => {
        const spec = {
          rule: 'use-growth',
          floorTokensPerMinute: floor,
          growthPerMinute: growth,
          tierTokensPerMinute: tier,
        } as const
        drive(spec, sends, 'acceleration', ({ acceleration, charges }, atMs) => {
          void charges
          const { low, high } = ceilingAfter(acceleration.trailing, before, atMs)
          expect(low).toBeLessThanOrEqual(truth(before) * faded)
          expect(high * faded).toBeGreaterThan(truth(before))
        })
      }),
      { numRuns: runs(80) },
    )
  })
})

describe('a clock minute', () => {
  it('holds the ceiling of a limit that climbs with time, in any minute, after any history', () => {
    const floor = 64_000
    const step = 17_000
    fc.assert(
      fc.property(anySends, (sends) => {
        const spec = {
          rule: 'time-step',
          floorTokensPerMinute: floor,
          stepTokensPerMinute: step,
          tierTokensPerMinute: 900_000,
          idleResetMinutes: 60,
        } as const
        let firstMinute: number | null = null
        drive(spec, sends, 'acceleration', ({ acceleration, sentTokens }, atMs) => {
          if (firstMinute === null && sentTokens > 0) firstMinute = minuteOf(atMs)
          if (firstMinute === null) return
          const { low, high } = ceilingIn(acceleration.clock, minuteOf(atMs))
          const truth = floor + step * (minuteOf(atMs) - firstMinute)
          expect(low).toBeLessThanOrEqual(truth)
          expect(high).toBeGreaterThan(truth)
        })
      }),
      { numRuns: runs(80) },
    )
  })
})

describe('a bucket', () => {
  it.each([
    ['one minute of it', 210_000, 210_000],
    ['a small burst', 1_000_000, 200_000],
    ['a large burst', 100_000, 400_000],
  ])(
    'with %s is known within a third of its rate once it was full of refusals and acceptances',
    (_, perMinute, burst) => {
      let random = 7
      const next = (low: number, high: number) => {
        random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0
        return low + Math.floor((random / 2 ** 32) * (high - low))
      }
      const mean = burst / 6
      const sends = Array.from({ length: 400 }, () => ({
        afterMs: next(1, (mean / perMinute) * 60_000),
        tokens: next(mean / 2, mean * 1.5),
      }))
      let last: readonly [number, number | null] = [0, null]
      let truth = 0
      let rooms: readonly number[] = []
      const spec = { rule: 'token-bucket', inputTokensPerMinute: perMinute, burstInputTokens: burst } as const
      const rule = makeRule(spec, 'none')
      drive(spec, sends, 'input-tokens-per-minute', (belief, atMs, state) => {
        const limit = believedLimits(belief, atMs)[0]
        if (limit?.family === 'bucket') last = [limit.tokensPerMinute.low, limit.tokensPerMinute.high]
        truth = rule.ceiling(state, atMs)
        rooms = [0, 2].map((trust) => roomAt(belief, atMs, trust))
      })
      expect(last[0]).toBeGreaterThan(perMinute * 0.75)
      expect(last[1]).toBeLessThan(perMinute * 1.35)
      expect(rooms[0]).toBeLessThanOrEqual(truth + mean)
      expect(rooms[1]).toBeGreaterThanOrEqual(truth - mean)
    },
  )
})
