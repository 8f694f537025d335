import { HashMap, Option } from 'effect'
import { type Endings, noEndings } from '../collections/ended-log.ts'
import type { Heap } from '../collections/heap.ts'
import type { Order } from '../collections/order.ts'
import { empty, type Queue } from '../collections/queue.ts'
import { type Belief, unknownBelief } from '../limits/belief/belief.ts'
import { type Demand, noDemand } from '../limits/belief/demand.ts'
import { type Budget, declare, noBudget } from '../limits/budget.ts'
import { initialCapacity, type LearnedCapacity } from '../limits/capacity.ts'
import type { Pace } from '../limits/pacing.ts'
import { emptyQos, type QosState } from '../limits/shed-limits.ts'
import type { Lane, PriorityClass } from '../model/call.ts'
import type { Decision, EpisodeSummary, ScopeState } from '../model/decision.ts'
import type { EvidenceKind } from '../model/evidence.ts'
import type { Policy } from '../model/policy.ts'
import type { InFlight, Place, Waiting } from './calls.ts'
import { type Counters, type Counts, noCounters, noCounts } from './counts.ts'
import { type Favor, noFavor } from './favor.ts'
import { type Lines, noLines, type Stand } from './lines.ts'

/** One principal's part of the auxiliary lane. */
export interface Principal {
  readonly queue: Queue<Place>
  /** Those of its calls whose turns have begun. It may hold places of calls that are gone. */
  readonly begun: Queue<Place>
  readonly waiting: number
  readonly inFlight: number
  /** Where it stands for a turn; null without a backlog, and at its quota. */
  readonly stands: Stand | null
  /** Virtual time at which the principal's next call starts, input tokens by weight. The least tag goes next. */
  readonly tag: number
  /** Epoch milliseconds of the principal's last release. */
  readonly servedAt: number
  /** Reading of the held clock at its last release, or when it was last below its quota again. */
  readonly heldFromMs: number
}

/** Tags of principals that neither wait nor run, in their order and by name. */
export interface Debts {
  readonly order: Order
  readonly tags: HashMap.HashMap<string, number>
}

/**
 * The whole state of a scope. It is plain and persistent: every event makes a new one and leaves the old one
 * unchanged.
 */
export interface ScopeContext {
  readonly scope: string
  readonly policy: Policy
  readonly learned: LearnedCapacity
  /** The live calls that shedding counts; null when the policy sheds nothing. */
  readonly qos: QosState | null
  /** The statechart's state, so that everything can be derived from the context alone. */
  readonly state: ScopeState
  /** Time of the newest event, epoch milliseconds; a clock that jumps back does not take it back. */
  readonly at: number
  readonly nextSeq: number
  readonly waiting: HashMap.HashMap<string, Waiting>
  readonly inFlight: HashMap.HashMap<string, InFlight>
  readonly counts: Counts
  /** Primaries by rank (0 to 3), first come first served within a rank. */
  readonly primaries: ReadonlyArray<Queue<Place>>
  /** When a primary of each rank was last granted, epoch milliseconds. */
  readonly rankServedAt: ReadonlyArray<number>
  /** Primaries with places before this have been passed by one of a lower rank: nothing passes them again. */
  readonly passedBefore: number
  /** Auxiliaries that a primary depends on, or that were promoted. */
  readonly urgent: Queue<Place>
  readonly principals: HashMap.HashMap<string, Principal>
  /** Principals with a backlog that are below their quota, in the orders of their turns. */
  readonly lines: Lines
  /** Virtual time of the auxiliary lane, input tokens by weight: it never goes back. */
  readonly virtualTokens: number
  /** Tags of principals that neither wait nor run, while virtual time has not passed them. */
  readonly debts: Debts
  /** Principals with a backlog that are at their quota. */
  readonly parked: number
  /**
   * The held clock runs only while primaries alone delay the auxiliary whose turn it is. The debt to a
   * principal is counted by it. Milliseconds; only differences have a meaning.
   */
  readonly heldMs: number
  /** The first call that is passed over because it does not fit yet, and how often it was passed over. */
  readonly bypass: { readonly callId: string; readonly count: number } | null
  /** Order of submission per lane, for timeouts. It may hold calls that are gone. */
  readonly arrivals: Readonly<Record<Lane, Queue<Place>>>
  /** Order of grants per lane, for timeouts. It may hold calls that are gone. */
  readonly grants: Readonly<Record<Lane, Queue<Place & { readonly grantedAt: number }>>>
  /** No timeout is due before this time, epoch milliseconds. The next timeout may be due later than this. */
  readonly sweepAt: number
  readonly deadlines: Heap | null
  readonly unclaimed: Heap | null
  /** Waiting primaries by the id of the call that they wait for. */
  readonly dependents: HashMap.HashMap<string, ReadonlyArray<string>>
  /**
   * Ids of calls that pass the gate when they come, with the primaries that named them before they were
   * submitted.
   */
  readonly expected: HashMap.HashMap<string, ReadonlyArray<string>>
  readonly turns: HashMap.HashMap<string, Turn>
  readonly heldTurns: number
  readonly favor: Favor
  readonly foregroundActive: boolean
  readonly budget: Budget
  /** What is believed of the provider's limits on input tokens. */
  readonly belief: Belief
  /** What primaries ask for. */
  readonly demand: Demand
  readonly wait: ProviderWait | null
  readonly pacing: Readonly<Partial<Record<PriorityClass, Pace>>>
  /** Deadlines of the present state, epoch milliseconds. */
  readonly phase: Phase
  readonly drain: Drain
  /**
   * Calls that run in places of their parents: by parent, the waiting children and the child that has the
   * place.
   */
  readonly nested: HashMap.HashMap<string, { readonly queue: Queue<Place>; readonly lent: string | null }>
  /**
   * Ids of calls that this event submitted or returned, and whose owners have not been told that they wait.
   */
  readonly unannounced: ReadonlyArray<string>
  /** A quantum was served while a primary was pending: the next primary goes before the next quantum. */
  readonly primaryOwed: boolean
  /** Reading of the held clock when that quantum ended. */
  readonly quantumEndedHeldMs: number
  readonly primaryGrantedAt: number
  readonly episode: Omit<EpisodeSummary, 'endedAt'> | null
  readonly ended: Endings
  /** Calls whose outcome died with their host and whose owner has not asked since: until when they are remembered, epoch milliseconds. */
  readonly unknown: HashMap.HashMap<string, number>
  readonly counters: Counters
  /** Refusals by the kind of evidence. */
  readonly refusalsByKind: Readonly<Partial<Record<EvidenceKind, number>>>
  /** The decisions of the last event. The next event replaces them. */
  readonly decisions: ReadonlyArray<Decision>
  /** Summary of an episode that the last event ended. */
  readonly summary: EpisodeSummary | null
}

