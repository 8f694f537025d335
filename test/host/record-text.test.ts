/** The journal's text equals that of `JSON.stringify`, for every event and every name. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Call, Decision, ScopeEvent, Usage } from '../../machines/index.ts'
import { recordText } from '../../src/host/record-text.ts'
import { runs } from '../properties/runs.ts'
import { anyMove, anyPolicy, Drive } from '../properties/scope-drive.ts'

// Every field that the types have: one that is added does not compile here until it is tried below.
const call: Required<Call> = {
  id: 'turn-1',
  turnId: 'turn',
  lane: 'primary',
  priorityClass: 'interactive',
  principal: 'default',
  inputTokens: 181_000,
  outputTokens: 4_000,
  deadlineAt: 1_700_000_300_000,
  dependsOn: ['merge-1', 'merge-2'],
  parentId: 'turn-0',
  maxOutputTokens: 8_192,
}
const decision: Required<Decision> = {
  callId: 'turn-1',
  verdict: 'defer',
  reason: 'budget',
  at: 1_700_000_000_000,
  state: 'quietRamp.quiet',
  wakeAt: 1_700_000_060_000,
  dispatched: true,
  retryAfterMs: 250,
}
const usage: Required<Usage> = {
  inputTokens: 180_412,
  outputTokens: null,
  allInputTokens: 190_000,
  cacheReadTokens: 9_588,
}
const submitted: Required<Extract<ScopeEvent, { type: 'call.submitted' }>> = {
  type: 'call.submitted',
  call,
  dispatchAtOnce: true,
  at: 1_700_000_000_000,
}
const settled: Required<Extract<ScopeEvent, { type: 'call.settled' }>> = {
  type: 'call.settled',
  callId: 'turn-1',
  outcome: 'throttled',
  usage,
  evidence: {
    kind: 'acceleration',
    scope: 'model',
    retryAfterMs: 1_000,
    retryable: true,
    facts: { limit: 1 },
  },
  owner: 'sends',
  cause: 'never-sent',
  late: true,
  at: 1_700_000_000_000,
}

const same = (event: ScopeEvent, decisions: ReadonlyArray<Decision>): void =>
  expect(recordText(event, decisions)).toBe(JSON.stringify({ event, decisions }))

const bare = <A extends object>(value: A, ...names: ReadonlyArray<keyof A>): A =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name as keyof A))) as A

describe('a record as text', () => {
  it.each<[string, ScopeEvent, ReadonlyArray<Decision>]>([
    ['every field of a submission and of a decision', submitted, [decision]],
    ['every field of a settlement, with what the provider said', settled, [decision, decision]],
    ['a settlement that the provider said nothing of', bare(settled, 'evidence'), [decision]],
    [
      'more of the usage than the core reads',
      bare({ ...settled, usage: { ...usage, cacheReadTokens: 7 } as Usage }, 'evidence'),
      [],
    ],
    ['a settlement without usage', bare(settled, 'evidence', 'usage'), []],
    ['a submission whose owner says when it sends', bare(submitted, 'dispatchAtOnce'), []],
    [
      'a call that names nobody',
      { ...submitted, call: { ...call, turnId: null, deadlineAt: null, dependsOn: [], parentId: null } },
      [bare(decision, 'wakeAt', 'dispatched', 'retryAfterMs')],
    ],
    ['a wake-up that only an event can bring', submitted, [{ ...decision, wakeAt: null }]],
    ['a wake-up that never comes', submitted, [{ ...decision, wakeAt: Number.POSITIVE_INFINITY }]],
    [
      'an event of another kind',
      { type: 'turn.began', at: 1, turnId: 'a "turn"', betweenRounds: 'hold' },
      [],
    ],
  ])('has %s', (_, event, decisions) => same(event, decisions))

  it('has any id, escaped where JSON escapes it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (id, other) => {
        const named = { ...call, id, turnId: other, principal: id, parentId: other, dependsOn: [id, other] }
        same({ ...submitted, call: named }, [{ ...decision, callId: id }])
        same(bare({ ...settled, callId: id }, 'evidence'), [{ ...decision, callId: other }])
      }),
    )
    for (const id of ['"', '\\', '\u0000', '\u007f', '\u2028', 'é', '\ud800', '🜂'])
      same({ ...submitted, call: { ...call, id } }, [])
  })

  it('means the same for every event of any history', () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(anyMove, { maxLength: 60 }), (policy, moves) => {
        const drive = new Drive(policy)
        for (const move of moves) {
          drive.move(move)
          const [event, { decisions }] = [drive.events.at(-1)!, drive.context]
          const text = JSON.stringify({ event, decisions })
          expect(JSON.parse(recordText(event, decisions))).toEqual(JSON.parse(text))
        }
      }),
      { numRuns: runs(60) },
    )
  })
})
