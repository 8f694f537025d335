/** Walks every path of the statechart over a small world of calls, and notes what it went through. */
import { HashMap } from 'effect'
import type { SnapshotFrom } from 'xstate'
import { getShortestPaths } from 'xstate/graph'
import {
  type Call,
  type PolicyInput,
  parseCall,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  scopeChart,
  wakeAt,
} from '../../../machines/index.ts'
import { endingOf } from '../../../machines/scheduling/lifecycle.ts'
import { encodeScope } from '../../../machines/snapshot/codec.ts'

type Snapshot = SnapshotFrom<typeof providerScope>

/** The part of a state's definition that is looked at: the same for the machine in force and for a made-up one. */
export interface StateDefinition {
  readonly id: string
  readonly states: Readonly<Record<string, StateDefinition>>
  readonly always?: ReadonlyArray<{ readonly guard?: unknown }> | undefined
  readonly transitions: ReadonlyMap<string, ReadonlyArray<{ readonly guard?: unknown }>>
}

const guardName = (guard: unknown): string =>
  guard === undefined
    ? 'unguarded'
    : typeof guard === 'string'
      ? guard
      : String((guard as { type: string }).type)

/** Every state below `root`, `root` included. */
export const statesOf = (root: StateDefinition): ReadonlyArray<StateDefinition> => [
  root,
  ...Object.values(root.states).flatMap(statesOf),
]

/** Every transition of every state by name: `scope.idle, always 1: primaryWanted`. */
export const transitionsOf = (root: StateDefinition): ReadonlyMap<unknown, string> => {
  const names = new Map<unknown, string>()
  for (const { id, always = [], transitions } of statesOf(root)) {
    for (const [index, transition] of always.entries()) {
      names.set(transition, `${id}, always ${index + 1}: ${guardName(transition.guard)}`)
    }
    for (const [event, list] of transitions) {
      for (const [index, transition] of list.entries()) {
        names.set(transition, `${id}, on ${event} ${index + 1}: ${guardName(transition.guard)}`)
      }
    }
  }
  return names
}

/** Names of the guards that some transition below `root` asks. */
export const guardsOf = (root: StateDefinition): ReadonlySet<string> => {
  const guards = statesOf(root).flatMap(({ always = [], transitions }) =>
    [...always, ...[...transitions.values()].flat()].map(({ guard }) => guardName(guard)),
  )
  return new Set(guards.filter((name) => name !== 'unguarded'))
}

/** What a walk went through. */
export interface Covered {
  /** Ids of states in which an event ended. */
  readonly states: Set<string>
  /** Names as `transitionsOf` gives them. */
  readonly transitions: Set<string>
  /** `guard: true` and `guard: false`. */
  readonly outcomes: Set<string>
  /** Events, and the state they came in, after which the scope's walk and XState's interpreter differ. */
  readonly disagreements: Set<string>
  /** Paths walked, and the longest, events. */
  paths: number
  longest: number
}

export const nothingCovered = (): Covered => ({
  states: new Set(),
  transitions: new Set(),
  outcomes: new Set(),
  disagreements: new Set(),
  paths: 0,
  longest: 0,
})

/** What of `root` was not gone through. */
export const uncovered = (root: StateDefinition, covered: Covered): ReadonlyArray<string> => [
  ...statesOf(root)
    .map(({ id }) => id)
    .filter((id) => !covered.states.has(id)),
  ...[...transitionsOf(root).values()].filter((name) => !covered.transitions.has(name)),
  ...[...guardsOf(root)]
    .flatMap((name) => [`${name}: true`, `${name}: false`])
    .filter((outcome) => !covered.outcomes.has(outcome)),
]

/** Notes the outcome of every guard that the machine asks. Answers how to stop. */
const watchGuards = (covered: Covered): (() => void) => {
  const guards = scopeChart.implementations.guards as Record<string, (...args: unknown[]) => boolean>
  const originals = { ...guards }
  for (const [name, guard] of Object.entries(originals)) {
    guards[name] = (...args) => {
      const outcome = guard(...args)
      covered.outcomes.add(`${name}: ${outcome}`)
      return outcome
    }
  }
  return () => {
    Object.assign(guards, originals)
  }
}

type Transition = typeof providerScope.transition

/** All that a snapshot says: its state, what it knows, and what was decided. */
export const said = ({ value, context: { scope } }: Snapshot): string =>
  JSON.stringify([value, encodeScope(scope), scope.decisions, scope.summary])

