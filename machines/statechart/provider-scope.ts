/**
 * The scope actor decides who may call one provider with one credential, and when. This file holds the life
 * cycle; the functions beside it decide. The actor reads no clock and arms no timer: events carry the time,
 * and `wakeAt` (in `deadlines.ts`) names the time of the next `clock.woke`.
 *
 * It is actor logic of its own over `scopeChart`: it can be created, spawned, invoked, persisted and restored
 * in any XState 5 system. Send it `ScopeEvent`s and listen to its emitted `decided` events. While an
 * inspector is attached, XState's interpreter runs the chart, so that the inspector sees every microstep.
 * Otherwise the chart is walked: the result is the same at a lower cost.
 */
import {
  type ActorLogic,
  type ActorScope,
  type Snapshot as AnySnapshot,
  createActor,
  type SnapshotFrom,
} from 'xstate'
import type { ScopeState } from '../model/decision.ts'
import type { ScopeEvent } from '../model/event.ts'
import { checkEvent } from '../model/event-check.ts'
import { InvalidInput } from '../model/invalid.ts'
import { checked } from '../model/invariant.ts'
import { decodeScope, encodeScope, SnapshotUnreadable } from '../snapshot/codec.ts'
import type { EncodedScope } from '../snapshot/encoded.ts'
import type { ScopeContext } from '../state/context.ts'
import {
  emittedBy,
  type ScopeEmitted,
  type ScopeInput,
  type ScopeRefused,
  scopeChart,
} from './scope-chart.ts'
import { type Arrow, walkerOf } from './walker.ts'

/**
 * The plain JSON that `actor.getPersistedSnapshot()` returns and `createActor(providerScope, { snapshot })`
 * takes. Stopping an actor does not end its scope, so a stopped actor is written as active.
 */
export type PersistedScope =
  | { readonly status: 'active'; readonly scope: EncodedScope }
  /** The actor failed: an invariant was broken, or its input was refused and it has no scope. */
  | { readonly status: 'error'; readonly error: unknown; readonly scope: EncodedScope | null }

/** A second form that `createActor` takes: the scope continues from a context in memory. */
export interface LiveScope {
  readonly status: 'active'
  readonly live: ScopeContext
}

type Snapshot = SnapshotFrom<typeof scopeChart>
type Emitted = ScopeEmitted | ScopeRefused
type System = ActorScope<Snapshot, ScopeEvent>['system']
type Scope = ActorScope<Snapshot, ScopeEvent, System, Emitted>

/** The statechart's value for a state. */
const stateValue = (state: ScopeState) =>
  state.startsWith('quietRamp.') ? { quietRamp: state.slice('quietRamp.'.length) } : state

const snapshotIn = (scope: ScopeContext): Snapshot =>
  scopeChart.resolveState({ value: stateValue(scope.state), context: { scope } } as never)

const snapshots = new Map<ScopeState, Snapshot>()

/**
 * The snapshot that follows `before`. Making a snapshot takes XState microseconds, so one is made per state
 * and reused.
 */
const snapshotAfter = (before: Snapshot, scope: ScopeContext): Snapshot => {
  if (scope.state === before.context.scope.state) return { ...before, context: { scope } }
  const known = snapshots.get(scope.state) ?? snapshotIn(scope)
  snapshots.set(scope.state, known)
  return { ...known, context: { scope } }
}

const walk = walkerOf(scopeChart)

/**
 * The context after an event: the actor's transition without the actor. `taken` is called for each arrow of
 * the chart that was taken. Pure: the old context stays unchanged. Throws `InvalidInput` for an event that is
 * not a known one with a time and well-formed fields, and `InvariantBroken`.
 */
export const advance = (
  before: ScopeContext,
  event: ScopeEvent,
  taken?: (arrow: Arrow) => void,
): ScopeContext => {
  checkEvent(event)
  return checked(before.scope, event.type, () => walk(before, event, taken))
}

/** Thrown at XState when it reads a message for an inspector, before the inspector gets the message. */
const isRead = Symbol('an inspector is attached')
const probe = {
  get type(): never {
    throw isRead
  },
}

/** The channel to inspectors, which XState's types leave out. */
interface InspectedSystem {
  readonly _sendInspectionEvent: (message: object) => void
}

/**
 * Whether an inspector is attached to the actor's system. XState offers no such question, but it reads a
 * message only when an inspector is attached. This message ends the reading at once.
 */
const isInspected = (system: System): boolean => {
  try {
    const { _sendInspectionEvent: sendInspectionEvent } = system as unknown as InspectedSystem
    sendInspectionEvent(probe)
    return false
  } catch (thrown) {
    if (thrown === isRead) return true
    throw thrown
  }
}

