/**
 * A scope that finds one of its own rules broken stops. The error names the rule, the scope, the event and
 * the fault.
 */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import {
  advance,
  contractPolicy,
  InvariantBroken,
  type ScopeContext,
  type ScopeEvent,
} from '../../../machines/index.ts'
import { broken, checked } from '../../../machines/model/invariant.ts'
import { checkGrant, checkScope } from '../../../machines/scheduling/invariants.ts'
import type { Waiting } from '../../../machines/state/calls.ts'
import { Story } from '../story.ts'

/** One place taken, two auxiliaries of one principal behind it, and a primary that waits. */
const busy = (): ScopeContext => {
  const story = new Story({ capacity: 1 })
  story.auxiliary('a')
  story.auxiliary('b', { principal: 'one' })
  story.auxiliary('c', { principal: 'one' })
  story.primary('p')
  return story.context
}

const found = (work: () => unknown): InvariantBroken => {
  try {
    work()
  } catch (error) {
    if (error instanceof InvariantBroken) return error
    throw error
  }
  throw new Error('nothing was found')
}

const woke: ScopeEvent = { type: 'clock.woke', at: 1_000_001 }
const nan = Number.NaN

describe('after an event', () => {
  it.each<[string, (context: ScopeContext) => Partial<ScopeContext>, string, string]>([
    ...(
      ['primaryReady', 'primaryUnaccepted', 'auxiliaryInTheWay', 'places', 'auxiliaryWaiting'] as const
    ).map((name): [string, (context: ScopeContext) => Partial<ScopeContext>, string, string] => [
      `${name} is below 0`,
      ({ counts }) => ({ counts: { ...counts, [name]: -1 } }),
      'I3',
      `"${name}":-1`,
    ]),
    ['a count is no number', ({ counts }) => ({ counts: { ...counts, places: nan } }), 'I3', '"places":null'],
    [
      'more are ready than wait',
      ({ counts }) => ({ counts: { ...counts, primaryReady: 2 } }),
      'I3',
      '"primaryReady":2',
    ],
    [
      'more are unaccepted than fly',
      ({ counts }) => ({ counts: { ...counts, primaryUnaccepted: 1 } }),
      'I3',
      '"primaryUnaccepted":1',
    ],
    [
      'more are in the way than fly',
      ({ counts }) => ({ counts: { ...counts, auxiliaryInTheWay: 2 } }),
      'I3',
      '"auxiliaryInTheWay":2',
    ],
    [
      'more places are taken than calls fly',
      ({ counts }) => ({ counts: { ...counts, places: 2 } }),
      'I3',
      '"places":2',
    ],
    [
      'a waiting call is counted in no lane',
      ({ counts }) => ({ counts: { ...counts, auxiliaryWaiting: 1 } }),
      'I3',
      '3 calls wait, but the lanes count 1 + 1',
    ],
    [
      'a waiting call is gone',
      ({ waiting }) => ({ waiting: HashMap.remove(waiting, 'c') }),
      'I3',
      '2 calls wait, but the lanes count 1 + 2',
    ],
    [
      'a call in flight is gone',
      ({ inFlight }) => ({ inFlight: HashMap.remove(inFlight, 'a') }),
      'I3',
      '0 calls are in flight, but the lanes count 0 + 1',
    ],
    [
      'the lines have more principals than there are',
      ({ lines }) => ({ lines: { ...lines, size: 3 } }),
      'I4',
      'the lines have 3 principals of 2',
    ],
    [
      'the lines have less than nobody',
      ({ lines }) => ({ lines: { ...lines, size: -1 } }),
      'I4',
      'the lines have -1 principals',
    ],
    [
      'a principal stands in one order alone',
      ({ lines: { of, ...rest } }) => ({
        lines: { ...rest, of: { background_ingestion: { ...of.background_ingestion!, byTag: null } } },
      }),
      'I4',
      'not all in both orders',
    ],
    ['virtual time is no number', () => ({ virtualTokens: nan }), 'I7', 'no number'],
    [
      'a deadline is no number',
      ({ phase }) => ({ phase: { ...phase, lingerUntilMs: nan } }),
      'I7',
      '"lingerUntilMs":null',
    ],
    [
      'a deadline never comes',
      ({ phase }) => ({ phase: { ...phase, patienceUntilMs: Number.POSITIVE_INFINITY } }),
      'I7',
      '"patienceUntilMs":null',
    ],
    [
      'a sum is no number',
      ({ drain }) => ({ drain: { ...drain, servedTokens: nan } }),
      'I7',
      '"servedTokens":null',
    ],
    ['the next timeout is no number', () => ({ sweepAt: nan }), 'I7', '"sweepAt":null'],
  ])('%s', (_, corrupt, invariant, what) => {
    const context = busy()
    const error = found(() =>
      checked('test', 'clock.woke', () => checkScope({ ...context, ...corrupt(context) })),
    )
    expect(error).toMatchObject({ invariant, scope: 'test', event: 'clock.woke' })
    expect(error.found).toContain(what)
  })

  it('all is well in a scope that works', () => {
    expect(() => checkScope(busy())).not.toThrow()
  })
})