/** The machine, taken through XState's interpreter with a look at each microstep, and through its own walk. */
const watched = (covered: Covered): typeof providerScope => {
  const names = transitionsOf(scopeChart.root)
  const transition: Transition = (snapshot, event, actorScope) => {
    const system = Object.assign(Object.create(actorScope.system as object), {
      _sendInspectionEvent: ({ _transitions = [] }: { readonly _transitions?: ReadonlyArray<unknown> }) => {
        for (const taken of _transitions)
          covered.transitions.add(names.get(taken) ?? 'a transition of no state')
      },
    })
    const interpreted = scopeChart.transition(snapshot, event, { ...actorScope, system } as never)
    const next = providerScope.transition(snapshot, event, actorScope)
    if (said(interpreted) !== said(next))
      covered.disagreements.add(`${event.type} in ${snapshot.context.scope.state}`)
    for (const { id } of (next as unknown as { readonly _nodes: ReadonlyArray<{ id: string }> })._nodes)
      covered.states.add(id)
    return next
  }
  return { ...providerScope, transition }
}

/** One story's calls, and how the walk begins. */
export interface World {
  readonly policy: PolicyInput
  readonly calls: ReadonlyArray<Partial<Call> & { readonly id: string }>
  /** Whether a turn that holds the gate may begin and end. */
  readonly turns?: boolean
  /** The provider may refuse calls for their tokens. */
  readonly refusals?: boolean
}

const callOf = (call: World['calls'][number]): Call =>
  parseCall({
    turnId: null,
    lane: 'auxiliary',
    priorityClass: 'background_ingestion',
    principal: 'a',
    inputTokens: 100,
    outputTokens: 0,
    deadlineAt: null,
    dependsOn: [],
    parentId: null,
    ...call,
  })

const isKnown = (scope: ScopeContext, id: string): boolean =>
  HashMap.has(scope.waiting, id) || HashMap.has(scope.inFlight, id) || endingOf(scope, id) !== undefined

/** Everything that may happen next: each call comes once, and time moves from one wake-up to the next. */
const eventsOf =
  (world: World) =>
  ({ context: { scope } }: Snapshot): ScopeEvent[] => {
    const { at } = scope
    const events: ScopeEvent[] = []
    for (const call of world.calls) {
      if (!isKnown(scope, call.id)) events.push({ type: 'call.submitted', at, call: callOf(call) })
    }
    for (const callId of HashMap.keys(scope.waiting)) events.push({ type: 'call.withdrawn', at, callId })
    for (const { call, stage, attempts } of HashMap.values(scope.inFlight)) {
      const callId = call.id
      events.push({ type: 'call.settled', at, callId, outcome: 'completed' })
      if (stage !== 'accepted') events.push({ type: 'call.accepted', at, callId })
      if (world.refusals && stage !== 'accepted' && attempts === 1) {
        const evidence = {
          kind: 'acceleration',
          scope: 'model',
          retryAfterMs: null,
          retryable: true,
          facts: {},
        } as const
        events.push({ type: 'call.settled', at, callId, outcome: 'throttled', evidence })
      }
    }
    const due = wakeAt(scope)
    if (due !== null) events.push({ type: 'clock.woke', at: due })
    if (world.turns)
      events.push(
        scope.heldTurns === 0
          ? { type: 'turn.began', at, turnId: 't', betweenRounds: 'hold' }
          : { type: 'turn.ended', at, turnId: 't' },
      )
    return events
  }

/** Two moments are the same when nothing that is decided by differs; times count from now. */
const essence = ({ context: { scope } }: Snapshot): string => {
  const { at, phase, drain, wait } = scope
  const ahead = (time: number): number => Math.max(0, time - at)
  const due = wakeAt(scope)
  const sorted = <T>(values: Iterable<T>, shown: (value: T) => string): string =>
    [...values].map(shown).sort().join()
  return JSON.stringify([
    scope.state,
    sorted(HashMap.values(scope.waiting), ({ call, attempts }) => `${call.id}${attempts}`),
    sorted(HashMap.values(scope.inFlight), ({ call, stage, preempted }) => `${call.id}${stage}${preempted}`),
    scope.ended.newer.length,
    [phase.patienceUntilMs, phase.graceUntilMs, phase.quietUntilMs, phase.lingerUntilMs].map(ahead),
    [drain.windowTokens, drain.servedTokens, scope.primaryOwed, scope.heldTurns],
    wait === null ? 0 : ahead(wait.untilMs),
    due === null ? null : due - at,
  ])
}

/** Walks the shortest path to every moment of `world` that differs, and everything that may happen there. */
export const walk = (world: World, covered: Covered): void => {
  const unwatch = watchGuards(covered)
  try {
    const paths = getShortestPaths(watched(covered), {
      input: { scope: 'graph', policy: world.policy, at: 1_000_000 },
      events: eventsOf(world) as never,
      serializeState: essence as never,
      limit: 40_000,
    })
    covered.paths += paths.length
    for (const { steps } of paths) covered.longest = Math.max(covered.longest, steps.length)
  } finally {
    unwatch()
  }
}
