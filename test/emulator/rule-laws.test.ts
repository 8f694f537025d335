import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { allOf } from '../../src/emulator/rules/composite.ts'
import type { LimitRule } from '../../src/emulator/rules/rule.ts'
import { makeRule, type RuleSpec } from '../../src/emulator/rules/spec.ts'
import { runs } from '../properties/runs.ts'

const minuteMs = 60_000

interface Arrival {
  readonly gapMs: number
  readonly inputTokens: number
}
interface Entry {
  readonly atMs: number
  readonly inputTokens: number
}

const tokens = fc.integer({ min: 1, max: 300 })
const states = fc.constantFrom('none' as const, 'ceiling' as const, 'retry-after' as const)

/** Small limits, so that short runs hit them. */
const specs = {
  'token-bucket': fc.record({
    rule: fc.constant('token-bucket' as const),
    states,
    inputTokensPerMinute: tokens,
    burstInputTokens: tokens,
  }),
  'changing-bucket': fc
    .record({ states, first: tokens, second: tokens, atMs: fc.integer({ min: 20_000, max: 5 * minuteMs }) })
    .map(({ states, first, second, atMs }) => ({
      rule: 'changing-bucket' as const,
      states,
      changes: [
        { atMs: 0, inputTokensPerMinute: first },
        { atMs, inputTokensPerMinute: second },
      ],
      everyMs: 2 * atMs,
    })),
  'token-window': fc.record({
    rule: fc.constant('token-window' as const),
    states,
    form: fc.constantFrom('fixed' as const, 'sliding' as const),
    inputTokensPerWindow: tokens,
  }),
  'use-growth': fc
    .record({ floor: tokens, growth: fc.double({ min: 1, max: 3, noNaN: true }), above: tokens, states })
    .map(({ floor, growth, above, states }) => ({
      rule: 'use-growth' as const,
      states,
      floorTokensPerMinute: floor,
      growthPerMinute: growth,
      tierTokensPerMinute: floor + above,
    })),
  'time-step': fc
    .record({ floor: tokens, step: tokens, above: tokens, idle: fc.integer({ min: 1, max: 4 }), states })
    .map(({ floor, step, above, idle, states }) => ({
      rule: 'time-step' as const,
      states,
      floorTokensPerMinute: floor,
      stepTokensPerMinute: step,
      tierTokensPerMinute: floor + above,
      idleResetMinutes: idle,
    })),
  'slow-down': fc.record({
    rule: fc.constant('slow-down' as const),
    states,
    steadyTokensPerMinute: tokens,
    growth: fc.double({ min: 1, max: 3, noNaN: true }),
    windowMs: fc.integer({ min: minuteMs, max: 4 * minuteMs }),
  }),
  'requests-per-minute': fc.record({
    rule: fc.constant('requests-per-minute' as const),
    states,
    requestsPerMinute: fc.integer({ min: 1, max: 6 }),
  }),
  'daily-quota': fc.record({
    rule: fc.constant('daily-quota' as const),
    states,
    inputTokensPerDay: fc.integer({ min: 1, max: 3_000 }),
  }),
}

const anySpec: fc.Arbitrary<RuleSpec> = fc.oneof(...Object.values(specs))

const arrivals: fc.Arbitrary<readonly Arrival[]> = fc.array(
  fc.record({
    gapMs: fc.oneof(
      fc.integer({ min: 0, max: 40_000 }),
      fc.constantFrom(0, 1, 30_000, minuteMs - 1, minuteMs, minuteMs + 1, 2 * minuteMs, 6 * minuteMs),
    ),
    inputTokens: fc.integer({ min: 1, max: 350 }),
  }),
  { maxLength: 60 },
)

/** Asks the independent model about the call, given all calls accepted before it. */
type Oracle = (accepted: readonly Entry[], call: Entry) => boolean

const between = (accepted: readonly Entry[], afterMs: number, untilMs: number): number =>
  accepted.reduce(
    (sum, { atMs, inputTokens }) => (atMs > afterMs && atMs <= untilMs ? sum + inputTokens : sum),
    0,
  )

const trailing = (accepted: readonly Entry[], atMs: number): number =>
  between(accepted, atMs - minuteMs, atMs)

/** Level of a bucket whose limit alternates between two, walked from change to change. */
const changingLevel = (
  { changes, everyMs }: Extract<RuleSpec, { readonly rule: 'changing-bucket' }>,
  accepted: readonly Entry[],
  atMs: number,
): number => {
  const limitAt = (timeMs: number): number =>
    changes.findLast((change) => change.atMs <= timeMs % everyMs!)!.inputTokensPerMinute
  const half = changes[1]!.atMs
  const moments = accepted.map((entry) => [entry.atMs, entry.inputTokens] as const)
  for (let change = half; change <= atMs; change += half) moments.push([change, 0])
  moments.push([atMs, 0])
  moments.sort(([one], [other]) => one - other)
  let [level, fromMs] = [limitAt(0) * minuteMs, 0]
  for (const [untilMs, taken] of moments) {
    const limit = limitAt(fromMs)
    level = Math.min(limit * minuteMs, level + (untilMs - fromMs) * limit)
    level = Math.min(limitAt(untilMs) * minuteMs, level) - taken * minuteMs
    fromMs = untilMs
  }
  return Math.floor(level / minuteMs)
}

