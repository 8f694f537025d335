/** rightofway: the primary has the right of way. */

export {
  type Call,
  type Decision,
  defaultPolicy,
  type EpisodeSummary,
  type Evidence,
  InvalidInput,
  type Lane,
  type Policy,
  type PolicyInput,
  type PriorityClass,
  parsePolicy,
  poolPolicy,
  type Usage,
  worstCaseWaitMs,
} from '../machines/index.ts'
export { type Clock, ManualClock, systemClock } from './clock.ts'
export * from './host/errors.ts'
export type { Explanation } from './host/explain.ts'
export { LaneHost, LaneScope, openHost } from './host/host.ts'
export { type Disposition, Permit, type Settlement } from './host/permit.ts'
export type { CallRequest } from './host/request.ts'
export { fingerprint, type ScopeKey, scopeName } from './host/scope-name.ts'
export type { Observation } from './host/scope-runner.ts'
export { type EffectScope, Host, type HostOptions, type RunOptions } from './host/service.ts'
export type { LaneStatus, ScopeStatus } from './host/status.ts'
