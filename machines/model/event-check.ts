/**
 * Checks every event before it changes a scope: one event whose `at` is not a number would corrupt all later
 * deadlines. The check is a few comparisons. When a comparison fails, a schema names the fault.
 */
import { Schema } from 'effect'
import { CallSchema, isCall, maxEpochMs, maxTokens, type Usage } from './call.ts'
import type { Outcome, OwnerStance, ScopeEvent, ScopeEventType, SettlementCause } from './event.ts'
import { type Evidence, evidenceKinds, evidenceScopes, type LimitReading } from './evidence.ts'
import { decodeOrThrow, finite, InvalidInput, integer, maxSafe } from './invalid.ts'
import { checkPolicy } from './policy.ts'

const outcomes = [
  'completed',
  'failed',
  'cancelled',
  'timedOut',
  'throttled',
  'abandoned',
  'unknown',
] as const satisfies ReadonlyArray<Outcome>

const causes = ['truncated', 'stalled-client', 'never-sent'] as const satisfies ReadonlyArray<SettlementCause>

const stances = ['sends', 'away', 'left'] as const satisfies ReadonlyArray<OwnerStance>

const dimensions = [
  'requests-per-minute',
  'requests-per-day',
  'tokens-per-minute',
  'tokens-per-day',
  'input-tokens-per-minute',
  'output-tokens-per-minute',
] as const satisfies ReadonlyArray<LimitReading['dimension']>

const at = integer(0, maxEpochMs)
const amount = finite(-maxSafe, maxSafe)
const tokens = finite(0, maxTokens)
const optional = Schema.optional

const UsageSchema = Schema.Struct({
  inputTokens: Schema.NullOr(tokens),
  outputTokens: Schema.NullOr(tokens),
  allInputTokens: optional(tokens),
  cacheReadTokens: optional(tokens),
})

const EvidenceSchema = Schema.Struct({
  kind: Schema.Literals(evidenceKinds),
  scope: Schema.Literals(evidenceScopes),
  retryAfterMs: Schema.NullOr(finite(0, maxEpochMs)),
  retryable: Schema.Boolean,
  facts: Schema.Struct({
    currentLimit: optional(amount),
    nextLimit: optional(amount),
    limit: optional(amount),
    used: optional(amount),
    requested: optional(amount),
    actual: optional(amount),
    unit: optional(Schema.String),
  }),
  holdMs: optional(finite(0, maxEpochMs)),
})

const LimitReadingSchema = Schema.Struct({
  dimension: Schema.Literals(dimensions),
  limit: Schema.NullOr(amount),
  remaining: Schema.NullOr(amount),
  resetAtMs: Schema.NullOr(amount),
})

const name = Schema.String
const bare = Schema.Struct({ type: name, at })
const ofCall = Schema.Struct({ type: name, at, callId: name })

/** The schema of each event type. For an unknown type, the error names the type. */
const schemas: Readonly<Record<ScopeEventType, Schema.Decoder<unknown>>> = {
  'call.submitted': Schema.Struct({
    type: name,
    at,
    call: CallSchema,
    dispatchAtOnce: optional(Schema.Boolean),
  }),
  'call.withdrawn': ofCall,
  'call.dispatched': ofCall,
  'call.accepted': ofCall,
  'call.settled': Schema.Struct({
    type: name,
    at,
    callId: name,
    outcome: Schema.Literals(outcomes),
    usage: optional(UsageSchema),
    evidence: optional(EvidenceSchema),
    owner: optional(Schema.Literals(stances)),
    late: optional(Schema.Boolean),
    cause: optional(Schema.Literals(causes)),
  }),
  'call.promoted': ofCall,
  'call.claimed': ofCall,
  'provider.evidence': Schema.Struct({
    type: name,
    at,
    evidence: optional(EvidenceSchema),
    limits: optional(Schema.Array(LimitReadingSchema)),
  }),
  'wait.released': bare,
  'turn.began': Schema.Struct({
    type: name,
    at,
    turnId: name,
    betweenRounds: Schema.Literals(['hold', 'yield']),
  }),
  'turn.ended': Schema.Struct({ type: name, at, turnId: name }),
  'policy.changed': Schema.Struct({ type: name, at, policy: Schema.Unknown }),
  'foreground.changed': Schema.Struct({ type: name, at, active: Schema.Boolean }),
  'clock.woke': bare,
  'host.recovered': bare,
  'host.closing': Schema.Struct({ type: name, at, unused: Schema.Array(name) }),
  'history.lost': Schema.Struct({ type: name, at, calls: Schema.Array(name) }),
}

const isAmount = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && value >= least && value <= most

