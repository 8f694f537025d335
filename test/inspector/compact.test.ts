/** Stately's own inspector in a user's app: a scope shows by its summary, however many calls wait in it. */
import { createInspector, type StatelyInspectionEvent } from '@xstate/inspect'
import { type Call, providerScope } from 'rightofway/machines'
import { expect, it, vi } from 'vitest'
import { createActor, type InspectionEvent, sendTo, setup } from 'xstate'
import { compactInspection, scopeSummary } from '../../inspector/server.ts'

const call = (id: string): Call => ({
  id,
  lane: 'auxiliary',
  inputTokens: 1_000,
  turnId: null,
  priorityClass: 'background_ingestion',
  principal: 'residence-1',
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
})

const app = setup({ actors: { providerScope } }).createMachine({
  id: 'app',
  context: { mine: 1 },
  invoke: {
    id: 'lanes',
    src: 'providerScope',
    input: { scope: 'a/b/c', policy: { capacity: 1, reserve: 0 } },
  },
  on: { '*': { actions: sendTo('lanes', ({ event }) => event as never) } },
})

/** What the inspector sends while `waiting` calls are submitted to a scope of the app. */
const sent = async (waiting: number, wrap: (inspect: never) => unknown) => {
  const events: Array<{ readonly sessionId: string; readonly text: string }> = []
  const adapter = {
    send: (event: StatelyInspectionEvent) =>
      events.push({ sessionId: event.sessionId, text: JSON.stringify(event) }),
  }
  const inspector = createInspector(adapter)
  let told = 0
  const count = (event: InspectionEvent): void => {
    if (/^@xstate\.(?:actor|event|snapshot)$/.test(event.type)) told += 1
    inspector.inspect.next?.(event)
  }
  const actor = createActor(app, { inspect: wrap(count as never) as never }).start()
  for (let n = 0; n < waiting; n += 1)
    actor.send({ type: 'call.submitted', at: 1_000 + n, call: call(`c${n}`) } as never)
  await vi.waitFor(() => expect(events).toHaveLength(told), { timeout: 20_000 })
  const lanes = actor.getSnapshot().children['lanes']!
  actor.stop()
  return { events: [...events], lanes, bytes: events.reduce((sum, { text }) => sum + text.length, 0) }
}

it('shows the summary of the scope, and every other actor as it is', async () => {
  const { events, lanes } = await sent(3, compactInspection)
  const { scope } = (lanes.getSnapshot() as { context: { scope: Parameters<typeof scopeSummary>[0] } })
    .context
  const newest = JSON.parse(events.findLast(({ sessionId }) => sessionId === lanes.sessionId)!.text)
  expect(newest.snapshot.context.scope).toEqual(JSON.parse(JSON.stringify(scopeSummary(scope))))
  expect(newest.snapshot.context.scope.counts.auxiliaryWaiting).toBe(2)
  const parents = events.filter(({ text }) => text.includes('"mine":1'))
  expect(parents.length).toBeGreaterThan(0)
  expect(events.map(({ text }) => text).filter((text) => text.includes('"waiting"'))).toEqual([])
})

it('sends no more for each event when more calls wait; the whole context would', async () => {
  const [few, many] = [await sent(20, compactInspection), await sent(200, compactInspection)]
  const each = (one: typeof few) => one.bytes / one.events.length
  expect(each(many)).toBeLessThan(each(few) * 1.2)
  const whole = await sent(20, (inspect) => inspect)
  expect(whole.events).toHaveLength(few.events.length)
  expect(each(whole)).toBeGreaterThan(each(few) * 1.5)
})
