import { Data, Schema } from 'effect'
import { changingBucket } from './changing-bucket.ts'
import { concurrency } from './concurrency.ts'
import { dailyQuota } from './daily-quota.ts'
import { outage } from './outage.ts'
import { outputTokensPerMinute } from './output-tokens-per-minute.ts'
import { overload } from './overload.ts'
import { requestsPerMinute } from './requests-per-minute.ts'
import { countings, reservedTokens, settlements } from './reserved-tokens.ts'
import { type LimitRule, ruleNames, type Statement, statements } from './rule.ts'
import { slowDown } from './slow-down.ts'
import { spendCap } from './spend-cap.ts'
import { timeStep } from './time-step.ts'
import { chargedAt, tokenBucket } from './token-bucket.ts'
import { tokenWindow, windowForms } from './token-window.ts'
import { useGrowth } from './use-growth.ts'

/** A number whose error names the value and the range. */
const inRange = (minimum: number, maximum: number, whole: boolean) =>
  Schema.Number.check(
    Schema.makeFilter((value: number) =>
      value >= minimum && value <= maximum && (!whole || Number.isInteger(value))
        ? undefined
        : `must be ${whole ? 'a whole number' : 'a number'} in [${minimum}, ${maximum}], got ${value}`,
    ),
  )

const tokens = inRange(1, 1_000_000_000, true)
const requests = inRange(1, 10_000_000, true)
const growth = inRange(1, 100, false)
const states = Schema.optionalKey(Schema.Literals(statements))

const TokenBucketSpec = Schema.Struct({
  rule: Schema.Literal('token-bucket'),
  states,
  inputTokensPerMinute: tokens,
  burstInputTokens: Schema.optionalKey(tokens),
  chargedAt: Schema.optionalKey(Schema.Literals(chargedAt)),
  failuresCharge: Schema.optionalKey(Schema.Boolean),
})

/** Times after the start, at most a year. */
const time = inRange(0, 31_536_000_000, true)

/** Changes of a limit: in the order of their times, from the start on. */
const fromTheStart = Schema.makeFilter((changes: ReadonlyArray<{ readonly atMs: number }>) =>
  changes[0]?.atMs === 0 && changes.every(({ atMs }, index) => index === 0 || atMs > changes[index - 1]!.atMs)
    ? undefined
    : `must begin at 0 and ascend, got ${JSON.stringify(changes.map(({ atMs }) => atMs))}`,
)

const ChangingBucketSpec = Schema.Struct({
  rule: Schema.Literal('changing-bucket'),
  states,
  changes: Schema.Array(
    Schema.Struct({
      atMs: time,
      inputTokensPerMinute: tokens,
      burstInputTokens: Schema.optionalKey(tokens),
    }),
  ).check(fromTheStart),
  everyMs: Schema.optionalKey(inRange(1_000, 31_536_000_000, true)),
}).check(
  Schema.makeFilter(
    (spec: { readonly changes: ReadonlyArray<{ readonly atMs: number }>; readonly everyMs?: number }) =>
      spec.everyMs === undefined || spec.everyMs > spec.changes.at(-1)!.atMs
        ? undefined
        : {
            path: ['everyMs'],
            issue: `must be later than the last change at ${spec.changes.at(-1)!.atMs}, got ${spec.everyMs}`,
          },
  ),
)

const TokenWindowSpec = Schema.Struct({
  rule: Schema.Literal('token-window'),
  states,
  form: Schema.Literals(windowForms),
  inputTokensPerWindow: tokens,
  windowMs: Schema.optionalKey(inRange(1_000, 86_400_000, true)),
})

const OutageSpec = Schema.Struct({
  rule: Schema.Literal('outage'),
  states,
  periods: Schema.Array(Schema.Tuple([time, time])).check(
    Schema.makeFilter((periods: ReadonlyArray<readonly [number, number]>) =>
      periods.flat().every((atMs, index, all) => index === 0 || atMs > all[index - 1]!)
        ? undefined
        : `must ascend and be apart, got ${JSON.stringify(periods)}`,
    ),
  ),
})

const floorWithinTier = Schema.makeFilter(
  (spec: { readonly floorTokensPerMinute: number; readonly tierTokensPerMinute: number }) =>
    spec.floorTokensPerMinute <= spec.tierTokensPerMinute
      ? undefined
      : {
          path: ['floorTokensPerMinute'],
          issue: `must be in [1, tierTokensPerMinute] = [1, ${spec.tierTokensPerMinute}], got ${spec.floorTokensPerMinute}`,
        },
)

const UseGrowthSpec = Schema.Struct({
  rule: Schema.Literal('use-growth'),
  states,
  floorTokensPerMinute: tokens,
  growthPerMinute: growth,
  tierTokensPerMinute: tokens,
}).check(floorWithinTier)

const TimeStepSpec = Schema.Struct({
  rule: Schema.Literal('time-step'),
  states,
  floorTokensPerMinute: tokens,
  stepTokensPerMinute: tokens,
  tierTokensPerMinute: tokens,
  idleResetMinutes: inRange(1, 1_000_000, true),
}).check(floorWithinTier)

const SlowDownSpec = Schema.Struct({
  rule: Schema.Literal('slow-down'),
  states,
  steadyTokensPerMinute: tokens,
  growth,
  // At least a minute: a window must outlast the trailing minutes that it compares.
  windowMs: inRange(60_000, 86_400_000, true),
})

