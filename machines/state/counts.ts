/** A scope's counts: its present calls, and the outcomes of earlier ones. */

export interface Counters {
  readonly submitted: number
  readonly granted: number
  readonly completed: number
  readonly refusedByProvider: number
  readonly lateSettlements: number
  readonly lateEvidence: number
  readonly dependencyGrants: number
  readonly fairnessQuanta: number
  readonly preemptions: number
  readonly abandoned: number
  readonly unknownOutcomes: number
  readonly expired: number
  readonly rejected: number
}

export interface Counts {
  readonly primaryWaiting: number
  /** Primaries that stand in their queue, not waiting for a dependency. */
  readonly primaryReady: number
  readonly primaryInFlight: number
  readonly primaryUnaccepted: number
  readonly auxiliaryWaiting: number
  readonly auxiliaryInFlight: number
  /**
   * Auxiliaries in flight that a primary must wait for. Auxiliaries that primaries owe or need are left out.
   */
  readonly auxiliaryInTheWay: number
  /** Places taken; a borrowed place is not taken twice. */
  readonly places: number
}

export const noCounts: Counts = {
  primaryWaiting: 0,
  primaryReady: 0,
  primaryInFlight: 0,
  primaryUnaccepted: 0,
  auxiliaryWaiting: 0,
  auxiliaryInFlight: 0,
  auxiliaryInTheWay: 0,
  places: 0,
}

export const noCounters: Counters = {
  submitted: 0,
  granted: 0,
  completed: 0,
  refusedByProvider: 0,
  lateSettlements: 0,
  lateEvidence: 0,
  dependencyGrants: 0,
  fairnessQuanta: 0,
  preemptions: 0,
  abandoned: 0,
  unknownOutcomes: 0,
  expired: 0,
  rejected: 0,
}