/** The provider asked the whole scope to wait, or has nothing left for it. */
export interface ProviderWait {
  /** Epoch milliseconds. */
  readonly untilMs: number
  /** The kind of evidence that caused the wait. */
  readonly kind: string
  /** After an exhausted quota: the call that finds out whether the quota is back; null before it is sent. */
  readonly probeId: string | null
  /** The end of the wait that the provider stated, epoch milliseconds, where it is later than `untilMs`. */
  readonly statedUntilMs?: number
  /** The wait holds the whole credential or provider too; left out where it holds only this scope. */
  readonly reach?: 'credential' | 'provider'
}

/** The metered drain since its state was entered. */
export interface Drain {
  /** Epoch milliseconds. */
  readonly windowStartMs: number
  readonly windowTokens: number
  readonly servedTokens: number
  /** Beside a primary: the principal that was held longest has had its call of this quantum. */
  readonly heldServed: boolean
}

export interface Turn {
  readonly betweenRounds: 'hold' | 'yield'
  readonly beganAt: number
}

export interface Phase {
  /** `primaryPending`: the time at which patience, then grace, ends. */
  readonly patienceUntilMs: number
  readonly graceUntilMs: number
  /** `quietRamp.quiet`: the time at which the first primary is tried. */
  readonly quietUntilMs: number
  /** When time alone may next let a call go that was looked at, epoch milliseconds; 0: none. */
  readonly lookAgainMs: number
  /** The primary at the head that does not fit, and when it was promised to at the latest. */
  readonly promise: { readonly callId: string; readonly byMs: number } | null
  /** `settled`: the time at which the state becomes `idle`. */
  readonly lingerUntilMs: number
}

export const openPhase: Phase = {
  patienceUntilMs: 0,
  graceUntilMs: 0,
  quietUntilMs: 0,
  lookAgainMs: 0,
  promise: null,
  lingerUntilMs: 0,
}

/** The context of a scope before its first event. */
export const emptyContext = (scope: string, policy: Policy, at = 0): ScopeContext => ({
  scope,
  policy,
  learned: initialCapacity(policy),
  qos: policy.qos === null ? null : emptyQos,
  state: 'idle',
  at,
  nextSeq: 1,
  waiting: HashMap.empty(),
  inFlight: HashMap.empty(),
  counts: noCounts,
  primaries: [empty(), empty(), empty(), empty()],
  rankServedAt: [0, 0, 0, 0],
  passedBefore: 0,
  urgent: empty(),
  principals: HashMap.empty(),
  lines: noLines,
  virtualTokens: 0,
  debts: { order: null, tags: HashMap.empty() },
  parked: 0,
  heldMs: 0,
  bypass: null,
  arrivals: { primary: empty(), auxiliary: empty() },
  grants: { primary: empty(), auxiliary: empty() },
  sweepAt: Number.POSITIVE_INFINITY,
  deadlines: null,
  unclaimed: null,
  dependents: HashMap.empty(),
  expected: HashMap.empty(),
  turns: HashMap.empty(),
  heldTurns: 0,
  favor: noFavor,
  foregroundActive: false,
  budget: declare(noBudget, policy.limits, at),
  belief: unknownBelief,
  demand: noDemand,
  wait: null,
  pacing: {},
  phase: openPhase,
  drain: { windowStartMs: 0, windowTokens: 0, servedTokens: 0, heldServed: false },
  nested: HashMap.empty(),
  unannounced: [],
  primaryOwed: false,
  quantumEndedHeldMs: 0,
  primaryGrantedAt: 0,
  episode: null,
  ended: noEndings(at),
  unknown: HashMap.empty(),
  counters: noCounters,
  refusalsByKind: {},
  decisions: [],
  summary: null,
})

/**
 * Looks a key up. Most maps of a scope are usually empty, and an empty map answers without hashing the key.
 */
export const lookup = <T>(map: HashMap.HashMap<string, T>, key: string): T | undefined =>
  HashMap.isEmpty(map) ? undefined : Option.getOrUndefined(HashMap.get(map, key))

export const without = <T>(map: HashMap.HashMap<string, T>, key: string): HashMap.HashMap<string, T> =>
  HashMap.isEmpty(map) ? map : HashMap.remove(map, key)
