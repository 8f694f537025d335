/**
 * The life cycle of a scope as a complete XState statechart: XState's interpreter, graph functions and
 * inspectors take it as it is. `providerScope` runs the same chart faster.
 */
import { assign, enqueueActions, raise, setup } from 'xstate'
import type { Decision, EpisodeSummary, ScopeState } from '../model/decision.ts'
import type { ScopeEvent } from '../model/event.ts'
import { checkEvent } from '../model/event-check.ts'
import { InvalidInput } from '../model/invalid.ts'
import { type PolicyInput, parsePolicy } from '../model/policy-input.ts'
import { contractPolicy } from '../model/presets.ts'
import { emptyContext, type ScopeContext } from '../state/context.ts'
import { continued, type Draft } from '../state/draft.ts'
import { finishedType } from './chart-check.ts'
import { type GuardName, guards } from './guards.ts'
import { begin, closeQuantum, enter, finish, takeIn } from './step.ts'

export interface ScopeInput {
  /** Name of the scope. */
  readonly scope: string
  readonly policy?: PolicyInput
  /** Epoch milliseconds of its creation. */
  readonly at?: number
}

/** The decisions of one event, emitted once, after the state has settled. */
export interface ScopeEmitted {
  readonly type: 'decided'
  /** Epoch milliseconds. */
  readonly at: number
  readonly decisions: ReadonlyArray<Decision>
  /** The summary of an episode that ended; null when none did. */
  readonly episode: EpisodeSummary | null
}

/** An event was refused at the door. It changed nothing, and the scope continues. */
export interface ScopeRefused {
  readonly type: 'refused'
  readonly error: InvalidInput
}

/**
 * The statechart's context holds the scope's context in one field. XState copies a context field by field for
 * every event, and the scope's own step has already done so.
 */
export interface MachineContext {
  scope: ScopeContext
}

/** Raised by the chart for itself after the last step of an event. No other code sends it. */
interface EventFinished {
  readonly type: typeof finishedType
}

/** The emitted event for the last scope event; null when that event decided nothing. */
export const emittedBy = ({ at, decisions, summary }: ScopeContext): ScopeEmitted | null =>
  decisions.length > 0 || summary !== null ? { type: 'decided', at, decisions, episode: summary } : null

/** The context of a scope before its first event. Throws `InvalidInput`. */
const contextOf = (input: ScopeInput | undefined): ScopeContext => {
  if (typeof input?.scope !== 'string')
    throw new InvalidInput([{ field: 'input.scope', expected: 'a string', got: String(input?.scope) }])
  const { scope, policy, at = 0 } = input
  if (!Number.isSafeInteger(at))
    throw new InvalidInput([{ field: 'input.at', expected: 'whole epoch milliseconds', got: String(at) }])
  return emptyContext(scope, parsePolicy(policy, contractPolicy), at)
}

const chartGuards = Object.fromEntries(
  Object.entries(guards).map(([name, holds]) => [
    name,
    ({ context }: { readonly context: MachineContext }) => holds(context.scope),
  ]),
) as Record<GuardName, (args: { readonly context: MachineContext }) => boolean>

const changed = (scope: ScopeContext, move: (draft: Draft) => void): MachineContext => {
  const draft = continued(scope)
  move(draft)
  return { scope: draft }
}

const machineSetup = setup({
  types: {
    context: {} as MachineContext,
    events: {} as ScopeEvent | EventFinished,
    emitted: {} as ScopeEmitted | ScopeRefused,
    input: {} as ScopeInput,
  },
  guards: chartGuards,
  actions: {
    takeIn: assign(({ context: { scope }, event }) => {
      const fact = event as ScopeEvent
      checkEvent(fact)
      const draft = begin(scope, fact.at)
      takeIn(draft, fact)
      return { scope: draft }
    }),
    enter: assign(({ context }, { state }: { readonly state: ScopeState }) =>
      changed(context.scope, (draft) => enter(draft, state)),
    ),
    closeQuantum: assign(({ context: { scope } }) => changed(scope, closeQuantum)),
    // XState takes a raised event only after all steps that need no event. No other feature of a statechart
    // comes last.
    finishLater: raise({ type: finishedType }),
    finish: assign(({ context: { scope } }) => changed(scope, finish)),
    emitDecisions: enqueueActions(({ context, enqueue }) => {
      const emitted = emittedBy((context as MachineContext).scope)
      if (emitted !== null) enqueue.emit(emitted as never)
    }),
  },
})

const entering = <State extends ScopeState>(state: State) => ({ type: 'enter', params: { state } }) as const

const whenPrimariesAreGone = [
  { guard: 'primariesGoneWithBacklog', target: '#scope.auxiliaryDraining' },
  { guard: 'primariesGone', target: '#scope.settled' },
  { guard: 'fairnessDue', target: '#scope.auxiliaryDraining' },
] as const

/** The statechart. XState's interpreter runs it as it is; `providerScope` is the actor to use. */
export const scopeChart = machineSetup.createMachine({
  id: 'scope',
  initial: 'idle',
  context: ({ input }) => ({ scope: contextOf(input) }),
  on: {
    [finishedType]: { actions: ['finish', 'emitDecisions'] },
    '*': { actions: ['takeIn', 'finishLater'] },
  },
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
