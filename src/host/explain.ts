/** Explains to a person, from the journal alone, why a call waits or how it ended. */
import { HashMap } from 'effect'
import { toArray } from '../../machines/collections/queue.ts'
import type { Decision, ScopeContext, ScopeEvent } from '../../machines/index.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import { endingOf } from '../../machines/scheduling/lifecycle.ts'
import type { Waiting } from '../../machines/state/calls.ts'
import { lookup } from '../../machines/state/context.ts'
import type { Clock } from '../clock.ts'
import type { Journal } from '../journal/journal.ts'
import { foldStory, momentWords, mostLines, type StoryLine } from './explain-fold.ts'
import { longestHold } from './explain-hold.ts'
import { type Found, searchBack } from './explain-search.ts'
import {
  decisionWords,
  duration,
  eventWords,
  fitSentence,
  scopeSentence,
  sentences,
} from './explain-words.ts'
import { scopeStatus } from './scope-facts.ts'

export interface Explanation {
  readonly callId: string
  readonly scope: string
  /** Whether the call waits, runs, or has ended. */
  readonly standing: 'waiting' | 'in flight' | 'ended'
  /** The conclusion, then the history, oldest first and folded: at most 10 lines, with dates. */
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
  const story: StoryLine[] = []
  let standing: Explanation['standing'] = 'waiting'
  for (const { event, own } of entries) {
    const concerned = concerns(event, callId)
    const words = concerned ? eventWords(event) : null
    if (words !== null) story.push({ at: event.at, text: words })
    for (const decision of own)
      story.push(...decisionWords(decision).map((text) => ({ at: decision.at, text })))
    standing = standingAfter(standing, concerned ? event : { type: 'clock.woke', at: event.at }, own)
  }
  const scope = entries.at(-1)?.scope
  if (scope === undefined) return null
  const gap = beginning === 'found' ? [] : [beginningLines[beginning]]
  const context = standing === 'waiting' ? await stateOf?.(scope, newestPosition) : null
  const now = context == null ? [] : nowLines(context, callId, nowMs)
  const conclusion = now.length > 0 ? now : lastWords(story)
  const lines = [...conclusion, ...gap, ...foldStory(story, mostLines - conclusion.length - gap.length)]
  return { callId, scope, standing, lines }
}

/** The conclusion about a call that does not wait, or whose scope is not at hand: its newest fact. */
const lastWords = (story: ReadonlyArray<StoryLine>): ReadonlyArray<string> => {
  const last = story.at(-1)
  return last === undefined || story.length === 1 ? [] : [`now: ${last.text}, since ${momentWords(last.at)}`]
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

/** How many calls of each class go before, and how many of those are its own principal's. */
const aheadWords = (ahead: ReadonlyArray<Waiting>, principal: string): string => {
  const classes = new Map<string, number>()
  for (const { call } of ahead) classes.set(call.priorityClass, (classes.get(call.priorityClass) ?? 0) + 1)
  const own = ahead.filter(({ call }) => call.principal === principal).length
  return [...[...classes].map(([name, count]) => `${count} ${name}`), `${own} of its own principal`].join(
    ', ',
  )
}

/** The lines about a waiting call, the conclusion first, at `atMs`, if no event has come since the newest one of its scope. */
const nowLines = (context: ScopeContext, callId: string, atMs = context.at): ReadonlyArray<string> => {
  if (!HashMap.has(context.waiting, callId)) return []
  const waiting = HashMap.getUnsafe(context.waiting, callId)
  const status = scopeStatus(context, atMs)
  const { nowMs } = status
  const time = momentWords(nowMs)
  const { lane, principal } = waiting.call
  const ahead = aheadOf(context, waiting)
  const {
    reason: { reason, wakeAt },
    besides,
  } = longestHold(context, waiting)
  const also =
    besides === null
      ? ''
      : `; and not before ${momentWords(besides.wakeAt)}: ${sentences[besides.reason]} (${besides.reason})`
  const again =
    wakeAt === null || wakeAt <= nowMs ? '' : `; looked at again in ${duration(wakeAt - nowMs)} at the latest`
  const owner =
    waiting.unclaimedUntilMs === null
      ? []
      : [
          `${time} nobody has asked for it since it went back to its place; it expires at ${momentWords(waiting.unclaimedUntilMs)}`,
        ]
  const fit = fitOf(context, waiting)
  return [
    `${time} still waits after ${duration(nowMs - waiting.submittedAt)}, behind ${ahead.length} ${lane === 'primary' ? 'primaries' : 'auxiliaries'} (${aheadWords(ahead, principal)}): ${sentences[reason]} (${reason}, in ${context.state})${again}${also}`,
    `${time} ${scopeSentence(status)}`,
    ...owner,
    ...(fit === null ? [] : [`${time} ${fitSentence(fit)}`]),
  ]
}

const submissionLine = (at: number, call: Waiting['call']): string =>
  `${momentWords(at)} ${eventWords({ type: 'call.submitted', at, call })}`

/**
 * The explanation from a scope's state alone, when no entries of the call are left; null when the state does
 * not know the call.
 */
export const explainState = (context: ScopeContext, callId: string, nowMs?: number): Explanation | null => {
  const { scope, waiting, inFlight, at } = context
  const told = (
    standing: Explanation['standing'],
    conclusion: string,
    ...lines: ReadonlyArray<string>
  ): Explanation => ({
    callId,
    scope,
    standing,
    lines: [conclusion, beginningLines.compacted, ...lines],
  })
  if (HashMap.has(waiting, callId)) {
    const { call, submittedAt } = HashMap.getUnsafe(waiting, callId)
    const [conclusion, ...rest] = nowLines(context, callId, nowMs)
    const lines = [conclusion!, ...rest, beginningLines.compacted, submissionLine(submittedAt, call)]
    return { callId, scope, standing: 'waiting', lines }
  }
  if (HashMap.has(inFlight, callId)) {
    const { call, submittedAt, grantedAt, grant, stage } = HashMap.getUnsafe(inFlight, callId)
    const granted = `${momentWords(grantedAt)} granted: ${sentences[grant]} (${grant}), now ${stage}`
    return told('in flight', granted, submissionLine(submittedAt, call))
  }
  const ending = endingOf(context, callId)
  return ending === undefined ? null : told('ended', `${momentWords(at)} it had ended by then: ${ending}`)
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
