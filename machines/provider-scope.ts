/**
 * The scope actor: who may call one provider with one credential, and when. It holds the life
 * cycle; the functions beside it decide. It reads no clock and arms no timer: events carry the
 * time, `wakeAt` (in `deadlines.ts`) says when the next `clock.woke` is needed.
 *
 * It can be created, spawned or invoked in any XState 5 system as it stands. Send it
 * `ScopeEvent`s and listen to its emitted `decision` and `episode` events.
 */
import { setup } from 'xstate'
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

export type ScopeEmitted =
  | { readonly type: 'decision'; readonly decision: Decision }
  | { readonly type: 'episode'; readonly summary: EpisodeSummary }

type Guarded = { readonly context: ScopeContext }

const auxiliariesClear = ({ context }: Guarded): boolean => {
  const { at, policy, counts, phase } = context
  return (
    policy.inFlight === 'tolerate' ||
    counts.auxiliaryInTheWay <= policy.toleratedInFlight ||
    // The gate is held for primaries that already run: nobody has to make room.
    counts.primaryWaiting === 0 ||
    (policy.inFlight === 'settle' && policy.afterPatience === 'proceed' && at >= phase.patienceUntilMs)
  )
}

const machineSetup = setup({
  types: {
    context: {} as ScopeContext,
    events: {} as ScopeEvent,
    emitted: {} as ScopeEmitted,
    input: {} as ScopeInput,
  },
  guards: {
    primaryWanted: ({ context }) => primaryWanted(context),
    primariesGoneWithBacklog: ({ context }) => !primaryWanted(context) && context.ring.size > 0,
    primariesGone: ({ context }) => !primaryWanted(context),
    auxiliariesClear,
    fairnessDue: ({ context }) => fairnessDue(context),
    primaryDue: ({ context }) => primaryDue(context),
    backlogEmpty: ({ context }) => context.ring.size === 0,
    quietOver: ({ context }) => context.at >= context.phase.quietUntilMs,
    headMustWait: ({ context }) => context.counts.primaryReady > 0 && context.at < context.phase.quietUntilMs,
    primariesAccepted: ({ context: { counts } }) =>
      counts.primaryWaiting === 0 && counts.primaryUnaccepted === 0,
    primaryArrived: ({ context: { counts } }) => counts.primaryWaiting > 0 || counts.primaryUnaccepted > 0,
    lingerPassed: ({ context }) => context.counts.places === 0 && context.at >= context.phase.lingerUntilMs,
    unannounced: ({ context }) => context.unannounced.length > 0,
  },
})

const takeOver = (change: (context: ScopeContext, event: ScopeEvent) => ScopeContext) =>
  machineSetup.enqueueActions(({ context, event, enqueue }) => {
    const next = change(context, event)
    if (next === context) return
    enqueue.assign(next)
    for (const decision of next.decisions) enqueue.emit({ type: 'decision', decision })
    if (next.summary !== null) enqueue.emit({ type: 'episode', summary: next.summary })
  })

const entering = (state: ScopeState) => takeOver((context) => enter(context, state))

const tellWaiting = { guard: 'unannounced', actions: takeOver(announce) } as const

const whenPrimariesAreGone = [
  { guard: 'primariesGoneWithBacklog', target: '#scope.auxiliaryDraining' },
  { guard: 'primariesGone', target: '#scope.settled' },
  { guard: 'fairnessDue', target: '#scope.auxiliaryDraining' },
] as const

export const providerScope = machineSetup.createMachine({
  id: 'scope',
  initial: 'idle',
  context: ({ input }) => emptyContext(input.scope, parsePolicy(input.policy), input.at),
  on: { '*': { actions: takeOver(absorb) } },
  states: {
    idle: {
      description: 'No episode. The gate is open.',
      entry: entering('idle'),
      always: [{ guard: 'primaryWanted', target: 'primaryPending' }, tellWaiting],
    },
    primaryPending: {
      description:
        'A primary waits for auxiliaries in flight to settle, be cancelled or be tolerated. The gate is closed.',
      entry: entering('primaryPending'),
      always: [...whenPrimariesAreGone, { guard: 'auxiliariesClear', target: 'quietRamp' }, tellWaiting],
    },
    quietRamp: {
      description: 'Primaries are admitted, after as much quiet as their ceiling needs. The gate is closed.',
      initial: 'quiet',
      always: [...whenPrimariesAreGone, tellWaiting],
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
        { guard: 'primaryDue', target: 'primaryPending', actions: takeOver(closeQuantum) },
        { guard: 'backlogEmpty', target: 'settled' },
        tellWaiting,
      ],
    },
    settled: {
      description: 'The episode is over and summed up. The gate is open.',
      entry: entering('settled'),
      always: [
        { guard: 'primaryWanted', target: 'primaryPending' },
        { guard: 'lingerPassed', target: 'idle' },
        tellWaiting,
      ],
    },
  },
})

/** The statechart's value of a state. */
const stateValue = (state: ScopeState) =>
  state.startsWith('quietRamp.') ? { quietRamp: state.slice('quietRamp.'.length) } : state

// XState's own persistence copies plain objects; ours writes the versioned snapshot, also when the
// actor is a child of another system that is persisted as a whole.
Object.assign(providerScope, {
  getPersistedSnapshot: ({ context }: { readonly context: ScopeContext }): PersistedScope => ({
    status: 'active',
    scope: encodeScope(context),
  }),
  restoreSnapshot: (persisted: PersistedScope) => {
    const context = decodeScope(persisted.scope)
    return providerScope.resolveState({ value: stateValue(context.state), context } as never)
  },
})

/** What `actor.getPersistedSnapshot()` gives, and `createActor(providerScope, { snapshot })` takes: plain JSON. */
export interface PersistedScope {
  readonly status: 'active'
  readonly scope: EncodedScope
}
