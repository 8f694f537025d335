/** The contents of a snapshot: a scope as plain JSON, without the values that follow from it. */
import type { EndingRow } from '../collections/ended-log.ts'
import type { Budget } from '../limits/budget.ts'
import type { Pace } from '../limits/pacing.ts'
import type { EncodedQos } from '../limits/shed-limits.ts'
import type { ScopeState } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { InFlight, Waiting } from '../state/calls.ts'
import type { Drain, Phase, ScopeContext, Turn } from '../state/context.ts'
import type { Counters } from '../state/counts.ts'
import type { EncodedBelief } from './belief-schema.ts'

/**
 * Rises when the meaning of a written field changes. A decoder reads all versions up to its own. Fields that
 * were only added need no new version: the decoder completes them.
 */
export const snapshotVersion = 1

type Pairs<T> = ReadonlyArray<readonly [string, T]>

/** What is written of a principal. Older versions wrote no tag but a deficit, and no reading of the held clock. */
export interface EncodedPrincipal {
  readonly tag?: number
  readonly deficitTokens?: number
  readonly servedAt: number
  readonly heldFromMs?: number
}

/** Of the primaries of one rank, where seats were taken out of the order of arrival. */
export interface EncodedSeats {
  readonly rank: number
  /** Ids of the calls that gave their seats away. */
  readonly aside: ReadonlyArray<string>
  /** Numbers of the seats whose calls went earlier, with their principals. */
  readonly early: Pairs<string>
}

/** Turns that have begun, by generation, and seats that were taken out of the order of arrival. */
export interface EncodedFavor {
  readonly begun: ReadonlyArray<string>
  readonly begunBefore: ReadonlyArray<string>
  readonly begunSinceMs: number
  readonly seats: ReadonlyArray<EncodedSeats>
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
  /** Ids in flight in the order of their grants, where times and places do not tell it. */
  readonly granted?: ReadonlyArray<string>
  /** Missing in snapshots of older versions: their clock was the time of day. */
  readonly heldMs?: number
  readonly principals: Pairs<EncodedPrincipal>
  /** Each name with its place; older versions wrote the names alone. */
  readonly ring: ReadonlyArray<string> | Pairs<number>
  readonly nextPlace?: number
  /** Not there in what older versions wrote: then the least tag. */
  readonly virtualTokens?: number
  readonly debts?: Pairs<number>
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
  /** Not there where no turn has begun, and in what older versions wrote. */
  readonly favor?: EncodedFavor
  readonly budget: Budget
  /** Not there in what versions before beliefs wrote, which had a `ramp`. */
  readonly belief: EncodedBelief
  readonly demand: ScopeContext['demand']
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
  /** Both generations, the newer one first. Within each, the calls are in the order in which they ended. */
  readonly ended: readonly [ReadonlyArray<EndingRow>, ReadonlyArray<EndingRow>]
  /** Since when the newer generation is kept; 0 in what older versions wrote. */
  readonly endedSinceMs?: number
  /** Until when calls of unknown outcome are remembered, by id. Not there where there is none. */
  readonly unknown?: Pairs<number>
  readonly counters: Counters
  readonly refusalsByKind: ScopeContext['refusalsByKind']
}
