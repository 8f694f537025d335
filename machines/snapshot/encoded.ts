/** What a snapshot holds: a scope as plain JSON, without what follows from it. */
import type { EndingRow } from '../collections/ended-log.ts'
import type { Budget } from '../limits/budget.ts'
import type { Pace } from '../limits/pacing.ts'
import type { Ramp } from '../limits/ramp.ts'
import type { EncodedQos } from '../limits/shed-limits.ts'
import type { ScopeState } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Counters, Drain, InFlight, Phase, ScopeContext, Turn, Waiting } from '../state/context.ts'

/**
 * Rises when what is written changes its meaning; a decoder knows all versions up to its own. What was
 * only added is completed where it is missing.
 */
export const snapshotVersion = 1

type Pairs<T> = ReadonlyArray<readonly [string, T]>

/** What is written of a principal. Older versions wrote neither its turns nor a reading of the held clock. */
export interface EncodedPrincipal {
  readonly deficitTokens: number
  readonly servedAt: number
  readonly turns?: number
  readonly heldFromMs?: number
}

/** A scope as JSON. */
export interface EncodedScope {
  readonly version: typeof snapshotVersion
  readonly scope: string
  readonly state: ScopeState
  readonly at: number
  readonly policy: Policy
  readonly learned: ScopeContext['learned']
  readonly qos: EncodedQos | null
  readonly nextSeq: number
  readonly waiting: ReadonlyArray<Waiting>
  readonly inFlight: ReadonlyArray<InFlight>
  /** Not there in what older versions wrote: their clock was the time of day. */
  readonly heldMs?: number
  readonly principals: Pairs<EncodedPrincipal>
  /** Each name with its place; older versions wrote the names alone. */
  readonly ring: ReadonlyArray<string> | Pairs<number>
  readonly nextPlace?: number
  readonly bypass: ScopeContext['bypass']
  readonly nested: Pairs<{
    readonly lent: string | null
    readonly waiting: ReadonlyArray<{ seq: number; id: string }>
  }>
  /** Older versions wrote how many primaries expect it. */
  readonly expected: Pairs<ReadonlyArray<string> | number>
  /** Not there in what older versions wrote: no rank aged. */
  readonly rankServedAt?: ReadonlyArray<number>
  readonly passedBefore?: number
  readonly turns: Pairs<Turn>
  readonly foregroundActive: boolean
  readonly budget: Budget
  readonly ramp: Ramp
  readonly wait: ScopeContext['wait']
  readonly pacing: Readonly<Record<string, Pace>>
  readonly phase: Phase
  readonly drain: Drain
  readonly primaryOwed: boolean
  readonly quantumEndedHeldMs?: number
  /** What older versions wrote in its stead. */
  readonly quantumEndedAt?: number
  readonly primaryGrantedAt: number
  readonly episode: ScopeContext['episode']
  /** Of each generation, the newer first, in the order in which the calls ended. */
  readonly ended: readonly [ReadonlyArray<EndingRow>, ReadonlyArray<EndingRow>]
  readonly counters: Counters
  readonly refusalsByKind: ScopeContext['refusalsByKind']
}
