/**
 * The scope actor: who may call one provider with one credential, and when. It holds the life
 * cycle; the functions beside it decide. It reads no clock and arms no timer: events carry the
 * time, `wakeAt` (in `deadlines.ts`) says when the next `clock.woke` is needed.
 *
 * It can be created, spawned or invoked in any XState 5 system as it stands. Send it
 * `ScopeEvent`s and listen to its emitted `decided` events.
 */
import { createActor, type SnapshotFrom, setup } from 'xstate'
import type { Decision, EpisodeSummary, ScopeState } from '../model/decision.ts'
import type { ScopeEvent } from '../model/event.ts'
import { type PolicyInput, parsePolicy } from '../model/policy.ts'
import { decodeScope, encodeScope } from '../snapshot/codec.ts'
import type { EncodedScope } from '../snapshot/encoded.ts'
import { emptyContext, type ScopeContext } from '../state/context.ts'
import { continued, type Draft } from '../state/draft.ts'
import { type GuardName, guards } from './guards.ts'
import { begin, closeQuantum, enter, takeIn } from './step.ts'
import { walkerOf } from './walker.ts'

export interface ScopeInput {
  /** Name of the scope. */
  readonly scope: string
  readonly policy?: PolicyInput
  /** Epoch milliseconds of its creation. */
  readonly at?: number
}

/** What one event decided, emitted once, after the state has settled. */
export interface ScopeEmitted {
  readonly type: 'decided'
  /** Epoch milliseconds. */
  readonly at: number
  readonly decisions: ReadonlyArray<Decision>
  /** The summary of an episode that ended; null when none did. */
  readonly episode: EpisodeSummary | null
}

/**
 * The statechart's context holds the scope's in one field: XState copies a context field by field
 * for every event, and the scope's own step has done so already.
 */
interface MachineContext {
  scope: ScopeContext
}

const chartGuards = Object.fromEntries(
  Object.entries(guards).map(([name, holds]) => [
    name,
    ({ context }: { readonly context: MachineContext }) => holds(context.scope),
  ]),
) as Record<GuardName, (args: { readonly context: MachineContext }) => boolean>

const typed = setup({
  types: {
    context: {} as MachineContext,
    events: {} as ScopeEvent,
    emitted: {} as ScopeEmitted,
    input: {} as ScopeInput,
  },
  guards: chartGuards,
})

const change = (move: (draft: Draft) => void) =>
  typed.assign(({ context: { scope } }) => {
    const draft = continued(scope)
    move(draft)
    return { scope: draft }
  })

const entering = (state: ScopeState) => change((draft) => enter(draft, state))

const machineSetup = typed.extend({
  actions: {
    takeIn: typed.assign(({ context: { scope }, event }) => {
      const draft = begin(scope, event.at)
      takeIn(draft, event)
      return { scope: draft }
    }),
    closeQuantum: change(closeQuantum),
  },
})

const whenPrimariesAreGone = [
  { guard: 'primariesGoneWithBacklog', target: '#scope.auxiliaryDraining' },
  { guard: 'primariesGone', target: '#scope.settled' },
  { guard: 'fairnessDue', target: '#scope.auxiliaryDraining' },
] as const

