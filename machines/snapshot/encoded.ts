/** The contents of a snapshot: a scope as plain JSON, without the values that follow from it. */
import type { EndingRow } from '../collections/ended-log.ts'
import type { Budget } from '../limits/budget.ts'
import type { Pace } from '../limits/pacing.ts'
import type { Ramp } from '../limits/ramp.ts'
import type { EncodedQos } from '../limits/shed-limits.ts'
import type { ScopeState } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { Counters, Drain, InFlight, Phase, ScopeContext, Turn, Waiting } from '../state/context.ts'

/**
 * Rises when the meaning of a written field changes. A decoder reads all versions up to its own. Fields that
 * were only added need no new version: the decoder completes them.
 */
export const snapshotVersion = 1

type Pairs<T> = ReadonlyArray<readonly [string, T]>

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
  readonly principals: Pairs<{ readonly deficitTokens: number; readonly servedAt: number }>
  readonly ring: ReadonlyArray<string>
  readonly bypass: ScopeContext['bypass']
  readonly nested: Pairs<{
    readonly lent: string | null
    readonly waiting: ReadonlyArray<{ seq: number; id: string }>
  }>
  readonly expected: Pairs<number>
  readonly turns: Pairs<Turn>
  readonly foregroundActive: boolean
  readonly budget: Budget
  readonly ramp: Ramp
  readonly wait: ScopeContext['wait']
  readonly pacing: Readonly<Record<string, Pace>>
  readonly phase: Phase
  readonly drain: Drain
  readonly primaryOwed: boolean
  readonly quantumEndedAt: number
  readonly primaryGrantedAt: number
  readonly episode: ScopeContext['episode']
  /** Both generations, the newer one first. Within each, the calls are in the order in which they ended. */
  readonly ended: readonly [ReadonlyArray<EndingRow>, ReadonlyArray<EndingRow>]
  readonly counters: Counters
  readonly refusalsByKind: ScopeContext['refusalsByKind']
}