/** Hands an emitted event to XState as its own `emit` does, so that the pure `transition()` lists it too. */
const emit = (event: Emitted, from: Snapshot, cause: ScopeEvent, actorScope: Scope): void =>
  actorScope.actionExecutor({
    type: 'xstate.emit',
    info: { context: from.context, event: cause, self: actorScope.self, system: actorScope.system } as never,
    params: { event } as never,
    exec: () => actorScope.defer(() => actorScope.emit(event)),
  })

/**
 * The next snapshot. The decisions are emitted together, after the state has settled. An event that is
 * refused at the door is emitted as `refused` and written to the actor's logger. It changes nothing: the
 * actor lives on. A broken invariant stops the actor with `InvariantBroken`.
 */
const transition = (snapshot: Snapshot, event: ScopeEvent, actorScope: Scope): Snapshot => {
  // XState's own events: stop, and events that its systems send.
  if (event.type === ('xstate.stop' as never))
    return scopeChart.transition(snapshot, event, actorScope as never)
  if (snapshot.status !== 'active') return snapshot
  const before = snapshot.context.scope
  try {
    checkEvent(event)
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    actorScope.logger(`scope ${before.scope} refused an event: ${error.message}`)
    emit({ type: 'refused', error }, snapshot, event, actorScope)
    return snapshot
  }
  if (isInspected(actorScope.system))
    return checked(before.scope, event.type, () =>
      scopeChart.transition(snapshot, event, actorScope as never),
    )
  const next = snapshotAfter(
    snapshot,
    checked(before.scope, event.type, () => walk(before, event)),
  )
  const emitted = emittedBy(next.context.scope)
  if (emitted !== null) emit(emitted, next, event, actorScope)
  return next
}

const getPersistedSnapshot = ({ status, error, context }: Snapshot): PersistedScope => {
  // An actor whose input was refused never had a scope.
  const scope = context?.scope === undefined ? null : encodeScope(context.scope)
  return status === 'error' || scope === null
    ? { status: 'error', error, scope }
    : { status: 'active', scope }
}

const unreadable = (snapshot: unknown) =>
  new SnapshotUnreadable(`expected what getPersistedSnapshot gave, got ${typeof snapshot}`)

/** Throws `SnapshotUnreadable`. Also takes the snapshot of a running actor, as XState's machines do. */
const restoreSnapshot = (from: PersistedScope | LiveScope | Snapshot): Snapshot => {
  if (typeof from !== 'object' || from === null) throw unreadable(from)
  if ('live' in from) return snapshotIn(from.live)
  if ('machine' in from) return snapshotIn(from.context.scope)
  if (from.status !== 'error') return snapshotIn(decodeScope(from.scope))
  const { error } = from
  const known = from.scope === null ? null : snapshotIn(decodeScope(from.scope))
  return { ...known, status: 'error', error } as Snapshot
}

/** The implementations that `provide` could be given, by kind. */
export type ScopeImplementations = Readonly<
  Partial<Record<'actions' | 'actors' | 'guards' | 'delays', Readonly<Record<string, unknown>>>>
>

/** The scope's actor logic. */
export interface ProviderScope extends ActorLogic<Snapshot, ScopeEvent, ScopeInput, System, Emitted> {
  /** The chart's definition, as inspectors draw it. */
  readonly config: typeof scopeChart.config
  /**
   * Returns the logic itself: it has no implementation to replace. Throws an error that names an
   * implementation if one is given. Change behaviour by policy; build a chart of your own from `scopeChart`.
   */
  readonly provide: (implementations: ScopeImplementations) => ProviderScope
}

const provide = (implementations: ScopeImplementations): ProviderScope => {
  for (const [kind, given] of Object.entries(implementations))
    for (const name of Object.keys(given ?? {}))
      throw new Error(
        `providerScope has no ${kind} to provide, got ${name}: its decisions follow from its policy and its ` +
          'events alone; run scopeChart.provide(...) with XState to try others',
      )
  return providerScope
}

export const providerScope: ProviderScope = {
  config: scopeChart.config,
  transition,
  getInitialSnapshot: (actorScope, input) => scopeChart.getInitialSnapshot(actorScope as never, input),
  getPersistedSnapshot: getPersistedSnapshot as unknown as (snapshot: Snapshot) => AnySnapshot<unknown>,
  restoreSnapshot: restoreSnapshot as unknown as (from: AnySnapshot<unknown>) => Snapshot,
  provide,
}

/** The context in a snapshot, or of a scope before its first event. Throws `SnapshotUnreadable`. */
export const contextFrom = (scope: string, snapshot: unknown = null): ScopeContext =>
  snapshot === null
    ? createActor(providerScope, { input: { scope } }).getSnapshot().context.scope
    : decodeScope(snapshot)
