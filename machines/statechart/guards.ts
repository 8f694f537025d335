/** What leads out of the states: the guards of the statechart, as functions of what the scope knows. */
import { fairnessDue, primaryDue, primaryWanted } from '../scheduling/admission.ts'
import { hasBacklog } from '../scheduling/fairness.ts'
import type { ScopeContext } from '../state/context.ts'

const auxiliariesClear = ({ at, policy, counts, heldTurns, phase }: ScopeContext): boolean =>
  policy.inFlight === 'tolerate' ||
  counts.auxiliaryInTheWay <= policy.toleratedInFlight ||
  // The gate is held for primaries that already run: nobody has to make room. A turn has its primary still to come.
  (counts.primaryWaiting === 0 && heldTurns === 0) ||
  (policy.inFlight === 'settle' && policy.afterPatience === 'proceed' && at >= phase.patienceUntilMs)

/** By the names of the guards in the chart. */
export const guards = {
  primaryWanted,
  primariesGoneWithBacklog: (scope: ScopeContext) => !primaryWanted(scope) && hasBacklog(scope),
  primariesGone: (scope: ScopeContext) => !primaryWanted(scope),
  auxiliariesClear,
  fairnessDue,
  primaryDue,
  backlogEmpty: (scope: ScopeContext) => !hasBacklog(scope),
  quietOver: ({ at, phase }: ScopeContext) => at >= phase.quietUntilMs,
  headMustWait: ({ at, counts, phase }: ScopeContext) => counts.primaryReady > 0 && at < phase.quietUntilMs,
  primariesAccepted: ({ counts }: ScopeContext) =>
    counts.primaryWaiting === 0 && counts.primaryUnaccepted === 0,
  primaryArrived: ({ counts }: ScopeContext) => counts.primaryWaiting > 0 || counts.primaryUnaccepted > 0,
  lingerPassed: ({ at, counts, phase }: ScopeContext) => counts.places === 0 && at >= phase.lingerUntilMs,
}

export type GuardName = keyof typeof guards
