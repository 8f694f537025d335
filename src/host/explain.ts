/** Tells a person, from the journal alone, why a call waits or what happened to it. */
import { HashMap } from 'effect'
import { lookup, type Waiting } from '../../machines/context.ts'
import { endingOf } from '../../machines/endings.ts'
import { type Fit, fitOf, type NoFitReason } from '../../machines/fit.ts'
import {
  type Decision,
  type Reason,
  type ScopeContext,
  type ScopeEvent,
  waitReason,
} from '../../machines/index.ts'
import { toArray } from '../../machines/queue.ts'
import type { Journal } from '../journal/journal.ts'
import { type Found, searchBack } from './explain-search.ts'

export interface Explanation {
  readonly callId: string
  readonly scope: string
  /** Where the call stands: it waits, runs, or has ended. */
  readonly standing: 'waiting' | 'in flight' | 'ended'
  /** One line each, oldest first, with times. */
  readonly lines: ReadonlyArray<string>
}

const sentences: Readonly<Record<Reason, string>> = {
  open: 'the gate is open and there is room',
  primary: 'it is a primary and its turn came',
  drain: 'the backlog is released at the metered pace',
  fairness: 'its principal was held for maxDeferral, so its quantum comes before the next primary',
  dependency: 'a primary waits for its result',
  nested: 'it was made inside a running call, whose place it borrows',
  probe: 'it finds out whether the provider has recovered',
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
  pacing: 'the provider refused its class, which backs off',
  quota: 'its principal has its quota in flight',
  'foreground-active': 'a foreground process is active',
  'refused-by-provider': 'the provider refused it; it keeps its place',
  preempted: 'a primary took its place; it keeps its turn',
  recovered: 'its host restarted; it keeps its place',
  'already-settled': 'a call of this id ended before',
  'exceeds-limit': 'it is larger than a declared limit can ever hold',
  'attempts-exhausted': 'the provider refused it as often as maxAttempts allows',
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

const clockTime = (at: number): string => new Date(at).toISOString().slice(11, 23)

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`

const sentLine = (at: number): string => `${clockTime(at)} sent to the provider`

const decisionLines = (decision: Decision): ReadonlyArray<string> => {
  const { verdict, reason, at, state, wakeAt, dispatched } = decision
  const again =
    typeof wakeAt === 'number' && wakeAt > at
      ? `; looked at again in ${seconds(wakeAt - at)} at the latest`
      : ''
  const line = `${clockTime(at)} ${verdicts[verdict]}: ${sentences[reason]} (${reason}, in ${state})${again}`
  return dispatched === true ? [line, sentLine(at)] : [line]
}

const eventLine = (event: ScopeEvent): string | null => {
  const time = clockTime(event.at)
  switch (event.type) {
    case 'call.submitted': {
      const { lane, priorityClass, principal, inputTokens } = event.call
      return `${time} submitted: ${lane}, ${priorityClass}, for ${principal}, about ${inputTokens} input tokens`
    }
    case 'call.dispatched':
      return sentLine(event.at)
    case 'call.accepted':
      return `${time} the provider began to answer`
    case 'call.withdrawn':
      return `${time} withdrawn by its owner`
    case 'call.settled': {
      const said = event.evidence === undefined ? '' : `; the provider said ${event.evidence.kind}`
      const used = event.usage?.inputTokens == null ? '' : `; used ${event.usage.inputTokens} input tokens`
      return `${time} settled: ${event.outcome}${said}${used}`
    }
    case 'call.promoted':
      return `${time} promoted by hand`
    default:
      return null
  }
}

const standingAfter = (
  before: Explanation['standing'],
  event: ScopeEvent,
  decisions: ReadonlyArray<Decision>,
): Explanation['standing'] => {
  let standing = before
  if (event.type === 'call.settled' || event.type === 'call.withdrawn') standing = 'ended'
  for (const { verdict } of decisions) {
    if (verdict === 'admit' || verdict === 'release') standing = 'in flight'
    else if (verdict === 'defer') standing = 'waiting'
    else if (verdict !== 'cancel') standing = 'ended'
  }
  return standing
}

const concerns = (event: ScopeEvent, callId: string): boolean =>
  event.type === 'call.submitted' ? event.call.id === callId : 'callId' in event && event.callId === callId

/** A scope's present state, when it is at hand or cheap to rebuild; null when it is not. */
export type StateOf = (scope: string, newestPosition: number) => Promise<ScopeContext | null>

export interface ExplainOptions {
  /** For saying how things stand now. Without it only what was written of the call is told. */
  readonly stateOf?: StateOf
  /** Entries that are looked at, at most, from the newest backwards. Default 1,000,000. */
  readonly lookBack?: number
}

/**
 * Reads the journal of a running or a dead host, backwards until the call's submission. Null when
 * what is left of the journal does not know the call.
 */
export const explainFrom = async (
  journal: Pick<Journal, 'read'>,
  path: string,
  callId: string,
  { stateOf, lookBack = 1_000_000 }: ExplainOptions = {},
): Promise<Explanation | null> => {
  const { entries, beginning, newestPosition } = await searchBack(journal, path, callId, lookBack)
  const lines: string[] = []
  let standing: Explanation['standing'] = 'waiting'
  for (const { event, own } of entries) {
    const concerned = concerns(event, callId)
    const line = concerned ? eventLine(event) : null
    if (line !== null) lines.push(line)
    lines.push(...own.flatMap(decisionLines))
    standing = standingAfter(standing, concerned ? event : { type: 'clock.woke', at: event.at }, own)
  }
  const scope = entries.at(-1)?.scope
  if (scope === undefined) return null
  if (beginning !== 'found') lines.unshift(beginningLines[beginning])
  const context = standing === 'waiting' ? await stateOf?.(scope, newestPosition) : null
  if (context != null) lines.push(...nowLines(context, callId))
  return { callId, scope, standing, lines }
}

const beginningLines: Readonly<Record<Exclude<Found['beginning'], 'found'>, string>> = {
  compacted: '(its history before this was compacted: a checkpoint stands for it, which remembers its place)',
  'too far back': '(its history before this lies further back than was looked)',
}

const thousands = (tokens: number): string => `${Math.round(tokens / 1000)}k`

const intervalWords = ({ low, high }: Fit['ceiling']): string =>
  high === null
    ? `ceiling at least ${thousands(low)}`
    : `ceiling between ${thousands(low)} and ${thousands(high)}`

const growthWords = ({ kind, factor, tokensPerMinute }: Fit['growth']): string => {
  switch (kind) {
    case 'unknown':
      return 'how it grows is not known yet'
    case 'none':
      return 'does not grow'
    case 'withTime':
      return `grows with time by about ${thousands(tokensPerMinute ?? 0)} a minute`
    case 'withUse':
      return `grows with use to about ${(factor ?? 1).toFixed(2)} times the minute before`
  }
}

const noFitWords: Readonly<Record<NoFitReason, string>> = {
  'growth-unknown': 'no time can be named yet at which it fits',
  'does-not-grow': 'it is not expected to fit under the present ceiling',
  held: 'it is not expected to fit while the ceiling is only held',
}

/** What is expected of a primary that was refused for its size, and why. */
const fitSentence = ({ predictedFitAtMs, reason, tryAtMs, ceiling, growth }: Fit): string => {
  const what =
    predictedFitAtMs === null
      ? `${noFitWords[reason ?? 'growth-unknown']} (${reason}), tried next at ${clockTime(tryAtMs)}`
      : `expected to fit at ${clockTime(predictedFitAtMs)}`
  return `${what}: ${intervalWords(ceiling)}, ${growthWords(growth)}`
}

/**
 * Who goes before it as things stand: of the primaries those that stand before it in their queues,
 * of the auxiliaries, whose principals take turns, and of calls that wait for others, whoever came earlier.
 */
const aheadOf = ({ waiting, primaries }: ScopeContext, own: Waiting): ReadonlyArray<Waiting> => {
  const queued = primaries
    .flatMap(toArray)
    .map(({ id, seq }) => ({ one: lookup(waiting, id), seq }))
    .flatMap(({ one, seq }) => (one?.seq === seq ? [one] : []))
  const place = queued.indexOf(own)
  if (place >= 0) return queued.slice(0, place)
  return [...HashMap.values(waiting)].filter(({ call, seq }) => call.lane === own.call.lane && seq < own.seq)
}

/** How a waiting call stands at the newest event of its scope. */
const nowLines = (context: ScopeContext, callId: string): ReadonlyArray<string> => {
  if (!HashMap.has(context.waiting, callId)) return []
  const waiting = HashMap.getUnsafe(context.waiting, callId)
  const time = clockTime(context.at)
  const { lane, principal } = waiting.call
  const ahead = aheadOf(context, waiting)
  const ofItsOwn = ahead.filter(({ call }) => call.principal === principal)
  const { reason, wakeAt } = waitReason(context, waiting)
  const again =
    wakeAt === null || wakeAt <= context.at
      ? ''
      : `; looked at again in ${seconds(wakeAt - context.at)} at the latest`
  const owner =
    waiting.unclaimedUntilMs === null
      ? []
      : [
          `${time} nobody has come back for it since its host restarted; it expires at ${clockTime(waiting.unclaimedUntilMs)}`,
        ]
  const fit = fitOf(context, waiting)
  return [
    ...owner,
    ...(fit === null ? [] : [`${time} ${fitSentence(fit)}`]),
    `${time} still waits after ${seconds(context.at - waiting.submittedAt)}, behind ${ahead.length} ${lane === 'primary' ? 'primaries' : 'auxiliaries'} (${ofItsOwn.length} of its own principal): ${sentences[reason]} (${reason}, in ${context.state})${again}`,
  ]
}

/** What a scope's state alone says of a call, where nothing else is left of it; null when it does not know it. */
export const explainState = (context: ScopeContext, callId: string): Explanation | null => {
  const { scope, waiting, inFlight, at } = context
  const told = (standing: Explanation['standing'], ...lines: ReadonlyArray<string>): Explanation => ({
    callId,
    scope,
    standing,
    lines: [beginningLines.compacted, ...lines],
  })
  if (HashMap.has(waiting, callId)) {
    const { call, submittedAt } = HashMap.getUnsafe(waiting, callId)
    const submitted = eventLine({ type: 'call.submitted', at: submittedAt, call }) as string
    return told('waiting', submitted, ...nowLines(context, callId))
  }
  if (HashMap.has(inFlight, callId)) {
    const { call, submittedAt, grantedAt, grant, stage } = HashMap.getUnsafe(inFlight, callId)
    const submitted = eventLine({ type: 'call.submitted', at: submittedAt, call }) as string
    return told(
      'in flight',
      submitted,
      `${clockTime(grantedAt)} granted: ${sentences[grant]} (${grant}), now ${stage}`,
    )
  }
  const ending = endingOf(context, callId)
  return ending === undefined ? null : told('ended', `${clockTime(at)} it had ended by then: ${ending}`)
}

/** `explainFrom` over the journal of a running host, whose scopes know how things stand. */
export const explainCall = async (
  host: {
    readonly journal: Journal
    readonly runners: ReadonlyMap<string, { readonly context: ScopeContext }>
  },
  callId: string,
): Promise<Explanation | null> => {
  const stateOf: StateOf = async (scope) => host.runners.get(scope)?.context ?? null
  const explanation = await explainFrom(host.journal, 'of this host', callId, { stateOf })
  if (explanation !== null) return explanation
  for (const { context } of host.runners.values()) {
    const known = explainState(context, callId)
    if (known !== null) return known
  }
  return null
}
