/** Decisions, events and predictions as sentences. Only this file turns decisions into prose. */

import type { Decision, Reason, ScopeEvent, SettlementCause } from '../../machines/index.ts'
import type { BelievedLimit, Interval } from '../../machines/limits/belief/projection.ts'
import type { Fit, NoFitReason } from '../../machines/scheduling/fit-prediction.ts'
import type { ProviderWait } from '../../machines/state/context.ts'
import { momentWords } from './explain-fold.ts'
import type { LaneStatus, ScopeStatus } from './status.ts'

export const sentences: Readonly<Record<Reason, string>> = {
  open: 'the gate is open and there is room',
  primary: 'it is a primary and its turn came',
  drain: 'the backlog is released at the metered pace',
  fairness: 'its principal was held for maxDeferral, so its quantum comes before the next primary',
  dependency: 'a primary waits for its result',
  nested: 'it was made inside a running call, whose place it borrows',
  probe: 'it finds out whether the provider takes it',
  'warm-up': 'it lets the ceiling grow for a primary that does not fit yet',
  backfill: 'it is done before the primary can start',
  'primary-pending': 'a primary is pending',
  'primary-active': 'a primary is being answered',
  'turn-held': 'a turn holds the gate between its rounds',
  'quiet-window': 'it was refused for its size, and the scope is kept quiet until it is tried again',
  'auxiliaries-in-flight': 'auxiliaries in flight have to settle first',
  dependencies: 'calls that it depends on have not ended',
  'fairness-quantum': 'an auxiliary that was held for maxDeferral goes first',
  'capacity-full': 'every place is taken',
  'reserve-kept': 'the places left are kept for primaries',
  'behind-others': 'others are ahead of it',
  'drain-pace': 'the metered drain has spent its quantum for now',
  'provider-wait': 'the provider asked the whole scope to wait',
  budget: 'the budget does not hold it yet',
  forecast: 'the provider is not believed to take it yet',
  pacing: 'the provider refused its class, which backs off',
  quota: 'its principal has its quota in flight',
  'foreground-active': 'a foreground process is active',
  'refused-by-provider': 'the provider refused it; it keeps its place',
  preempted: 'a primary took its place; it keeps its turn',
  recovered: 'its host restarted; it keeps its place',
  'already-settled': 'a call of this id ended before',
  'exceeds-limit': 'it is larger than a declared limit can ever hold',
  'attempts-exhausted': 'the provider refused it for its size as often as maxAttempts allows',
  'not-retryable': 'the provider refused it for a reason that waiting does not mend',
  'outcome-unknown': 'it was running when its host died',
  'principal-quota': 'its principal had its quota of live calls',
  'class-ceiling': 'the places left were kept for higher classes',
  'fair-share': 'places were scarce and its principal had its share',
  'bucket-empty': 'its principal sent calls of its class too fast',
  deadline: 'its deadline passed',
  'pending-timeout': 'it waited longer than the policy allows',
  'active-timeout': 'it ran longer than the policy allows',
  unclaimed: 'it was recovered and nobody asked for it',
  abandoned: 'its holder did not answer the abort',
}

const verdicts: Readonly<Record<Decision['verdict'], string>> = {
  admit: 'admitted at once',
  defer: 'deferred',
  release: 'released',
  cancel: 'asked to stop',
  reject: 'rejected',
  expire: 'expired',
}

const causes: Readonly<Record<SettlementCause, string>> = {
  truncated: 'the answer ended without its end',
  'stalled-client': 'its client stayed connected and stopped reading',
  'never-sent': 'the request never left this machine',
}

export const clockTime = (at: number): string => new Date(at).toISOString().slice(11, 23)

/** In the units that a person would use, rounded to the smaller of at most two. */
export const duration = (ms: number): string => {
  if (ms < 120_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 172_800_000) return twoUnits(Math.round(ms / 60_000), 60, 'h', 'min')
  return twoUnits(Math.round(ms / 3_600_000), 24, 'd', 'h')
}

const twoUnits = (small: number, ofLarge: number, large: string, smallUnit: string): string => {
  const rest = small % ofLarge
  return `${Math.floor(small / ofLarge)} ${large}${rest === 0 ? '' : ` ${rest} ${smallUnit}`}`
}

const sent = 'sent to the provider'

/** The decision without its time; a second sentence where the call is sent with it. */
export const decisionWords = (decision: Decision): ReadonlyArray<string> => {
  const { verdict, reason, at, state, wakeAt, dispatched } = decision
  const again =
    typeof wakeAt === 'number' && wakeAt > at
      ? `; looked at again in ${duration(wakeAt - at)} at the latest`
      : ''
  const words = `${verdicts[verdict]}: ${sentences[reason]} (${reason}, in ${state})${again}`
  return dispatched === true ? [words, sent] : [words]
}

export const decisionLines = (decision: Decision): ReadonlyArray<string> =>
  decisionWords(decision).map((words) => `${clockTime(decision.at)} ${words}`)