describe('at a grant', () => {
  const { waiting } = busy()
  const callOf = (id: string) => [...HashMap.values(waiting)].find(({ call }) => call.id === id) as Waiting
  const policy = { ...contractPolicy, capacity: 4, reserve: 1 }
  const counted = (over: Partial<ScopeContext['counts']>, rest: Partial<ScopeContext> = {}): ScopeContext => {
    const context = busy()
    return {
      ...context,
      policy,
      state: 'idle',
      ...rest,
      counts: { ...context.counts, primaryWaiting: 0, ...over },
    }
  }

  it.each<[string, string, ScopeContext, Parameters<typeof checkGrant>[2], string, string]>([
    ['no place is left', 'p', counted({ places: 4 }), 'primary', 'I2', 'call p is granted place 5 of 4'],
    [
      'places are miscounted',
      'p',
      counted({ places: -1 }),
      'primary',
      'I2',
      'call p is granted place 0 of 4',
    ],
    [
      'a dependency finds no place',
      'b',
      counted({ places: 4 }),
      'dependency',
      'I2',
      'call b is granted place 5 of 4',
    ],
    [
      'the last places are kept',
      'b',
      counted({ places: 3, auxiliaryInTheWay: 3 }),
      'open',
      'I2',
      'call b is granted auxiliary place 4 of 3',
    ],
    [
      'the gate is closed',
      'b',
      counted({ primaryWaiting: 1 }),
      'open',
      'I1',
      'granted as open in idle while a primary closes the gate',
    ],
    [
      'the backlog drains beside a primary',
      'b',
      counted({ primaryWaiting: 1 }, { state: 'auxiliaryDraining' }),
      'drain',
      'I1',
      'granted as drain',
    ],
    [
      'a warm-up goes in the wrong state',
      'b',
      counted({ primaryWaiting: 1 }, { state: 'primaryPending' }),
      'warm-up',
      'I1',
      'granted as warm-up in primaryPending',
    ],
    [
      'a quantum goes in the wrong state',
      'b',
      counted({ primaryWaiting: 1 }, { state: 'quietRamp.quiet' }),
      'fairness',
      'I1',
      'granted as fairness in quietRamp.quiet',
    ],
  ])('%s', (_, id, context, reason, invariant, what) => {
    const error = found(() =>
      checked('test', woke.type, () => checkGrant(context, callOf(id), reason, false)),
    )
    expect(error.invariant).toBe(invariant)
    expect(error.found).toContain(what)
  })

  it.each<[string, ScopeContext, Parameters<typeof checkGrant>[2], boolean]>([
    ['the gate is open', counted({ places: 2, auxiliaryInTheWay: 2 }), 'open', false],
    [
      'a primary depends on it',
      counted({ places: 3, auxiliaryInTheWay: 3, primaryWaiting: 1 }),
      'dependency',
      false,
    ],
    ['it borrows a place', counted({ places: 4, primaryWaiting: 1 }), 'nested', true],
    ['its quantum is due', counted({ primaryWaiting: 1 }, { state: 'auxiliaryDraining' }), 'fairness', false],
    ['it warms up', counted({ primaryWaiting: 1 }, { state: 'quietRamp.quiet' }), 'warm-up', false],
    [
      'it is paid back in time',
      counted({ primaryWaiting: 1 }, { state: 'quietRamp.quiet' }),
      'backfill',
      false,
    ],
  ])('it may go when %s', (_, context, reason, borrowed) => {
    expect(() => checkGrant(context, callOf('b'), reason, borrowed)).not.toThrow()
  })

  it('a capacity that fell below what is in flight breaks nothing', () => {
    const story = new Story({ capacity: 3, reserve: 0 })
    for (const id of ['a', 'b', 'c', 'd']) story.auxiliary(id)
    story.change({ capacity: 1 })
    story.settle('a')
    expect([story.running, story.waiting]).toEqual([['b', 'c'], ['d']])
  })
})

describe('in the work on an event', () => {
  it.each<[string, (context: ScopeContext) => Partial<ScopeContext>, ScopeEvent, string, string]>([
    [
      'a principal leaves a backlog that it does not have',
      ({ principals }) => ({ principals: HashMap.remove(principals, 'one') }),
      { type: 'call.withdrawn', at: 1_000_001, callId: 'b' },
      'I4',
      'principal one leaves a backlog that it does not have',
    ],
    [
      'a principal stands in a line without a backlog',
      ({ principals, lines, counts, waiting }) => ({
        principals,
        lines,
        counts: { ...counts, primaryWaiting: 0, primaryReady: 0, auxiliaryWaiting: 1 },
        waiting: HashMap.fromIterable([...waiting].filter(([id]) => id === 'nobody')),
        state: 'idle',
      }),
      { type: 'call.settled', at: 1_000_001, callId: 'a', outcome: 'completed' },
      'I4',
      'principal one stands in a line without a backlog',
    ],
    [
      'a call that is refused waits already',
      ({ waiting, inFlight }) => {
        const flight = [...HashMap.values(inFlight)][0]!
        const twin = { ...[...HashMap.values(waiting)][0]!, call: flight.call }
        return { waiting: HashMap.set(waiting, 'a', twin) }
      },
      { type: 'call.settled', at: 1_000_001, callId: 'a', outcome: 'throttled' },
      'I4',
      'call a enters a place that it holds already',
    ],
  ])('%s', (_, corrupt, event, invariant, what) => {
    const context = busy()
    const error = found(() => advance({ ...context, ...corrupt(context) }, event))
    expect(error).toMatchObject({ _tag: 'InvariantBroken', invariant, scope: 'test', event: event.type })
    expect(error.message).toBe(`${invariant} is broken: scope test, at ${event.type}: ${what}`)
  })

  it('the context that was stays as it was', () => {
    const context = busy()
    const before = JSON.stringify(context.counts)
    const corrupted = { ...context, drain: { ...context.drain, servedTokens: nan } }
    expect(() => advance(corrupted, { type: 'foreground.changed', at: 1, active: true })).toThrow(
      InvariantBroken,
    )
    expect(JSON.stringify(context.counts)).toBe(before)
  })

  it('any other error goes through as it is', () => {
    const other = new Error('something else')
    expect(() =>
      checked('test', 'clock.woke', () => {
        throw other
      }),
    ).toThrow(other)
    expect(() => broken('I1', 'what')).toThrow('what')
  })
})
