/**
 * The bound on delays of background work by primaries: a number from the policy, reached and never exceeded.
 */

import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contractPolicy, parsePolicy, worstCaseWaitMs } from '../../../machines/index.ts'
import { runs } from '../../properties/runs.ts'
import { Story } from '../story.ts'

const policy = {
  ...contractPolicy,
  capacity: 32,
  reserve: 0,
  quantumTokens: 100,
  maxDeferralMs: 10_000,
  quietWindowMs: 0,
  inFlight: 'tolerate',
} as const

const month = 30 * 24 * 60 * 60_000

/** A scope whose gate a primary keeps closed for as long as the test needs. */
const busy = (over = {}): Story => {
  const story = new Story({ ...policy, ...over })
  story.primary('p')
  return story
}

describe('the bound', () => {
  it.each([
    ['one principal, its first call', {}, 10_000],
    ['one principal, its third call', { callsAhead: 2 }, 30_000],
    ['four principals', { principals: 4 }, 40_000],
    ['four principals, the second call', { principals: 4, callsAhead: 1 }, 80_000],
    ['three principals, the third of its calls', { principals: 3, callsAhead: 2 }, 90_000],
  ])('of %s', (_, ask, boundMs) => {
    expect(worstCaseWaitMs(parsePolicy(policy), ask)).toBe(boundMs)
  })
})

/** Calls of one principal that come behind everybody else's. */
interface Late {
  readonly principals: number
  readonly callsAhead: number
  readonly largestCallTokens: number
  readonly weight: number
}

const anyLate: fc.Arbitrary<Late> = fc.record({
  principals: fc.integer({ min: 1, max: 4 }),
  callsAhead: fc.integer({ min: 0, max: 3 }),
  largestCallTokens: fc.integer({ min: 1, max: 700 }),
  weight: fc.constantFrom(0.25, 0.5, 1, 2, 3),
})

describe('a primary that never ends', () => {
  it.each([1, 2, 3, 5])(
    'with %i principals: each one is served within the bound, and the last exactly at it',
    (principals) => {
      const story = busy()
      const names = Array.from({ length: principals }, (_, index) => `r${index}`)
      for (const name of names) story.auxiliary(name, { principal: name, inputTokens: 100 })
      const begunMs = story.at
      const waits: number[] = []
      for (let served = 0; served < principals; served += 1) {
        while (HashMap.size(story.context.waiting) === principals - served)
          story.pass(story.wakesInMs as number)
        waits.push(story.at - begunMs)
      }
      const boundMs = worstCaseWaitMs(policy, { principals })
      expect(Math.max(...waits)).toBe(boundMs)
      expect(waits).toEqual(names.map((_, index) => policy.maxDeferralMs * (index + 1)))
    },
  )

  /** How long the last of them waits behind others that never run out of calls, and its bound. */
  const waitOf = ({ principals, callsAhead, largestCallTokens, weight }: Late, others: number) => {
    const timeouts = {
      primaryActiveTimeoutMs: month,
      auxiliaryActiveTimeoutMs: month,
      auxiliaryPendingTimeoutMs: month,
    }
    const weighted = parsePolicy({ ...policy, ...timeouts, capacity: 512, weights: { late: weight } })
    const story = busy(weighted)
    for (let index = 1; index < principals; index += 1)
      for (let call = 0; call < 120; call += 1)
        story.auxiliary(`r${index}/${call}`, { principal: `r${index}`, inputTokens: others })
    for (let call = 0; call <= callsAhead; call += 1)
      story.auxiliary(`late/${call}`, { principal: 'late', inputTokens: largestCallTokens })
    const begunMs = story.at
    while (story.reasonOf(`late/${callsAhead}`) !== null) story.pass(story.wakesInMs as number)
    const boundMs = worstCaseWaitMs(weighted, {
      principals,
      callsAhead,
    })
    return { waitedMs: story.at - begunMs, boundMs }
  }

  it('whatever the sizes of calls and the weight of their principal, none waits longer than the bound', () => {
    fc.assert(
      fc.property(anyLate, fc.integer({ min: 0, max: 400 }), (late, others) => {
        const { waitedMs, boundMs } = waitOf(late, others)
        expect(waitedMs).toBeLessThanOrEqual(boundMs)
      }),
      { numRuns: runs(60) },
    )
  })

  it('behind others whose calls are a quantum each, one that comes last waits exactly for the bound', () => {
    fc.assert(
      fc.property(anyLate, (late) => {
        const largestCallTokens = policy.quantumTokens
        const { waitedMs, boundMs } = waitOf({ ...late, largestCallTokens }, policy.quantumTokens)
        expect(waitedMs).toBe(boundMs)
      }),
      { numRuns: runs(60) },
    )
  })

  it('a principal with several calls of a whole quantum gets one per deferral', () => {
    const story = busy()
    for (let index = 0; index < 4; index += 1) story.auxiliary(`a${index}`, { inputTokens: 100 })
    for (let index = 0; index < 4; index += 1) {
      expect(story.pass(9_999)).toEqual([])
      expect(story.pass(1)).toEqual([`release a${index}: fairness`])
    }
  })

  it('a quantum is spent on several small calls', () => {
    const story = busy()
    for (let index = 0; index < 5; index += 1) story.auxiliary(`a${index}`, { inputTokens: 40 })
    expect(story.pass(10_000)).toEqual([
      'release a0: fairness',
      'release a1: fairness',
      'release a2: fairness',
    ])
  })
})