/** Each rule once more, from its definition, over the whole list of accepted calls. */
const oracleOf = (spec: RuleSpec): Oracle => {
  switch (spec.rule) {
    case 'use-growth':
      return (accepted, { atMs, inputTokens }) => {
        const before = between(accepted, atMs - 2 * minuteMs, atMs - minuteMs)
        const ceiling = Math.max(spec.floorTokensPerMinute, spec.growthPerMinute * before)
        return trailing(accepted, atMs) + inputTokens <= Math.min(spec.tierTokensPerMinute, ceiling)
      }
    case 'time-step':
      return (accepted, { atMs, inputTokens }) => {
        const minute = Math.floor(atMs / minuteMs)
        const minutes = [...accepted.map((entry) => Math.floor(entry.atMs / minuteMs)), minute]
        let start = minute
        for (let index = minutes.length - 1; index > 0; index--) {
          if (minutes[index]! - minutes[index - 1]! - 1 >= spec.idleResetMinutes) break
          start = minutes[index - 1]!
        }
        const climbed = spec.floorTokensPerMinute + (minute - start) * spec.stepTokensPerMinute
        const used = between(accepted, minute * minuteMs - 1, atMs)
        return used + inputTokens <= Math.min(spec.tierTokensPerMinute, climbed)
      }
    case 'slow-down':
      return (accepted, { atMs, inputTokens }) => {
        const begins = Math.floor(atMs / spec.windowMs) * spec.windowMs
        const previous = begins - spec.windowMs
        // The trailing minute is highest at an acceptance or where the window begins.
        const moments = [previous, ...accepted.map((entry) => entry.atMs)].filter(
          (moment) => moment >= previous && moment < begins,
        )
        const peak = Math.max(0, ...moments.map((moment) => trailing(accepted, moment)))
        const limit = Math.max(spec.steadyTokensPerMinute, spec.growth * peak)
        return trailing(accepted, atMs) + inputTokens <= limit
      }
    case 'token-window':
      return (accepted, { atMs, inputTokens }) => {
        const since = spec.form === 'sliding' ? atMs - minuteMs : Math.floor(atMs / minuteMs) * minuteMs - 1
        return between(accepted, since, atMs) + inputTokens <= spec.inputTokensPerWindow
      }
    case 'changing-bucket':
      // Millisecond by millisecond would take hours: from one event to the next, cut at the changes.
      return (accepted, call) => changingLevel(spec, accepted, call.atMs) >= call.inputTokens
    case 'daily-quota':
      return (accepted, { atMs, inputTokens }) => {
        const midnight = Math.floor(atMs / 86_400_000) * 86_400_000
        return between(accepted, midnight - 1, atMs) + inputTokens <= (spec.inputTokensPerDay ?? 0)
      }
    case 'token-bucket':
      return (accepted, call) =>
        withinEveryWindow(
          [...accepted, call],
          spec.burstInputTokens ?? spec.inputTokensPerMinute,
          spec.inputTokensPerMinute,
        )
    case 'requests-per-minute':
      return (accepted, call) =>
        withinEveryWindow(
          [...accepted, call].map(({ atMs }) => ({ atMs, inputTokens: 1 })),
          spec.requestsPerMinute,
          spec.requestsPerMinute,
        )
    default:
      throw new Error(`no oracle for ${spec.rule}`)
  }
}

/** A token bucket is exactly: in no window more than burst + rate x its length. */
const withinEveryWindow = (entries: readonly Entry[], burst: number, perMinute: number): boolean => {
  let sum = 0
  const last = entries.at(-1)!
  for (let index = entries.length - 1; index >= 0; index--) {
    sum += entries[index]!.inputTokens
    if (sum * minuteMs > burst * minuteMs + (last.atMs - entries[index]!.atMs) * perMinute) return false
  }
  return true
}

/** Plays arrivals against a rule and shows each step to `see`. */
const replay = (
  rule: LimitRule<unknown>,
  list: readonly Arrival[],
  see: (step: {
    before: unknown
    call: Entry & { maxOutputTokens: number }
    accepted: readonly Entry[]
  }) => void,
): void => {
  let state = rule.initial(1)
  let atMs = 0
  const accepted: Entry[] = []
  for (const { gapMs, inputTokens } of list) {
    atMs += gapMs
    const call = { atMs, inputTokens, maxOutputTokens: 1 }
    see({ before: state, call, accepted })
    const answer = rule.check(state, call)
    state = answer.state
    if (answer.accepted) accepted.push(call)
  }
}

