/** The ramp's estimate of a ceiling, under rules that enforce it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GrowthKind } from '../../../machines/limits/ceiling.ts'
import { acceptedUnder, emptyRamp, type Ramp, refusedUnder, use } from '../../../machines/limits/ramp.ts'
import { decodeRules, makeRule, type RuleSpec } from '../../../src/emulator/index.ts'
import { runs } from '../../properties/runs.ts'
import { refusalOf } from '../story.ts'

const startMs = 1_700_000_040_000

/** Sends calls to a rule one after the other, and tells the ramp the facts that a client would see. */
const observed = (spec: RuleSpec, calls: ReadonlyArray<{ afterMs: number; inputTokens: number }>): Ramp => {
  const rule = makeRule(spec)
  let state = rule.initial(1)
  let ramp = emptyRamp
  let atMs = startMs
  for (const { afterMs, inputTokens } of calls) {
    atMs += afterMs
    const answer = rule.check(state, { atMs, inputTokens, maxOutputTokens: 0 })
    state = answer.state
    ramp = use(ramp, inputTokens, atMs, atMs)
    if (answer.accepted) {
      ramp = acceptedUnder(ramp, inputTokens, atMs, atMs)
      continue
    }
    ramp = use(ramp, -inputTokens, atMs, atMs)
    const { kind, currentLimit, nextLimit } = answer.refusal
    const facts = {
      ...(currentLimit === undefined ? {} : { currentLimit }),
      ...(nextLimit === undefined ? {} : { nextLimit }),
    }
    const evidence = refusalOf(kind, { facts })
    ramp = refusedUnder(ramp, { tokens: inputTokens, evidence, atMs, dispatchedAtMs: atMs })
  }
  return ramp
}

const specOf = (spec: unknown): RuleSpec => decodeRules([spec])[0]!

/** Small calls every two seconds: minutes are packed full to within one of them. */
const steady = (minutes: number, inputTokens = 4_000) =>
  Array.from({ length: minutes * 30 }, () => ({ afterMs: 2_000, inputTokens: inputTokens * 3 }))

describe('the growth that is named', () => {
  it.each([
    [
      'withUse',
      {
        rule: 'use-growth',
        floorTokensPerMinute: 60_000,
        growthPerMinute: 1.35,
        tierTokensPerMinute: 1_000_000,
      },
    ],
    [
      'withUse',
      {
        rule: 'use-growth',
        floorTokensPerMinute: 60_000,
        growthPerMinute: 1.35,
        tierTokensPerMinute: 1_000_000,
        states: 'ceiling',
      },
    ],
    [
      'withTime',
      {
        rule: 'time-step',
        floorTokensPerMinute: 60_000,
        stepTokensPerMinute: 40_000,
        tierTokensPerMinute: 1_000_000,
        idleResetMinutes: 6,
        states: 'none',
      },
    ],
    ['none', { rule: 'token-bucket', inputTokensPerMinute: 120_000, states: 'none' }],
    ['none', { rule: 'token-bucket', inputTokensPerMinute: 120_000, states: 'ceiling' }],
  ] as const)('is %s after eight busy minutes of %o', (kind, spec) => {
    const ramp = observed(specOf(spec), steady(8))
    const { growth } = ramp
    expect(growth.kind).toBe(kind)
    if (kind === 'withUse') expect(growth.factor).toBeCloseTo(1.35, 1)
    if (kind === 'withTime') expect(Math.abs(growth.tokensPerMinute! - 40_000)).toBeLessThan(8_000)
  })

  it('is unknown before anything was refused, and before minutes can be compared', () => {
    const spec = specOf({ rule: 'token-bucket', inputTokensPerMinute: 120_000, states: 'none' })
    expect(observed(spec, steady(8, 100)).growth.kind).toBe('unknown')
    expect(observed(spec, steady(1)).growth.kind).toBe('unknown')
  })

  const call = fc.record({
    afterMs: fc.oneof(fc.integer({ min: 100, max: 8_000 }), fc.integer({ min: 100, max: 90_000 })),
    inputTokens: fc.integer({ min: 1_000, max: 90_000 }),
  })
  const calls = fc.array(call, { minLength: 20, maxLength: 300 })
  const tokens = (min: number, max: number) => fc.integer({ min, max })
  const useGrowth = fc.record({
    rule: fc.constant('use-growth'),
    floorTokensPerMinute: tokens(40_000, 150_000),
    growthPerMinute: fc.double({ min: 1.15, max: 2, noNaN: true }),
    tierTokensPerMinute: fc.constant(10_000_000),
  })
  const timeStep = fc.record({
    rule: fc.constant('time-step'),
    floorTokensPerMinute: tokens(40_000, 150_000),
    stepTokensPerMinute: tokens(10_000, 80_000),
    tierTokensPerMinute: fc.constant(10_000_000),
    idleResetMinutes: tokens(4, 8),
    states: fc.constantFrom('none', 'ceiling'),
  })
  const bucket = fc.record({
    rule: fc.constant('token-bucket'),
    inputTokensPerMinute: tokens(90_000, 300_000),
    states: fc.constantFrom('none', 'ceiling'),
  })
  const laws: ReadonlyArray<[string, fc.Arbitrary<unknown>, ReadonlyArray<GrowthKind>]> = [
    ['use', useGrowth, ['unknown', 'withUse']],
    ['time', timeStep, ['unknown', 'withTime']],
    ['nothing: it only refills', bucket, ['unknown', 'none']],
  ]
  it.each(laws)(
    'is never a wrong one, whatever the traffic, where the ceiling follows %s',
    (_, rule, allowed) => {
      fc.assert(
        fc.property(rule, calls, (spec, list) => {
          expect(allowed).toContain(observed(specOf(spec), list).growth.kind)
        }),
        { numRuns: runs(300) },
      )
    },
  )
})