describe('primaries that never stop coming', () => {
  it('each waits for one quantum at most, and quanta and primaries take turns', () => {
    const story = busy({ capacity: 2 })
    for (let index = 0; index < 20; index += 1) story.auxiliary(`a${index}`, { inputTokens: 100 })
    const order: string[] = []
    let primaries = 0
    for (let step = 0; step < 60; step += 1) {
      story.primary(`p${primaries++}`)
      story.pass(1_000)
      for (const id of story.running) {
        order.push(id.charAt(0))
        story.settle(id)
      }
    }
    expect(order.join('')).not.toContain('aa')
    expect(order.filter((lane) => lane === 'a').length).toBeGreaterThanOrEqual(5)
  })

  it('whatever they do, no auxiliary waits longer than the bound while a place is free for it', () => {
    const arrival = fc.record({
      gapMs: fc.integer({ min: 0, max: 7_000 }),
      runMs: fc.integer({ min: 1, max: 40_000 }),
      lane: fc.constantFrom('primary' as const, 'auxiliary' as const, 'auxiliary' as const),
      principal: fc.constantFrom('a', 'b', 'c'),
      inputTokens: fc.constantFrom(0, 40, 100, 101, 350),
      hold: fc.boolean(),
      turn: fc.option(fc.nat({ max: 2 })),
    })
    fc.assert(
      fc.property(
        fc.array(arrival, { maxLength: 40 }),
        fc.constantFrom('whileWaiting', 'untilAccepted', 'untilSettled'),
        (arrivals, hold) => {
          const story = busy({ hold: hold as never, capacity: 64 })
          const ends: Array<{ id: string; atMs: number }> = []
          const submitted = new Map<string, number>()
          /** The bound of each call at its arrival, raised by later arrivals. */
          const calls = new Map<string, { principal: string; ahead: number }>()
          const check = () => {
            const principals = HashMap.size(story.context.principals)
            for (const { call } of HashMap.values(story.context.waiting)) {
              if (call.lane !== 'auxiliary') continue
              const { ahead } = calls.get(call.id) as { ahead: number }
              const boundMs = worstCaseWaitMs(policy, {
                principals: Math.max(3, principals),
                callsAhead: ahead,
              })
              expect(story.at - (submitted.get(call.id) as number)).toBeLessThanOrEqual(boundMs)
            }
          }
          for (const [index, { gapMs, runMs, lane, principal, inputTokens, turn }] of arrivals.entries()) {
            const untilMs = story.at + gapMs
            for (;;) {
              const next = ends
                .filter(({ atMs }) => atMs <= untilMs)
                .sort((one, other) => one.atMs - other.atMs)[0]
              story.pass((next?.atMs ?? untilMs) - story.at)
              check()
              if (next === undefined) break
              ends.splice(ends.indexOf(next), 1)
              if (story.running.includes(next.id)) story.settle(next.id)
              else ends.push({ id: next.id, atMs: next.atMs + 5_000 })
            }
            const id = `${lane.charAt(0)}${index}`
            submitted.set(id, story.at)
            const ahead = [...HashMap.values(story.context.waiting)].filter(
              ({ call }) => call.lane === 'auxiliary' && call.principal === principal,
            ).length
            calls.set(id, { principal, ahead })
            if (lane === 'primary') story.primary(id)
            // Calls of turns that have begun go before it, and its bound holds.
            else
              story.auxiliary(id, {
                principal,
                inputTokens,
                turnId: turn === null ? null : `${principal}${turn}`,
              })
            ends.push({ id, atMs: story.at + runMs })
          }
          story.pass(120_000)
          check()
        },
      ),
      { numRuns: runs(150) },
    )
  })
})
