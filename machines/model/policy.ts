/** What a policy may say: every field with its meaning, unit and range. */
import { Schema } from 'effect'
import { maxTokens } from './call.ts'
import { ChargesSchema } from './charges.ts'
import { decodeOrThrow, finite, InvalidInput, integer, maxSafe, type Problem, text } from './invalid.ts'

const day = 24 * 60 * 60_000
const durationMs = integer(0, 30 * day)
const limit = Schema.NullOr(integer(1, maxSafe))

const LimitsSchema = Schema.Struct({
  requestsPerMinute: limit,
  requestsPerDay: limit,
  inputTokensPerMinute: limit,
  inputTokensPerDay: limit,
  outputTokensPerMinute: limit,
  outputTokensPerDay: limit,
})

/**
 * The provider's limits as the operator declares them; null where nothing is declared. Per minute or per day.
 */
export type Limits = typeof LimitsSchema.Type

const autoOr = <S extends Schema.Decoder<number>>(schema: S) => Schema.Union([Schema.Literal('auto'), schema])

const QosSchema = Schema.Struct({
  /** Places that each class leaves to the next higher one. `auto`: an eighth of the capacity, at least 1. */
  bandPlaces: autoOr(integer(0, 65_536)),
  /** Most live calls (waiting or running) of one principal. `auto`: a quarter of the capacity, at least 1. */
  principalCalls: autoOr(integer(1, 65_536)),
  /**
   * Calls of one principal and class that may come at once. `auto`: a quarter of the capacity, at least 4.
   */
  burstCalls: autoOr(integer(1, 65_536)),
  /** Calls of one principal and class per second, in the long run. `auto`: the capacity. */
  callsPerSecond: autoOr(finite(0.001, 65_536)),
})

/** The limits by which a shared server sheds calls. */
export type QosPolicy = typeof QosSchema.Type

export const strategies = ['quiet', 'holdSteady', 'stepUp', 'backfill', 'adaptive'] as const

/** The names of the presets (`model/presets.ts`). */
export const presetNames = ['contract', 'adaptive', 'pool'] as const
export type PresetName = (typeof presetNames)[number]

