/**
 * The scope actor inside a foreign XState system, without our host: invoked, fed with events, listened to.
 */

import { type Call, type Decision, providerScope, type ScopeEvent, wakeAt } from 'rightofway/machines'
import { expect, it } from 'vitest'
import { assign, createActor, sendTo, setup } from 'xstate'

/** A host that keeps the scope as an invoked child and notes which calls it may send. */
const agentHost = setup({
  types: {
    context: {} as { readonly granted: ReadonlyArray<string> },
    events: {} as
      | { readonly type: 'fact'; readonly fact: ScopeEvent }
      | { readonly type: 'granted'; readonly callId: string },
  },
  actors: { providerScope },
}).createMachine({
  context: { granted: [] },
  invoke: {
    id: 'lanes',
    src: 'providerScope',
    input: { scope: 'anthropic/k1/opus', policy: { capacity: 4 } },
  },
  on: {
    fact: { actions: sendTo('lanes', ({ event }) => event.fact) },
    granted: { actions: assign({ granted: ({ context, event }) => [...context.granted, event.callId] }) },
  },
})

const call = (id: string, lane: Call['lane'], inputTokens: number): Call => ({
  id,
  lane,
  inputTokens,
  turnId: null,
  priorityClass: lane === 'primary' ? 'interactive' : 'background_ingestion',
  principal: 'residence-1',
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
})

it('an own XState system invokes the scope, sends it facts and hears its decisions', () => {
  const host = createActor(agentHost).start()
  const lanes = host.getSnapshot().children['lanes']!
  const decisions: Decision[] = []
  lanes.on('decided', (event) => {
    decisions.push(...event.decisions)
    for (const { verdict, callId } of event.decisions) {
      if (verdict === 'admit' || verdict === 'release') host.send({ type: 'granted', callId })
    }
  })
  const tell = (fact: ScopeEvent) => host.send({ type: 'fact', fact })

  tell({ type: 'call.submitted', at: 1_000, call: call('compression', 'auxiliary', 60_000) })
  tell({ type: 'call.submitted', at: 2_000, call: call('conversation', 'primary', 181_000) })
  tell({ type: 'call.submitted', at: 3_000, call: call('merge', 'auxiliary', 60_000) })
  expect(host.getSnapshot().context.granted).toEqual(['compression'])
  expect(decisions.at(-1)).toMatchObject({ callId: 'merge', verdict: 'defer', reason: 'primary-pending' })

  tell({ type: 'call.settled', at: 4_000, callId: 'compression', outcome: 'completed' })
  expect(host.getSnapshot().context.granted).toEqual(['compression', 'conversation'])
  tell({ type: 'call.settled', at: 9_000, callId: 'conversation', outcome: 'completed' })
  expect(host.getSnapshot().context.granted).toEqual(['compression', 'conversation', 'merge'])
})

it('its persisted snapshot is plain JSON and goes on where it stopped', () => {
  const scope = createActor(providerScope, { input: { scope: 'anthropic/k1/opus' } }).start()
  scope.send({ type: 'call.submitted', at: 1_000, call: call('compression', 'auxiliary', 60_000) })
  scope.send({ type: 'call.submitted', at: 2_000, call: call('conversation', 'primary', 181_000) })
  const saved = JSON.stringify(scope.getPersistedSnapshot())

  const restored = createActor(providerScope, { input: { scope: '' }, snapshot: JSON.parse(saved) }).start()
  expect(restored.getSnapshot().value).toBe('primaryPending')
  expect(wakeAt(restored.getSnapshot().context.scope)).toBe(32_000)
  restored.send({ type: 'call.settled', at: 3_000, callId: 'compression', outcome: 'completed' })
  expect(restored.getSnapshot().value).toEqual({ quietRamp: 'admitting' })
})