const RequestsPerMinuteSpec = Schema.Struct({
  rule: Schema.Literal('requests-per-minute'),
  states,
  requestsPerMinute: requests,
})

const OutputTokensPerMinuteSpec = Schema.Struct({
  rule: Schema.Literal('output-tokens-per-minute'),
  states,
  outputTokensPerMinute: tokens,
})

const ReservedTokensSpec = Schema.Struct({
  rule: Schema.Literal('reserved-tokens'),
  states,
  tokensPerMinute: tokens,
  defaultMaxTokens: Schema.optionalKey(inRange(0, 1_000_000_000, true)),
  counts: Schema.optionalKey(Schema.Literals(countings)),
  settles: Schema.optionalKey(Schema.Literals(settlements)),
  outputWeight: Schema.optionalKey(inRange(1, 100, true)),
  failuresCharge: Schema.optionalKey(Schema.Boolean),
})

const ConcurrencySpec = Schema.Struct({
  rule: Schema.Literal('concurrency'),
  states,
  maxConcurrent: inRange(1, 1_000_000, true),
  changes: Schema.optionalKey(
    Schema.Array(Schema.Struct({ atMs: time, maxConcurrent: inRange(1, 1_000_000, true) })).check(
      fromTheStart,
    ),
  ),
})

const OverloadSpec = Schema.Struct({
  rule: Schema.Literal('overload'),
  states,
  probability: inRange(0, 1, false),
})

const DailyQuotaSpec = Schema.Struct({
  rule: Schema.Literal('daily-quota'),
  states,
  inputTokensPerDay: Schema.optionalKey(inRange(1, 1_000_000_000_000, true)),
  requestsPerDay: Schema.optionalKey(inRange(1, 1_000_000_000, true)),
}).check(
  Schema.makeFilter((spec: { readonly inputTokensPerDay?: number; readonly requestsPerDay?: number }) =>
    (spec.inputTokensPerDay === undefined) !== (spec.requestsPerDay === undefined)
      ? undefined
      : `must have one of inputTokensPerDay and requestsPerDay, got ${spec.requestsPerDay === undefined ? 'neither' : 'both'}`,
  ),
)

const SpendCapSpec = Schema.Struct({
  rule: Schema.Literal('spend-cap'),
  states,
  afterRequests: Schema.optionalKey(inRange(0, 1_000_000_000, true)),
})

/** One rule as a scenario names it: `{ "rule": "token-bucket", "inputTokensPerMinute": 210000 }`. */
export const RuleSpec = Schema.Union([
  TokenBucketSpec,
  ChangingBucketSpec,
  TokenWindowSpec,
  UseGrowthSpec,
  TimeStepSpec,
  SlowDownSpec,
  RequestsPerMinuteSpec,
  OutputTokensPerMinuteSpec,
  ReservedTokensSpec,
  ConcurrencySpec,
  OverloadSpec,
  OutageSpec,
  DailyQuotaSpec,
  SpendCapSpec,
])
export type RuleSpec = typeof RuleSpec.Type

/** Rules that cannot exist: the message names each field, the range and the value. */
export class InvalidRules extends Data.TaggedError('InvalidRules')<{ readonly message: string }> {}

const decodeList = Schema.decodeUnknownSync(Schema.Array(RuleSpec), {
  onExcessProperty: 'error',
  errors: 'all',
  reportInput: true,
})

/** Reads a list of rules from JSON-like data. Throws `InvalidRules`. */
export const decodeRules = (input: unknown): readonly RuleSpec[] => {
  refuseUnknownNames(input)
  try {
    return decodeList(input)
  } catch (error) {
    throw new InvalidRules({ message: error instanceof Error ? error.message : String(error) })
  }
}

/** Refuses misspelt names early. The union's own error would list every schema. */
const refuseUnknownNames = (input: unknown): void => {
  if (!Array.isArray(input)) {
    throw new InvalidRules({ message: `rules must be an array of rules, got ${JSON.stringify(input)}` })
  }
  for (const [index, spec] of input.entries()) {
    const name: unknown = typeof spec === 'object' && spec !== null ? Reflect.get(spec, 'rule') : undefined
    if (!ruleNames.some((known) => known === name)) {
      throw new InvalidRules({
        message: `rule must be one of ${ruleNames.join(', ')}, got ${JSON.stringify(name)}\n  at [${index}]["rule"]`,
      })
    }
  }
}

/**
 * The rule of a spec. `defaultStates` is for specs that state no detail; without it each rule has its own
 * default.
 */
export const makeRule = (spec: RuleSpec, defaultStates?: Statement): LimitRule<unknown> => {
  const options = defaultStates === undefined ? spec : { states: defaultStates, ...spec }
  switch (options.rule) {
    case 'token-bucket':
      return tokenBucket(options)
    case 'changing-bucket':
      return changingBucket(options)
    case 'token-window':
      return tokenWindow(options)
    case 'use-growth':
      return useGrowth(options)
    case 'time-step':
      return timeStep(options)
    case 'slow-down':
      return slowDown(options)
    case 'requests-per-minute':
      return requestsPerMinute(options)
    case 'output-tokens-per-minute':
      return outputTokensPerMinute(options)
    case 'reserved-tokens':
      return reservedTokens(options)
    case 'concurrency':
      return concurrency(options)
    case 'overload':
      return overload(options)
    case 'outage':
      return outage(options)
    case 'daily-quota':
      return dailyQuota(options)
    case 'spend-cap':
      return spendCap(options)
  }
}