const PolicySchema = Schema.Struct({
  /** The preset that gives the fields that a later change leaves out: a scope keeps that with which it was opened. */
  preset: Schema.Literals(presetNames),
  /** Calls in flight at most. */
  capacity: integer(1, 65_536),
  /**
   * The fewest places when the provider's concurrency is learned; `capacity` is the most. Null: it is not
   * learned.
   */
  capacityFloor: Schema.NullOr(integer(1, 65_536)),
  /** Places that auxiliaries never take. `auto` sizes it from capacity and `reserveFraction`. */
  reserve: Schema.Union([Schema.Literal('auto'), integer(0, 65_535)]),
  reserveFraction: finite(0, 1),
  /** Input tokens that auxiliaries leave for the next primary. `auto`: the largest primary lately, while primaries come; in a limit by windows at most 4 % of it. */
  tokenReserve: autoOr(integer(0, maxTokens)),
  /** For this long after a primary was admitted, auxiliaries may fill only half of their places. */
  squeezeMs: durationMs,
  /** What happens to auxiliaries in flight when a primary becomes pending. */
  inFlight: Schema.Literals(['settle', 'cancel', 'tolerate']),
  /** Number of auxiliaries in flight that do not delay a primary. */
  toleratedInFlight: integer(0, 65_535),
  /** Longest wait for auxiliaries in flight under `settle`, then `afterPatience`. */
  patienceMs: durationMs,
  afterPatience: Schema.Literals(['proceed', 'cancel']),
  /** Time for a cancelled auxiliary to answer its abort before it counts as abandoned. */
  graceMs: durationMs,
  /** Longest silence before a primary of unknown fit is tried again. */
  quietWindowMs: durationMs,
  /** How a primary larger than the present ceiling gets in. */
  strategy: Schema.Literals(strategies),
  /** How long the gate stays closed for a primary. */
  hold: Schema.Literals(['whileWaiting', 'untilAccepted', 'untilSettled']),
  /**
   * Tokens that auxiliaries may use before the next primary once fairness is due; also the burst of the
   * metered drain.
   */
  quantumTokens: integer(1, maxSafe),
  /** The metered drain releases at most one quantum per interval. */
  drainIntervalMs: durationMs,
  /** Longest time for which primaries may delay a principal's auxiliaries without serving one. */
  maxDeferralMs: integer(100, 30 * day),
  /**
   * Longest time that primaries of better rank may hold back the first one of a lower rank. Then one call of it goes
   * before them; they are passed once each at most. Null: a lower rank waits for as long as better ones come.
   */
  maxRankDeferralMs: Schema.NullOr(integer(100, 30 * day)),
  /**
   * Which of equal calls go first. `begunInPrincipal`: of one principal's calls, those of turns that have begun, and
   * between principals by arrival. `begun`: primaries of begun turns go first between principals as well. `arrival`:
   * by arrival alone. A call that has waited for half its pending timeout is not passed.
   */
  favor: Schema.Literals(['begunInPrincipal', 'begun', 'arrival']),
  /** How long `settled` lasts before `idle`. */
  lingerMs: durationMs,
  primaryPendingTimeoutMs: durationMs,
  primaryActiveTimeoutMs: durationMs,
  auxiliaryPendingTimeoutMs: durationMs,
  auxiliaryActiveTimeoutMs: durationMs,
  /** Longest life of a turn that is never ended. */
  turnTimeoutMs: durationMs,
  /**
   * Refusals of one call at most that may be for its own size. An outage, too many calls or an exhausted quota
   * would refuse any call: the pending timeout bounds those.
   */
  maxAttempts: integer(1, 1_000),
  /** First wait of a class after the provider refused it. The wait doubles with every refusal. */
  pacingBaseMs: durationMs,
  pacingMaxMs: durationMs,
  /** How long a scope is held after a spend cap or an exhausted quota when the provider stated no time. */
  quotaHoldMs: durationMs,
  /** How long a recovered waiting call waits for its owner. */
  unclaimedExpiryMs: durationMs,
  /** At least this many ids of settled calls are remembered. */
  settledRetention: integer(0, 1_000_000),
  /** And at least for this long after they ended, up to a million of them; 0: by their number alone. */
  settledRetentionMs: durationMs,
  /** How long a call whose outcome died with its host is remembered until its owner asks; then as a settled one. */
  unknownRetentionMs: durationMs,
  /** Whether a call may be dispatched again when its host died before the outcome was known. */
  unknownAfterRestart: Schema.Literals(['report', 'dispatchAgain']),
  limits: LimitsSchema,
  /** What the provider counts of a call against these limits, and when (`model/charges.ts`). */
  charges: ChargesSchema,
  /** Share of a principal in the auxiliary lane, by its name; 1 when not named. */
  weights: Schema.Record(text(1, 256), finite(0.01, 1_000)),
  /** Largest number of a principal's auxiliaries in flight, by the principal's name. */
  quotas: Schema.Record(text(1, 256), integer(1, 65_536)),
  /**
   * Auxiliaries in flight of each principal that `quotas` does not name; null: only the places limit them.
   */
  principalQuota: Schema.NullOr(integer(1, 65_536)),
  /**
   * The limits of a shared server, which refuses calls at once instead of letting them wait
   * (`limits/shed-limits.ts`). Null: no call is shed.
   */
  qos: Schema.NullOr(QosSchema),
})

/** Every setting of one scope. Durations in milliseconds. */
export type Policy = typeof PolicySchema.Type

/** Checks a whole policy: a missing field is a fault. `name` is used in errors. Throws `InvalidInput`. */
export const checkPolicy = (input: unknown, name: string): Policy => {
  const policy = decodeOrThrow(PolicySchema, name, input)
  const problems: Problem[] = []
  if (policy.reserve !== 'auto' && policy.reserve > policy.capacity - 1) {
    const top = policy.capacity - 1
    problems.push({
      field: `${name}.reserve`,
      expected: `an integer in [0, capacity-1] = [0, ${top}]`,
      got: String(policy.reserve),
    })
  }
  if (policy.capacityFloor !== null && policy.capacityFloor > policy.capacity) {
    problems.push({
      field: `${name}.capacityFloor`,
      expected: `null or an integer in [1, capacity] = [1, ${policy.capacity}]`,
      got: String(policy.capacityFloor),
    })
  }
  if (policy.pacingMaxMs < policy.pacingBaseMs) {
    problems.push({
      field: `${name}.pacingMaxMs`,
      expected: `at least pacingBaseMs = ${policy.pacingBaseMs}`,
      got: String(policy.pacingMaxMs),
    })
  }
  if (problems.length > 0) throw new InvalidInput(problems)
  // Every event reads a dozen fields. A decoded record is a hash table to V8; a copy of it has a fixed shape.
  return { ...policy }
}
