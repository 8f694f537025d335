/**
 * The scope actor: who may call one provider with one credential, and when. It holds the life
 * cycle; the functions beside it decide. It reads no clock and arms no timer: events carry the
 * time, `wakeAt` (in `deadlines.ts`) says when the next `clock.woke` is needed.
 *
 * It can be created, spawned or invoked in any XState 5 system as it stands. Send it
 * `ScopeEvent`s and listen to its emitted `decided` events.
 */
import { type SnapshotFrom, setup } from 'xstate'
import { fairnessDue, primaryDue, primaryWanted } from './admission.ts'
import { emptyContext, type ScopeContext } from './context.ts'
import type { Decision, EpisodeSummary, ScopeState } from './decision.ts'
import type { ScopeEvent } from './event.ts'
import { type PolicyInput, parsePolicy } from './policy.ts'
import { decodeScope, type EncodedScope, encodeScope } from './snapshot.ts'
import { absorb, announce, closeQuantum, enter } from './step.ts'

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
  lanes: ScopeContext
}

type Guarded = { readonly context: MachineContext }

const auxiliariesClear = ({ context }: Guarded): boolean => {
  const { at, policy, counts, heldTurns, phase } = context.lanes
  return (
    policy.inFlight === 'tolerate' ||
    counts.auxiliaryInTheWay <= policy.toleratedInFlight ||
    // The gate is held for primaries that already run: nobody has to make room. A turn has its primary still to come.
    (counts.primaryWaiting === 0 && heldTurns === 0) ||
    (policy.inFlight === 'settle' && policy.afterPatience === 'proceed' && at >= phase.patienceUntilMs)
  )
}

const machineSetup = setup({
  types: {
    context: {} as MachineContext,
    events: {} as ScopeEvent,
    emitted: {} as ScopeEmitted,
    input: {} as ScopeInput,
  },
  guards: {
    primaryWanted: ({ context }) => primaryWanted(context.lanes),
    primariesGoneWithBacklog: ({ context }) => !primaryWanted(context.lanes) && context.lanes.ring.size > 0,
    primariesGone: ({ context }) => !primaryWanted(context.lanes),
    auxiliariesClear,
    fairnessDue: ({ context }) => fairnessDue(context.lanes),
    primaryDue: ({ context }) => primaryDue(context.lanes),
    backlogEmpty: ({ context }) => context.lanes.ring.size === 0,
    quietOver: ({ context: { lanes } }) => lanes.at >= lanes.phase.quietUntilMs,
    headMustWait: ({ context: { lanes } }) =>
      lanes.counts.primaryReady > 0 && lanes.at < lanes.phase.quietUntilMs,
    primariesAccepted: ({ context: { lanes } }) =>
      lanes.counts.primaryWaiting === 0 && lanes.counts.primaryUnaccepted === 0,
    primaryArrived: ({ context: { lanes } }) =>
      lanes.counts.primaryWaiting > 0 || lanes.counts.primaryUnaccepted > 0,
    lingerPassed: ({ context: { lanes } }) =>
      lanes.counts.places === 0 && lanes.at >= lanes.phase.lingerUntilMs,
  },
})

const change = (step: (lanes: ScopeContext, event: ScopeEvent) => ScopeContext) =>
  machineSetup.assign(({ context: { lanes }, event }) => ({ lanes: step(lanes, event) }))

const entering = (state: ScopeState) => change((lanes) => enter(lanes, state))

const whenPrimariesAreGone = [
  { guard: 'primariesGoneWithBacklog', target: '#scope.auxiliaryDraining' },
  { guard: 'primariesGone', target: '#scope.settled' },
  { guard: 'fairnessDue', target: '#scope.auxiliaryDraining' },
] as const