const isAmountOrNull = (value: unknown, least: number, most: number): boolean =>
  value === null || isAmount(value, least, most)

const isUsage = (usage: Usage | undefined): boolean =>
  usage === undefined ||
  (usage !== null &&
    isAmountOrNull(usage.inputTokens, 0, maxTokens) &&
    isAmountOrNull(usage.outputTokens, 0, maxTokens) &&
    (usage.allInputTokens === undefined || isAmount(usage.allInputTokens, 0, maxTokens)) &&
    (usage.cacheReadTokens === undefined || isAmount(usage.cacheReadTokens, 0, maxTokens)))

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const areFacts = (facts: Evidence['facts']): boolean => {
  if (!isObject(facts)) return false
  const { unit, ...amounts } = facts
  return (
    (unit === undefined || typeof unit === 'string') &&
    Object.values(amounts).every((value) => value === undefined || isAmount(value, -maxSafe, maxSafe))
  )
}

const isEvidence = (evidence: Evidence | undefined): boolean =>
  evidence === undefined ||
  (isObject(evidence) &&
    evidenceKinds.includes(evidence.kind) &&
    evidenceScopes.includes(evidence.scope) &&
    isAmountOrNull(evidence.retryAfterMs, 0, maxEpochMs) &&
    typeof evidence.retryable === 'boolean' &&
    (evidence.holdMs === undefined || isAmount(evidence.holdMs, 0, maxEpochMs)) &&
    areFacts(evidence.facts))

const isReading = (reading: LimitReading): boolean =>
  isObject(reading) &&
  dimensions.includes(reading.dimension) &&
  isAmountOrNull(reading.limit, -maxSafe, maxSafe) &&
  isAmountOrNull(reading.remaining, -maxSafe, maxSafe) &&
  isAmountOrNull(reading.resetAtMs, -maxSafe, maxSafe)

const hasFields = (event: ScopeEvent): boolean => {
  switch (event.type) {
    case 'call.submitted':
      return (
        isCall(event.call) &&
        (event.dispatchAtOnce === undefined || typeof event.dispatchAtOnce === 'boolean')
      )
    case 'call.withdrawn':
    case 'call.dispatched':
    case 'call.accepted':
    case 'call.promoted':
    case 'call.claimed':
      return typeof event.callId === 'string'
    case 'call.settled':
      return (
        typeof event.callId === 'string' &&
        outcomes.includes(event.outcome) &&
        isUsage(event.usage) &&
        isEvidence(event.evidence) &&
        (event.owner === undefined || stances.includes(event.owner)) &&
        (event.late === undefined || typeof event.late === 'boolean') &&
        (event.cause === undefined || causes.includes(event.cause))
      )
    case 'provider.evidence':
      return (
        isEvidence(event.evidence) &&
        (event.limits === undefined || (Array.isArray(event.limits) && event.limits.every(isReading)))
      )
    case 'turn.began':
      return (
        typeof event.turnId === 'string' &&
        (event.betweenRounds === 'hold' || event.betweenRounds === 'yield')
      )
    case 'turn.ended':
      return typeof event.turnId === 'string'
    case 'policy.changed':
      // The policy is the only large field, and this event is rare.
      checkPolicy(event.policy, 'event.policy')
      return true
    case 'foreground.changed':
      return typeof event.active === 'boolean'
    case 'host.closing':
      return Array.isArray(event.unused) && event.unused.every((callId) => typeof callId === 'string')
    case 'history.lost':
      return Array.isArray(event.calls) && event.calls.every((callId) => typeof callId === 'string')
    case 'wait.released':
    case 'clock.woke':
    case 'host.recovered':
      return true
    default:
      return false
  }
}

const isTime = (value: unknown): boolean => Number.isInteger(value) && isAmount(value, 0, maxEpochMs)

/**
 * Accepts a known event with a time and well-formed fields. Otherwise throws `InvalidInput`, which names the
 * field.
 */
export const checkEvent = (event: ScopeEvent): void => {
  if (isObject(event) && isTime(event.at) && hasFields(event)) return
  const type: unknown = isObject(event) ? event.type : undefined
  const refused = (field: string, expected: string, got: unknown) =>
    new InvalidInput([{ field, expected, got: String(got) }])
  if (typeof type !== 'string' || !Object.hasOwn(schemas, type))
    throw refused('event.type', `one of ${Object.keys(schemas).join(', ')}`, type)
  decodeOrThrow(schemas[type as ScopeEventType], 'event', event)
  // The schema found no fault, but the comparisons decide.
  throw refused('event', 'a well-formed fact', type)
}