export const eventLine = (event: ScopeEvent): string | null => {
  const words = eventWords(event)
  return words === null ? null : `${clockTime(event.at)} ${words}`
}

/** The event without its time; null where it says nothing about one call. */
export const eventWords = (event: ScopeEvent): string | null => {
  switch (event.type) {
    case 'call.submitted': {
      const { lane, priorityClass, principal, inputTokens } = event.call
      return `submitted: ${lane}, ${priorityClass}, for ${principal}, about ${inputTokens} input tokens`
    }
    case 'call.dispatched':
      return sent
    case 'call.accepted':
      return `the provider began to answer`
    case 'call.withdrawn':
      return `withdrawn by its owner`
    case 'call.settled': {
      const said = event.evidence === undefined ? '' : `; the provider said ${event.evidence.kind}`
      const used = event.usage?.inputTokens == null ? '' : `; used ${event.usage.inputTokens} input tokens`
      const how = event.cause === undefined ? '' : `; ${causes[event.cause]}`
      return `settled: ${event.outcome}${said}${used}${how}`
    }
    case 'call.promoted':
      return `promoted by hand`
    default:
      return null
  }
}

const thousands = (tokens: number): string => `${Math.round(tokens / 1000)}k`

const intervalWords = ({ low, high }: Interval): string =>
  high === null
    ? `ceiling at least ${thousands(low)}`
    : `ceiling between ${thousands(low)} and ${thousands(high)}`

const familyWords: Readonly<Record<BelievedLimit['family'], string>> = {
  bucket: 'a bucket that refills',
  trailing: 'a trailing minute',
  clock: 'a clock minute',
}

/** What is believed of one limit. */
const limitWords = ({
  layer,
  family,
  confidence,
  tokensPerMinute,
  roomTokens,
  burstTokens,
}: BelievedLimit) => {
  const { low, high } = tokensPerMinute
  const rate = high === null ? `at least ${thousands(low)}` : `${thousands(low)} to ${thousands(high)}`
  const burst = burstTokens === null ? '' : `, up to ${thousands(burstTokens)}`
  const room =
    roomTokens.high === null
      ? `room for at least ${thousands(roomTokens.low)} now`
      : `room for ${thousands(roomTokens.low)} to ${thousands(roomTokens.high)} now`
  const name = layer === 'limit' ? 'the limit' : 'the acceleration limit'
  return `${name} is believed (${Math.round(confidence * 100)} %) to be ${familyWords[family]}, ${rate} a minute${burst}, ${room}`
}

const noFitWords: Readonly<Record<NoFitReason, string>> = {
  'silence-does-not-help': 'no silence is expected to let it in',
}

/** The wait that the provider stated, and the earlier time at which one call tries, where there is one. */
export const waitWords = ({ untilMs, statedUntilMs, kind }: ProviderWait): string => {
  if (statedUntilMs === undefined) return `asked to wait until ${clockTime(untilMs)} (${kind})`
  return `asked to wait until ${dayTime(statedUntilMs)} (${kind}); one call finds out at ${dayTime(untilMs)}`
}

/** With its day: such a wait ends on another one. A time beyond a calendar's is shown as its number. */
const dayTime = (atMs: number): string =>
  Math.abs(atMs) <= 8.64e15 ? new Date(atMs).toISOString() : `epoch millisecond ${atMs}`

/** The scope of a waiting call in one sentence, with the facts that every other surface shows. */
export const scopeSentence = ({
  auxiliaryGate,
  placesTaken,
  capacity,
  primary,
  auxiliary,
  ceiling,
  wait,
}: ScopeStatus): string =>
  [
    `the scope: gate ${auxiliaryGate}`,
    `${placesTaken} of ${capacity} places taken`,
    laneWords(['primary waits', 'primaries wait'], primary),
    laneWords(['auxiliary waits', 'auxiliaries wait'], auxiliary),
    ...(ceiling.low === 0 && ceiling.high === null ? [] : [intervalWords(ceiling)]),
    ...(wait === null ? [] : [`the provider ${waitWords(wait)}`]),
  ].join(', ')

const laneWords = ([one, many]: readonly [string, string], { waiting, longestWaitMs }: LaneStatus): string =>
  `${waiting} ${waiting === 1 ? one : many}${longestWaitMs === null ? '' : ` (longest ${duration(longestWaitMs)})`}`

/** When a call that does not fit is expected to, and why. */
export const fitSentence = ({ predictedFitAtMs, reason, tryAtMs, probe, limits }: Fit): string => {
  const expected =
    predictedFitAtMs === null
      ? noFitWords[reason ?? 'silence-does-not-help']
      : `expected to fit at ${momentWords(predictedFitAtMs)}`
  const tried = predictedFitAtMs === null || probe ? `, tried next at ${momentWords(tryAtMs)}` : ''
  return `${[`${expected}${tried}`, ...limits.map(limitWords)].join('; ')}`
}