/** `absorb`, which knows its last answer: it is asked before the statechart is, and again by it. */
const takeIn = ((): typeof absorb => {
  let last: readonly [ScopeContext, ScopeEvent, ScopeContext] | null = null
  return (context, event) => {
    if (last === null || last[0] !== context || last[1] !== event)
      last = [context, event, absorb(context, event)]
    return last[2]
  }
})()

export const providerScope = machineSetup.createMachine({
  id: 'scope',
  initial: 'idle',
  context: ({ input }) => ({ lanes: emptyContext(input.scope, parsePolicy(input.policy), input.at) }),
  on: { '*': { actions: change(takeIn) } },
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
        { guard: 'primaryDue', target: 'primaryPending', actions: change(closeQuantum) },
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

/** The statechart's value of a state. */
const stateValue = (state: ScopeState) =>
  state.startsWith('quietRamp.') ? { quietRamp: state.slice('quietRamp.'.length) } : state

/** What `actor.getPersistedSnapshot()` gives, and `createActor(providerScope, { snapshot })` takes: plain JSON. */
export interface PersistedScope {
  readonly status: 'active'
  readonly scope: EncodedScope
}

type Snapshot = SnapshotFrom<typeof providerScope>
type ActorScopeOf = Parameters<typeof providerScope.transition>[2]

const react = providerScope.transition.bind(providerScope)

/** Names of the guards that lead out of a state, its own and its ancestor's, as the chart above has them. */
const exitsOf = (state: ScopeState): ReadonlyArray<string> => {
  const path = `scope.${state}`.split('.')
  const nodes = path
    .slice(1)
    .map((_, depth) => providerScope.getStateNodeById(path.slice(0, depth + 2).join('.')))
  return nodes.flatMap(({ always = [] }) => always.map(({ guard }) => String(guard)))
}

const exits = new Map<ScopeState, ReadonlyArray<string>>()

/** Whether a scope that has taken an event in stays in its state: then there is nothing for the chart to do. */
const stays = (lanes: ScopeContext): boolean => {
  const known = exits.get(lanes.state)
  const names = known ?? exitsOf(lanes.state)
  if (known === undefined) exits.set(lanes.state, names)
  const guards = providerScope.implementations.guards as Record<string, (args: Guarded) => boolean>
  const args = { context: { lanes } }
  return !names.some((name) => guards[name]!(args))
}

/** The next snapshot: made at once where the state stays, by the chart where it does not. */
const advance = (snapshot: Snapshot, event: ScopeEvent, actorScope: ActorScopeOf): Snapshot => {
  if (snapshot.status === 'active' && !event.type.startsWith('xstate.')) {
    const lanes = takeIn(snapshot.context.lanes, event)
    if (stays(lanes)) return { ...snapshot, context: { lanes } }
  }
  return react(snapshot, event, actorScope)
}

/** Ends an event once the state has settled: who must wait hears why, and what was decided is emitted in one piece. */
const conclude = (snapshot: Snapshot, event: ScopeEvent, actorScope: ActorScopeOf): Snapshot => {
  const next = advance(snapshot, event, actorScope)
  const { context } = next
  if (context === snapshot.context || next.status !== 'active') return next
  if (context.lanes.unannounced.length > 0) context.lanes = announce(context.lanes)
  const { at, decisions, summary } = context.lanes
  if (decisions.length > 0 || summary !== null) {
    actorScope.defer(() => actorScope.emit({ type: 'decided', at, decisions, episode: summary }))
  }
  return next
}

// A statechart has no place for "after the last of all transitions", and XState's own persistence
// copies plain objects; so these three moves of the actor logic are ours, on top of XState's.
Object.assign(providerScope, {
  transition: conclude,
  getPersistedSnapshot: ({ context }: Snapshot): PersistedScope => ({
    status: 'active',
    scope: encodeScope(context.lanes),
  }),
  restoreSnapshot: (persisted: PersistedScope) => {
    const lanes = decodeScope(persisted.scope)
    return providerScope.resolveState({ value: stateValue(lanes.state), context: { lanes } } as never)
  },
})
