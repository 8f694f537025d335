/** rightofway: the primary has the right of way. */

export {
  adaptivePolicy,
  type Call,
  type Charges,
  contractPolicy,
  type Decision,
  defaultCharges,
  defaultPolicy,
  type EpisodeSummary,
  type Evidence,
  InvalidInput,
  type Lane,
  type Policy,
  type PolicyInput,
  type PresetName,
  type PriorityClass,
  parsePolicy,
  policyPresets,
  poolPolicy,
  type QosPolicy,
  SnapshotUnreadable,
  type Usage,
  type WorstCase,
  worstCaseWaitMs,
} from '../machines/index.ts'
export { bound } from './carrier/bound.ts'
export { type Carried, carry, priorityEnv, withCarried } from './carrier/carry.ts'
export { type CarrierCounters, carrierCounters } from './carrier/counters.ts'
export { extract, type HeaderRecord, inject } from './carrier/headers.ts'
export {
  hydrationTaskTypes,
  type ParsedPriority,
  parsePriority,
  priorityForTaskType,
  priorityHeader,
  priorityRank,
  priorityVariable,
} from './carrier/priority.ts'
export { currentPriority, delegate, delegated, priorityField, withPriority } from './carrier/with-priority.ts'
export type { AskedRequest } from './clients/asked-request.ts'
export { type CallContext, currentCall, withCall } from './clients/call-context.ts'
export { type LanedFetchOptions, lanedFetch } from './clients/laned-fetch.ts'
export { type LangChainLanes, langChainLanes } from './clients/laned-langchain.ts'
export { type LanedModelOptions, type LanguageModelLike, lanedModel } from './clients/laned-model.ts'
export {
  deferring,
  type LanedAdapterOptions,
  LaneRefusal,
  lanedAdapter,
  laneRefusalIn,
} from './clients/membrane-adapter.ts'
export { type Clock, ManualClock, systemClock } from './clock.ts'
export { chargesOf, type KnownCharges } from './config/charges.ts'
export { policyFromEnvironment } from './config/environment.ts'
export {
  bestEffortLaneCap,
  bulkLaneCap,
  engineReadPolicy,
  generationWorkers,
  interactiveFloor,
  type LanedPool,
  modelGatePolicy,
  workerPoolPolicy,
} from './config/pools.ts'
export { type Breaker, BreakerOpen } from './fan-out/breaker.ts'
export { type MapFunction, type MapOptions, mapConcurrent } from './fan-out/map-concurrent.ts'
export {
  Abandoned,
  ActiveTimeout,
  AdmissionError,
  AlreadySettled,
  AnswerUnread,
  AttemptsExhausted,
  DeadlineExceeded,
  DuplicateCall,
  ExceedsLimit,
  HostClosed,
  NotRetryable,
  OutcomeUnknown,
  PendingTimeout,
  Preempted,
  ScopeFailed,
  Shed,
  Unclaimed,
  Withdrawn,
} from './host/errors.ts'
export type { Explanation } from './host/explain.ts'
export { type AdmitOptions, LaneHost, LaneScope, openHost } from './host/host.ts'
export { type JournalStatus, journalStatus } from './host/journal-status.ts'
export { type Disposition, Permit, type Settlement } from './host/permit.ts'
export { ReplayDiverged } from './host/recovery.ts'
export type { CallRequest } from './host/request.ts'
export { fingerprint, type ScopeKey, scopeName } from './host/scope-name.ts'
export type { Observation } from './host/scope-record.ts'
export {
  type EffectScope,
  Host,
  type HostOpenError,
  type HostOptions,
  type RunOptions,
} from './host/service.ts'
export type { Alarm, AlarmKind, LaneStatus, ScopeStatus, TurnStatus } from './host/status.ts'
export type { Turn, TurnOptions } from './host/turn.ts'
export {
  type Journal,
  JournalCorrupt,
  JournalFailure,
  JournalLocked,
  JournalTooNew,
  JournalUnavailable,
  type JournalUsage,
} from './journal/journal.ts'
export { type ForegroundSink, foregroundInput } from './leases/foreground-input.ts'
export {
  type Lease,
  type LeaseCounters,
  type LeaseOptions,
  type Leases,
  openLeases,
} from './leases/leases.ts'
