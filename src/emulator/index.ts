/**
 * A provider that enforces its limits, wire-true: `rightofway/emulator`. One core for virtual time
 * (`makeProvider`) and for HTTP on any clock (`startEmulator`, `makeEmulatorHandler`).
 */
export { type Clock, systemClock } from '../clock.ts'
export {
  type Emulator,
  type EmulatorHandler,
  type EmulatorHandlerOptions,
  type EmulatorOptions,
  makeEmulatorHandler,
  startEmulator,
} from './http.ts'
export {
  type Accepted,
  type Ending,
  type Latency,
  makeProvider,
  type Provider,
  type ProviderCall,
  type ProviderOptions,
  type Refused,
} from './provider.ts'
export type { LogEntry, Totals } from './request-log.ts'
export { allOf, type Composite, type CompositeState } from './rules/composite.ts'
export type {
  Completion,
  LimitCall,
  LimitFact,
  LimitRule,
  Refusal,
  RefusalKind,
  RuleAnswer,
  RuleName,
  Statement,
} from './rules/rule.ts'
export { decodeRules, InvalidRules, makeRule, RuleSpec } from './rules/spec.ts'
