/** Tells a person, from the journal alone, why a call waits or what happened to it. */
import type { Decision, Reason, ScopeEvent } from '../../machines/index.ts'
import type { Journal } from '../journal/journal.ts'
import { readRecord } from './recovery.ts'

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
  shed: "its principal's quota was spent",
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

const decisionLine = (decision: Decision): string => {
  const { verdict, reason, at, state, wakeAt } = decision
  const again =
    typeof wakeAt === 'number' && wakeAt > at
      ? `; looked at again in ${seconds(wakeAt - at)} at the latest`
      : ''
  return `${clockTime(at)} ${verdicts[verdict]}: ${sentences[reason]} (${reason}, in ${state})${again}`
}

const eventLine = (event: ScopeEvent): string | null => {
  const time = clockTime(event.at)
  switch (event.type) {
    case 'call.submitted': {
      const { lane, priorityClass, principal, inputTokens } = event.call
      return `${time} submitted: ${lane}, ${priorityClass}, for ${principal}, about ${inputTokens} input tokens`
    }
    case 'call.dispatched':
      return `${time} sent to the provider`
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

/** Reads the journal of a running or a dead host. Null when it does not know the call. */
export const explainFrom = async (
  journal: Pick<Journal, 'read'>,
  path: string,
  callId: string,
): Promise<Explanation | null> => {
  const lines: string[] = []
  let scope: string | null = null
  let standing: Explanation['standing'] = 'waiting'
  const quoted = JSON.stringify(callId)
  for await (const batch of journal.read()) {
    for (const entry of batch) {
      if (!entry.record.includes(quoted)) continue
      const { event, decisions } = readRecord(path, entry)
      const own = decisions.filter((decision) => decision.callId === callId)
      const concerned = concerns(event, callId)
      if (!concerned && own.length === 0) continue
      scope = entry.scope
      const line = concerned ? eventLine(event) : null
      if (line !== null) lines.push(line)
      lines.push(...own.map(decisionLine))
      standing = standingAfter(standing, concerned ? event : { type: 'clock.woke', at: event.at }, own)
    }
  }
  return scope === null ? null : { callId, scope, standing, lines }
}

/** `explainFrom` over the journal of a running host. */
export const explainCall = (
  host: { readonly journal: Journal },
  callId: string,
): Promise<Explanation | null> => explainFrom(host.journal, 'of this host', callId)
