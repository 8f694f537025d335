/**
 * The compact summary of a scope for inspectors of XState. A scope's whole context holds every call that waits
 * or runs; an inspector that serializes all of it on each event would stop its process.
 */
import type { InspectionEvent, Observer } from 'xstate'
import type { ScopeContext } from '../machines/index.ts'
import { sentInMinute } from '../machines/limits/belief/charges.ts'

/** The part of a scope's context that a foreign inspector may see: numbers and names. Its size does not grow with the calls. */
export const scopeSummary = (context: ScopeContext) => ({
  scope: context.scope,
  at: context.at,
  counts: context.counts,
  counters: context.counters,
  phase: context.phase,
  wait: context.wait,
  recentInputTokens: sentInMinute(context.belief.charges, context.at),
})

type Receiver = ((event: InspectionEvent) => void) | Observer<InspectionEvent>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const isScope = (value: unknown): value is ScopeContext =>
  isObject(value) &&
  typeof value['scope'] === 'string' &&
  isObject(value['counts']) &&
  isObject(value['belief'])

const compacted = <Snapshot>(snapshot: Snapshot): Snapshot => {
  if (!isObject(snapshot)) return snapshot
  const context: unknown = snapshot['context']
  if (!isObject(context) || !isScope(context['scope'])) return snapshot
  // The prototype's members stay, among them `toJSON`, which leaves the machine itself out.
  return Object.create(Object.getPrototypeOf(snapshot) as object, {
    ...Object.getOwnPropertyDescriptors(snapshot),
    context: { value: { ...context, scope: scopeSummary(context['scope']) }, enumerable: true },
  }) as Snapshot
}

/**
 * An `inspect` for `createActor` that shows every scope actor by its summary; other actors pass unchanged.
 *
 *     const { inspect } = createBrowserInspector()
 *     createActor(machine, { inspect: compactInspection(inspect) })
 */
export const compactInspection = (inspect: Receiver): ((event: InspectionEvent) => void) => {
  const tell = typeof inspect === 'function' ? inspect : (event: InspectionEvent) => inspect.next?.(event)
  return (event) => {
    if ('snapshot' in event) return tell({ ...event, snapshot: compacted(event.snapshot) })
    const { actorRef } = event
    const getSnapshot = () => compacted(actorRef.getSnapshot())
    tell({ ...event, actorRef: Object.create(actorRef, { getSnapshot: { value: getSnapshot } }) })
  }
}
