/** Explains to a person, from the journal alone, why a call waits or how it ended. */
import { HashMap } from 'effect'
import { toArray } from '../../machines/collections/queue.ts'
import { type Decision, type ScopeContext, type ScopeEvent, waitReason } from '../../machines/index.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { endingOf } from '../../machines/scheduling/lifecycle.ts'
import type { Waiting } from '../../machines/state/calls.ts'
import { lookup } from '../../machines/state/context.ts'
import type { Clock } from '../clock.ts'
import type { Journal } from '../journal/journal.ts'
import { type Found, searchBack } from './explain-search.ts'
import {
  clockTime,
  decisionLines,
  eventLine,
  fitSentence,
  scopeSentence,
  seconds,
  sentences,
} from './explain-words.ts'
import { scopeStatus } from './scope-facts.ts'

export interface Explanation {
  readonly callId: string
  readonly scope: string
  /** Whether the call waits, runs, or has ended. */
  readonly standing: 'waiting' | 'in flight' | 'ended'
  /** One line each, oldest first, with times. */
  readonly lines: ReadonlyArray<string>
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

/** A scope's present state when it is in memory or cheap to rebuild; null otherwise. */
export type StateOf = (scope: string, newestPosition: number) => Promise<ScopeContext | null>

export interface ExplainOptions {
  /** Gives the present state. Without it only the recorded entries of the call are explained. */
  readonly stateOf?: StateOf
  /** The moment from which ages count, epoch milliseconds. Default: the newest event of the call's scope. */
  readonly nowMs?: number
  /** Entries that are looked at, at most, from the newest backwards. Default: all that the journal holds. */
  readonly lookBack?: number
}

/**
 * Reads the journal of a running or a dead host, backwards until the call's submission. Null when the rest of
 * the journal does not know the call.
 */
export const explainFrom = async (
  journal: Pick<Journal, 'read'>,
  path: string,
  callId: string,
  { stateOf, nowMs, lookBack = Number.MAX_SAFE_INTEGER }: ExplainOptions = {},
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
  if (context != null) lines.push(...nowLines(context, callId, nowMs))
  return { callId, scope, standing, lines }
}

const beginningLines: Readonly<Record<Exclude<Found['beginning'], 'found'>, string>> = {
  compacted: '(its history before this was compacted: a checkpoint stands for it, which remembers its place)',
  'too far back': '(its history before this lies further back than was looked)',
}

/**
 * The calls that go before a waiting call. For a primary in a queue: the primaries before it in the queues.
 * For an auxiliary, whose principals take turns, and for a call that waits for others: all earlier calls of
 * its lane.
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

/** The lines about a waiting call at `atMs`, if no event has come since the newest one of its scope. */
const nowLines = (context: ScopeContext, callId: string, atMs = context.at): ReadonlyArray<string> => {
  if (!HashMap.has(context.waiting, callId)) return []
  const waiting = HashMap.getUnsafe(context.waiting, callId)
  const status = scopeStatus(context, atMs)
  const { nowMs } = status
  const time = clockTime(nowMs)
  const { lane, principal } = waiting.call
  const ahead = aheadOf(context, waiting)
  const ofItsOwn = ahead.filter(({ call }) => call.principal === principal)
  const { reason, wakeAt } = waitReason(context, waiting)
  const again =
    wakeAt === null || wakeAt <= nowMs ? '' : `; looked at again in ${seconds(wakeAt - nowMs)} at the latest`
  const owner =
    waiting.unclaimedUntilMs === null
      ? []
      : [
          `${time} nobody has asked for it since it went back to its place; it expires at ${clockTime(waiting.unclaimedUntilMs)}`,
        ]
  const fit = fitOf(context, waiting)
  return [
    `${time} ${scopeSentence(status)}`,
    ...owner,
    ...(fit === null ? [] : [`${time} ${fitSentence(fit)}`]),
    `${time} still waits after ${seconds(nowMs - waiting.submittedAt)}, behind ${ahead.length} ${lane === 'primary' ? 'primaries' : 'auxiliaries'} (${ofItsOwn.length} of its own principal): ${sentences[reason]} (${reason}, in ${context.state})${again}`,
  ]
}

/**
 * The explanation from a scope's state alone, when no entries of the call are left; null when the state does
 * not know the call.
 */
export const explainState = (context: ScopeContext, callId: string, nowMs?: number): Explanation | null => {
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
    return told('waiting', submitted, ...nowLines(context, callId, nowMs))
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

/** `explainFrom` over the journal of a running host, with the present states of its scopes. */
export const explainCall = async (
  host: {
    readonly journal: Journal
    readonly clock: Clock
    readonly runners: ReadonlyMap<string, { readonly context: ScopeContext }>
  },
  callId: string,
): Promise<Explanation | null> => {
  const nowMs = host.clock.now()
  const stateOf: StateOf = async (scope) => host.runners.get(scope)?.context ?? null
  const explanation = await explainFrom(host.journal, 'of this host', callId, { stateOf, nowMs })
  if (explanation !== null) return explanation
  for (const { context } of host.runners.values()) {
    const known = explainState(context, callId, nowMs)
    if (known !== null) return known
  }
  return null
}
