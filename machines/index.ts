/** The decision core: pure, and usable in any XState 5 system without our host. */

export { wakeAt } from './events/deadlines.ts'
export type { BelievedLimit, Interval } from './limits/belief/projection.ts'
export * from './model/call.ts'
export { type Charges, defaultCharges } from './model/charges.ts'
export type * from './model/decision.ts'
export type * from './model/event.ts'
export { checkEvent } from './model/event-check.ts'
export * from './model/evidence.ts'
export { InvalidInput } from './model/invalid.ts'
export { InvariantBroken, type InvariantNumber } from './model/invariant.ts'
export type { Limits, Policy, PresetName, QosPolicy } from './model/policy.ts'
export { type PolicyInput, parsePolicy, policyDifferences } from './model/policy-input.ts'
export { adaptivePolicy, contractPolicy, defaultPolicy, policyPresets, poolPolicy } from './model/presets.ts'
export { reserveOf } from './model/shares.ts'
export { type Fit, fitOf, type NoFitReason } from './scheduling/fit-prediction.ts'
export { waitReason } from './scheduling/wait-reason.ts'
export { type PrimaryWorstCase, type WorstCase, worstCaseWaitMs } from './scheduling/worst-case.ts'
export { SnapshotUnreadable } from './snapshot/codec.ts'
export { type EncodedScope, snapshotVersion } from './snapshot/encoded.ts'
export type { InFlight, Waiting } from './state/calls.ts'
export type { ScopeContext } from './state/context.ts'
export {
  advance,
  contextFrom,
  type LiveScope,
  type PersistedScope,
  type ProviderScope,
  providerScope,
} from './statechart/provider-scope.ts'
export {
  type ScopeEmitted,
  type ScopeInput,
  type ScopeRefused,
  scopeChart,
} from './statechart/scope-chart.ts'
export type { Arrow } from './statechart/walker.ts'
