/** The witness's own rules where they are easily got wrong: which ids may come again. */
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { type Policy, parsePolicy, providerScope, type ScopeEvent } from '../../machines/index.ts'
import { InvariantBroken, Witness } from '../../src/simulation/witness.ts'

const call = {
  id: 'a',
  turnId: null,
  lane: 'auxiliary',
  priorityClass: 'background_ingestion',
  principal: 'tenant',
  inputTokens: 10,
  outputTokens: 10,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
} as const

/** A scope and its witness, one event a millisecond. */
const watched = (input = {}) => {
  const policy: Policy = parsePolicy(input)
  const actor = createActor(providerScope, { input: { scope: 'test', policy } }).start()
  const witness = new Witness(policy)
  let at = 0
  return (fact: object) => {
    const event = { ...fact, at: ++at } as ScopeEvent
    actor.send(event)
    const { scope } = actor.getSnapshot().context
    witness.observe(event, scope.decisions, scope)
    return scope.decisions.map(({ verdict, reason }) => `${verdict} ${reason}`)
  }
}

const submit = { type: 'call.submitted', call }

describe('an id that comes again', () => {
  it.each([
    ['its owner took it back while it waited', { capacity: 2, reserve: 0 }, ['blocker', 'other']],
    ['its owner gave its permit back unused', {}, []],
  ])('is a new call when %s', (_, policy, others) => {
    const tell = watched(policy)
    for (const id of others) tell({ type: 'call.submitted', call: { ...call, id } })
    const first = tell(submit)
    tell({ type: 'call.withdrawn', callId: 'a' })
    expect(tell(submit)).toEqual(first)
  })

  it('is answered when it was settled, and never granted', () => {
    const tell = watched()
    tell(submit)
    tell({ type: 'call.dispatched', callId: 'a' })
    tell({ type: 'call.settled', callId: 'a', outcome: 'completed' })
    tell({ type: 'call.withdrawn', callId: 'a' })
    expect(tell(submit)).toEqual(['reject already-settled'])
    const scope = createActor(providerScope, { input: { scope: 'test' } }).getSnapshot().context.scope
    const witness = new Witness(parsePolicy({}))
    const grant = { callId: 'a', verdict: 'admit', reason: 'open', at: 1, state: 'idle' } as const
    const settled = { type: 'call.settled', at: 1, callId: 'a', outcome: 'completed' } as const
    expect(() => witness.observe(settled, [grant], scope)).toThrow(InvariantBroken)
  })
})
