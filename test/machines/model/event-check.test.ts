/** The door of a scope: a malformed event is refused by field, before it changes the scope. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  advance,
  checkEvent,
  contextFrom,
  contractPolicy,
  InvalidInput,
  type ScopeEvent,
} from '../../../machines/index.ts'
import { runs } from '../../properties/runs.ts'
import { blankCall, refusalOf } from '../story.ts'

const at = 1_000
const settled = { type: 'call.settled', at, callId: 'a', outcome: 'completed' }
const evidence = refusalOf('overloaded')
const reading = { dimension: 'requests-per-minute', limit: 50, remaining: -1, resetAtMs: null }

const facts: ReadonlyArray<object> = [
  { type: 'call.submitted', at, call: blankCall },
  { type: 'call.submitted', at, call: blankCall, dispatchAtOnce: true },
  ...['withdrawn', 'dispatched', 'accepted', 'promoted', 'claimed'].map((what) => ({
    type: `call.${what}`,
    at,
    callId: 'a',
  })),
  settled,
  { ...settled, usage: { inputTokens: null, outputTokens: 7 } },
  { ...settled, outcome: 'throttled', evidence: { ...evidence, facts: { limit: 10, unit: 'tokens' } } },
  ...['sends', 'away', 'left'].map((owner) => ({ ...settled, owner, late: true })),
  { type: 'host.closing', at, unused: ['a'] },
  { type: 'provider.evidence', at },
  { type: 'provider.evidence', at, evidence, limits: [reading] },
  { type: 'wait.released', at },
  { type: 'turn.began', at, turnId: 't', betweenRounds: 'hold' },
  { type: 'turn.ended', at, turnId: 't' },
  { type: 'policy.changed', at, policy: contractPolicy },
  { type: 'foreground.changed', at, active: true },
  { type: 'clock.woke', at: 0 },
  { type: 'host.recovered', at },
]

it.each(facts.map((fact) => [JSON.stringify(fact).slice(0, 90), fact]))('%s is taken', (_, fact) => {
  expect(() => checkEvent(fact as ScopeEvent)).not.toThrow()
})

describe('an event is refused', () => {
  const { limits: _, ...halfPolicy } = contractPolicy
  it.each<[string, unknown, string]>([
    ['that is nothing', undefined, 'event.type'],
    ['that is a text', 'clock.woke', 'event.type'],
    ['of a type that no fact has', { type: 'toString', at }, 'event.type'],
    ...[undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, '1000', 8_640_000_000_000_001].map(
      (time): [string, unknown, string] => [
        `at ${time}`,
        { type: 'call.withdrawn', callId: 'a', at: time },
        'event.at',
      ],
    ),
    ['of an owner that stands otherwise', { ...settled, owner: 'back' }, 'event.owner'],
    ['of a cause that nobody knows', { ...settled, cause: 'weather' }, 'event.cause'],
    ['that is late by a number', { ...settled, late: 1 }, 'event.late'],
    ['of a host that closes over no list', { type: 'host.closing', at }, 'event.unused'],
    ['without its call', { type: 'call.submitted', at }, 'event.call'],
    [
      'of a call without tokens',
      { type: 'call.submitted', at, call: { ...blankCall, inputTokens: Number.NaN } },
      'event.call.inputTokens',
    ],
    [
      'of a call in no lane',
      { type: 'call.submitted', at, call: { ...blankCall, lane: 'fast' } },
      'event.call.lane',
    ],
    [
      'that dispatches perhaps',
      { type: 'call.submitted', at, call: blankCall, dispatchAtOnce: 1 },
      'event.dispatchAtOnce',
    ],
    ['without its call\u2019s id', { type: 'call.accepted', at }, 'event.callId'],
    ['of an outcome that nobody knows', { ...settled, outcome: 'lost' }, 'event.outcome'],
    [
      'of a usage that is no number',
      { ...settled, usage: { inputTokens: Number.NaN, outputTokens: null } },
      'event.usage.inputTokens',
    ],
    [
      'of a usage below 0',
      { ...settled, usage: { inputTokens: 1, outputTokens: -1 } },
      'event.usage.outputTokens',
    ],
    ['of no usage', { ...settled, usage: null }, 'event.usage'],
    ['of half a usage', { ...settled, usage: { inputTokens: 1 } }, 'event.usage.outputTokens'],
    ['of no evidence', { ...settled, evidence: null }, 'event.evidence'],
    [
      'of evidence of nothing',
      { ...settled, evidence: { ...evidence, kind: 'mood' } },
      'event.evidence.kind',
    ],
    [
      'of a wait without end',
      { ...settled, evidence: { ...evidence, retryAfterMs: Number.POSITIVE_INFINITY } },
      'event.evidence.retryAfterMs',
    ],
    [
      'of a fact that is no number',
      { ...settled, evidence: { ...evidence, facts: { limit: Number.NaN } } },
      'event.evidence.facts.limit',
    ],
    [
      'of a limit that is no number',
      { type: 'provider.evidence', at, limits: [{ ...reading, remaining: Number.NaN }] },
      'event.limits.0.remaining',
    ],
    [
      'of a limit of nothing',
      { type: 'provider.evidence', at, limits: [{ ...reading, dimension: 'mood' }] },
      'event.limits.0.dimension',
    ],
    [
      'of a turn that does neither',
      { type: 'turn.began', at, turnId: 't', betweenRounds: 'wait' },
      'event.betweenRounds',
    ],
    ['of no turn', { type: 'turn.ended', at }, 'event.turnId'],
    ['of no policy', { type: 'policy.changed', at }, 'event.policy'],
    [
      'of a policy out of its range',
      { type: 'policy.changed', at, policy: { ...contractPolicy, capacity: 0 } },
      'event.policy.capacity',
    ],
    ['of half a policy', { type: 'policy.changed', at, policy: halfPolicy }, 'event.policy.limits'],
    ['of a foreground in between', { type: 'foreground.changed', at, active: 'maybe' }, 'event.active'],
  ])('%s', (_, event, field) => {
    const before = contextFrom('test')
    const refused = (() => {
      try {
        return advance(before, event as ScopeEvent)
      } catch (error) {
        return error
      }
    })()
    expect(refused).toBeInstanceOf(InvalidInput)
    expect((refused as InvalidInput).problems.map((problem) => problem.field)).toContain(field)
    expect(before).toEqual(contextFrom('test'))
  })

  it('with any wrong value in one of its fields', () => {
    const junk = fc.constantFrom(Number.NaN, Number.NEGATIVE_INFINITY, -0.5, Symbol.iterator, [], () => 1)
    fc.assert(
      fc.property(fc.constantFrom(...facts), fc.nat(), junk, (fact, pick, value) => {
        const fields = Object.keys(fact)
        const field = fields[pick % fields.length] as string
        // `limits` and `unused` are lists.
        fc.pre(!(['limits', 'unused'].includes(field) && Array.isArray(value)))
        expect(() => checkEvent({ ...fact, [field]: value } as never)).toThrow(InvalidInput)
      }),
      { numRuns: runs(300) },
    )
  })
})
