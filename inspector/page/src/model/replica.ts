/**
 * The scope's own core, run again in the page: the same machine over the same events, so that any
 * moment looks as `rightofway replay --at` says, without asking the host.
 */
import { createActor, type InspectionEvent } from 'xstate'
import {
  type Decision,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
} from '../../../../machines/index.ts'
import type { EncodedScope } from '../../../../machines/snapshot.ts'
import type { StateValue } from '../../../protocol.ts'

const stateValueOf = (state: ScopeContext['state']): StateValue =>
  state.startsWith('quietRamp.') ? { quietRamp: state.slice('quietRamp.'.length) } : state

/** An actor that starts from a context as it is: a snapshot would have to be written and checked first. */
const actorFrom = (context: ScopeContext, inspect?: (event: InspectionEvent) => void) => {
  const value = stateValueOf(context.state)
  const snapshot = providerScope.resolveState({ value, context: { lanes: context } } as never)
  const logic: typeof providerScope = Object.create(providerScope, {
    getInitialSnapshot: { value: () => snapshot },
  })
  const input = { scope: context.scope }
  const actor = createActor(logic, inspect === undefined ? { input } : { input, inspect })
  actor.subscribe({ error: () => {} })
  return actor.start()
}

/** Runs forward from a snapshot, or from nothing. A context is never changed, so it can be kept as it is. */
export class Replica {
  readonly #actor

  constructor(scope: string, snapshot: EncodedScope | null) {
    const input = { scope }
    this.#actor =
      snapshot === null
        ? createActor(providerScope, { input })
        : createActor(providerScope, { input, snapshot: { status: 'active', scope: snapshot } as never })
    this.#actor.subscribe({ error: () => {} })
    this.#actor.start()
  }

  get context(): ScopeContext {
    return this.#actor.getSnapshot().context.lanes
  }

  feed(event: ScopeEvent): ScopeContext {
    this.#actor.send(event)
    return this.context
  }
}

/** The context after some more events. */
export const contextAfter = (context: ScopeContext, events: ReadonlyArray<ScopeEvent>): ScopeContext => {
  if (events.length === 0) return context
  const actor = actorFrom(context)
  for (const event of events) actor.send(event)
  return actor.getSnapshot().context.lanes
}

/** An arrow of the statechart that was taken. */
export interface Taken {
  readonly sourceId: string
  readonly targetId: string
  readonly guard: string | null
}

interface Seen {
  readonly source: { readonly id: string }
  readonly target?: ReadonlyArray<{ readonly id: string }>
  readonly guard?: unknown
}

/** The arrows that one event took, in order: the core tells XState's inspection which ones. */
export const arrowsTaken = (context: ScopeContext, event: ScopeEvent): ReadonlyArray<Taken> => {
  const taken: Taken[] = []
  const actor = actorFrom(context, (inspected) => {
    if (inspected.type !== '@xstate.microstep') return
    for (const { source, target, guard } of inspected._transitions as unknown as ReadonlyArray<Seen>) {
      for (const { id } of target ?? []) {
        taken.push({ sourceId: source.id, targetId: id, guard: typeof guard === 'string' ? guard : null })
      }
    }
  })
  taken.length = 0
  actor.send(event)
  return taken
}

/** Whether the replay decides what was decided: the reasons that are shown are those of this core. */
export const agrees = (recorded: ReadonlyArray<Decision>, replayed: ReadonlyArray<Decision>): boolean =>
  recorded.length === replayed.length &&
  recorded.every((decision, index) => {
    const other = replayed[index] as Decision
    return (
      decision.callId === other.callId &&
      decision.verdict === other.verdict &&
      decision.reason === other.reason
    )
  })
