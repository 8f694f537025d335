/** The decision core: pure, and usable in any XState 5 system without our host. */
export * from './call.ts'
export type { CeilingInterval, Growth, GrowthKind } from './ceiling.ts'
export type { InFlight, ScopeContext, Waiting } from './context.ts'
export { wakeAt } from './deadlines.ts'
export type * from './decision.ts'
export type * from './event.ts'
export * from './evidence.ts'
export { type WorstCase, worstCaseWaitMs } from './fairness.ts'
export { type Fit, fitOf, type NoFitReason } from './fit.ts'
export { InvalidInput } from './invalid.ts'
export {
  adaptivePolicy,
  defaultPolicy,
  type Limits,
  type Policy,
  type PolicyInput,
  parsePolicy,
  poolPolicy,
  type QosPolicy,
  reserveOf,
} from './policy.ts'
export {
  advance,
  contextFrom,
  type LiveScope,
  providerScope,
  type ScopeEmitted,
  type ScopeInput,
} from './provider-scope.ts'
export { waitReason } from './reason.ts'
export { type EncodedScope, SnapshotUnreadable, snapshotVersion } from './snapshot.ts'
export type { Arrow } from './walk.ts'