describe.each(Object.entries(specs))('law of %s', (_name, spec: fc.Arbitrary<RuleSpec>) => {
  test('accepts exactly what its definition accepts, counted from the whole history', () => {
    fc.assert(
      fc.property(spec, arrivals, (one, list) => {
        const rule = makeRule(one)
        const oracle = oracleOf(one)
        replay(rule, list, ({ before, call, accepted }) => {
          expect(rule.check(before, call).accepted).toBe(oracle(accepted, call))
        })
      }),
      { numRuns: runs(300) },
    )
  })

  test('the ceiling is the largest call that is accepted now', () => {
    fc.assert(
      fc.property(spec, arrivals, (one, list) => {
        const rule = makeRule(one)
        replay(rule, list, ({ before, call }) => {
          const ceiling = rule.ceiling(before, call.atMs)
          if (ceiling === Number.POSITIVE_INFINITY) return
          if (ceiling > 0) expect(rule.check(before, { ...call, inputTokens: ceiling }).accepted).toBe(true)
          expect(rule.check(before, { ...call, inputTokens: ceiling + 1 }).accepted).toBe(false)
        })
      }),
    )
  })

  test('a refusal charges nothing', () => {
    fc.assert(
      fc.property(spec, arrivals, (one, list) => {
        const rule = makeRule(one)
        replay(rule, list, ({ before, call }) => {
          const answer = rule.check(before, call)
          if (answer.accepted) return
          for (const laterMs of [0, 1, 30_000, minuteMs, 5 * minuteMs, 86_400_000]) {
            const atMs = call.atMs + laterMs
            expect(rule.ceiling(answer.state, atMs)).toBe(rule.ceiling(before, atMs))
            expect(rule.headers(answer.state, atMs)).toEqual(rule.headers(before, atMs))
          }
        })
      }),
    )
  })

  test('a stated wait is enough and no longer than needed, and nothing is stated that was not asked for', () => {
    fc.assert(
      fc.property(spec, arrivals, (one, list) => {
        const rule = makeRule(one)
        replay(rule, list, ({ before, call }) => {
          const answer = rule.check(before, call)
          if (answer.accepted) return
          const { retryAfterMs, currentLimit, nextLimit } = answer.refusal
          if (rule.states !== 'retry-after') expect(retryAfterMs).toBe(null)
          if (rule.states === 'none') {
            expect([currentLimit, nextLimit]).toEqual([undefined, undefined])
            expect(rule.headers(answer.state, call.atMs)).toEqual([])
          }
          const acceptedAtMs = rule.acceptsAtMs(before, call)
          if (retryAfterMs !== null) expect(call.atMs + retryAfterMs).toBe(acceptedAtMs)
          if (acceptedAtMs === null) {
            for (const minutes of [1, 2, 3, 7, 2_000]) {
              const later = { ...call, atMs: call.atMs + minutes * minuteMs }
              expect(rule.check(answer.state, later).accepted).toBe(false)
            }
          } else {
            expect(rule.check(answer.state, { ...call, atMs: acceptedAtMs }).accepted).toBe(true)
            expect(rule.check(answer.state, { ...call, atMs: acceptedAtMs - 1 }).accepted).toBe(false)
          }
          if (nextLimit !== undefined) {
            const boundaryMs = (Math.floor(call.atMs / minuteMs) + 1) * minuteMs
            expect(rule.ceiling(answer.state, boundaryMs)).toBe(nextLimit)
          }
        })
      }),
    )
  })
})

describe('law of a list of rules', () => {
  test('it accepts when all accept, and then only are all charged', () => {
    fc.assert(
      fc.property(fc.array(anySpec, { maxLength: 4 }), arrivals, (list, calls) => {
        const rules = list.map((spec) => makeRule(spec))
        const all = allOf(rules)
        let together = all.initial(1)
        let apart: readonly unknown[] = rules.map((rule) => rule.initial(1))
        let atMs = 0
        for (const { gapMs, inputTokens } of calls) {
          atMs += gapMs
          const call = { atMs, inputTokens, maxOutputTokens: 1 }
          const single = rules.map((rule, index) => rule.check(apart[index], call))
          const answer = all.check(together, call)
          expect(answer.accepted).toBe(single.every(({ accepted }) => accepted))
          if (answer.accepted) apart = single.map(({ state }) => state)
          else expect(answer.refusal.rule).toBe(rules[single.findIndex(({ accepted }) => !accepted)]!.name)
          together = answer.state
          expect(all.ceiling(together, atMs)).toBe(
            Math.min(...rules.map((rule, index) => rule.ceiling(apart[index], atMs))),
          )
        }
      }),
    )
  })

  test('the time at which it accepts is one at which it accepts', () => {
    fc.assert(
      fc.property(fc.array(anySpec, { minLength: 1, maxLength: 3 }), arrivals, (list, calls) => {
        const all = allOf(list.map((spec) => makeRule(spec)))
        let state = all.initial(1)
        let atMs = 0
        for (const { gapMs, inputTokens } of calls) {
          atMs += gapMs
          const call = { atMs, inputTokens, maxOutputTokens: 1 }
          const acceptsAtMs = all.acceptsAtMs(state, call)
          if (acceptsAtMs !== null)
            expect(all.check(state, { ...call, atMs: acceptsAtMs }).accepted).toBe(true)
          const answer = all.check(state, call)
          expect(acceptsAtMs === atMs).toBe(answer.accepted)
          state = answer.state
        }
      }),
    )
  })
})