export const providerScope = machineSetup.createMachine({
  id: 'scope',
  initial: 'idle',
  context: ({ input }) => ({ scope: emptyContext(input.scope, parsePolicy(input.policy), input.at) }),
  on: { '*': { actions: 'takeIn' } },
  states: {
    idle: {
      description: 'No episode. The gate is open.',
      entry: entering('idle'),
      always: [{ guard: 'primaryWanted', target: 'primaryPending' }],
    },
    primaryPending: {
      description:
        'A primary waits for auxiliaries in flight to settle, be cancelled or be tolerated. The gate is closed.',
      entry: entering('primaryPending'),
      always: [...whenPrimariesAreGone, { guard: 'auxiliariesClear', target: 'quietRamp' }],
    },
    quietRamp: {
      description: 'Primaries are admitted, after as much quiet as their ceiling needs. The gate is closed.',
      initial: 'quiet',
      always: whenPrimariesAreGone,
      states: {
        quiet: {
          description: 'The head primary is known not to fit yet.',
          entry: entering('quietRamp.quiet'),
          always: { guard: 'quietOver', target: 'admitting' },
        },
        admitting: {
          description: 'Primaries are dispatched, or wait for a place.',
          entry: entering('quietRamp.admitting'),
          always: [
            { guard: 'headMustWait', target: 'quiet' },
            { guard: 'primariesAccepted', target: 'active' },
          ],
        },
        active: {
          description: 'Every primary is being answered.',
          entry: entering('quietRamp.active'),
          always: { guard: 'primaryArrived', target: 'admitting' },
        },
      },
    },
    auxiliaryDraining: {
      description: 'The backlog is released, metered, each call once.',
      entry: entering('auxiliaryDraining'),
      always: [
        { guard: 'primaryDue', target: 'primaryPending', actions: 'closeQuantum' },
        { guard: 'backlogEmpty', target: 'settled' },
      ],
    },
    settled: {
      description: 'The episode is over and summed up. The gate is open.',
      entry: entering('settled'),
      always: [
        { guard: 'primaryWanted', target: 'primaryPending' },
        { guard: 'lingerPassed', target: 'idle' },
      ],
    },
  },
})

/** What `actor.getPersistedSnapshot()` gives, and `createActor(providerScope, { snapshot })` takes: plain JSON. */
export interface PersistedScope {
  readonly status: 'active'
  readonly scope: EncodedScope
}

/** What `createActor` takes as well: the scope goes on from a context that is at hand. */
export interface LiveScope {
  readonly status: 'active'
  readonly live: ScopeContext
}

type Snapshot = SnapshotFrom<typeof providerScope>
type ActorScopeOf = Parameters<typeof providerScope.transition>[2]

/** The statechart's value of a state. */
const stateValue = (state: ScopeState) =>
  state.startsWith('quietRamp.') ? { quietRamp: state.slice('quietRamp.'.length) } : state

const snapshotIn = (scope: ScopeContext): Snapshot =>
  providerScope.resolveState({ value: stateValue(scope.state), context: { scope } } as never)

const snapshots = new Map<ScopeState, Snapshot>()

/** The snapshot that follows `before`. XState takes microseconds to make one, so it makes one for each state. */
const snapshotAfter = (before: Snapshot, scope: ScopeContext): Snapshot => {
  if (scope.state === before.context.scope.state) return { ...before, context: { scope } }
  const known = snapshots.get(scope.state) ?? snapshotIn(scope)
  snapshots.set(scope.state, known)
  return { ...known, context: { scope } }
}

/**
 * What a scope knows after an event: the actor's transition without the actor. `taken` is told of
 * each arrow of the chart. Pure; the context that was stays as it was.
 */
export const advance = walkerOf(providerScope)

const interpret = providerScope.transition.bind(providerScope)

/** The next snapshot. What was decided is emitted in one piece, once the state has settled. */
const transition = (snapshot: Snapshot, event: ScopeEvent, actorScope: ActorScopeOf): Snapshot => {
  // XState's own events: stop, and the like.
  if (snapshot.status !== 'active' || event.type.startsWith('xstate.'))
    return interpret(snapshot, event, actorScope)
  const scope = advance(snapshot.context.scope, event)
  const { at, decisions, summary } = scope
  if (decisions.length > 0 || summary !== null) {
    actorScope.defer(() => actorScope.emit({ type: 'decided', at, decisions, episode: summary }))
  }
  return snapshotAfter(snapshot, scope)
}

// A statechart has no place for "after the last of all transitions", and XState's own persistence
// copies plain objects; so these three moves of the actor logic are ours, on top of XState's.
Object.assign(providerScope, {
  transition,
  getPersistedSnapshot: ({ context }: Snapshot): PersistedScope => ({
    status: 'active',
    scope: encodeScope(context.scope),
  }),
  restoreSnapshot: (from: PersistedScope | LiveScope) =>
    snapshotIn('live' in from ? from.live : decodeScope(from.scope)),
})

/** What a scope knows at a snapshot, or before its first event. Throws `SnapshotUnreadable`. */
export const contextFrom = (scope: string, snapshot: unknown = null): ScopeContext =>
  snapshot === null
    ? createActor(providerScope, { input: { scope } }).getSnapshot().context.scope
    : decodeScope(snapshot)
