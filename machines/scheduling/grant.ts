/** A waiting call gets its permit: what that changes in the counts, the budget and the windows. */
import { HashMap } from 'effect'
import { type Belief, isSilent } from '../limits/belief/belief.ts'
import { roomAt } from '../limits/belief/forecast.ts'
import * as belief from '../limits/belief/learn.ts'
import { charge } from '../limits/budget.ts'
import { takenAtAdmission } from '../limits/charges.ts'
import * as pacing from '../limits/pacing.ts'
import type { PriorityClass } from '../model/call.ts'
import type { GrantReason } from '../model/decision.ts'
import type { InFlight, TakenTurn, Waiting } from '../state/calls.ts'
import { lookup, without } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { beginTurn, leaveFavor } from './favor.ts'
import { checkEntered, checkGrant, checkLeft } from './invariants.ts'
import { noteGrant } from './timeouts.ts'

/** Moves a waiting call into flight and says so. */
export const grant = (
  draft: Draft,
  waiting: Waiting,
  because: GrantReason,
  { borrowed = false, turn = null }: { readonly borrowed?: boolean; readonly turn?: TakenTurn | null } = {},
): void => {
  const { call, seq, submittedAt, heldFromMs } = waiting
  const probes = isProbe(draft)
  const reason = probes && !passesTheGate.has(because) ? 'probe' : because
  checkGrant(draft, waiting, reason, borrowed)
  const { waiting: waited, inFlight: flew } = draft
  const granted: InFlight = {
    call,
    seq,
    submittedAt,
    attempts: waiting.attempts + 1,
    sizeRefusals: waiting.sizeRefusals,
    grantedAt: draft.at,
    stage: waiting.dispatchAtOnce ? 'dispatched' : 'admitted',
    grant: reason,
    preempted: false,
    borrowed,
    paced: takeWindow(draft, call.priorityClass),
    taken: takenAtAdmission(draft.policy.charges, call),
    heldFromMs,
    turn,
  }
  draft.waiting = HashMap.remove(waited, call.id)
  draft.inFlight = HashMap.set(flew, call.id, granted)
  leaveFavor(draft, waiting)
  beginTurn(draft, call)
  checkLeft(waited, draft.waiting, call.id)
  checkEntered(flew, draft.inFlight, call.id)
  if (probes) holdForProbe(draft, call.id)
  draft.budget = charge(draft.budget, granted.taken, draft.at)
  draft.belief = believed(draft, call.inputTokens)
  countGrant(draft, granted)
  noteGrant(draft, call.lane, { seq, id: call.id, grantedAt: draft.at })
  const fresh = draft.unannounced.includes(call.id)
  if (fresh) draft.unannounced = draft.unannounced.filter((id) => id !== call.id)
  const verdict = fresh && waiting.attempts === 0 ? 'admit' : 'release'
  const decision = { callId: call.id, verdict, reason, at: draft.at, state: draft.state } as const
  draft.decisions.push(waiting.dispatchAtOnce ? { ...decision, dispatched: true } : decision)
}

/** Charges the sent tokens to the belief, and notes the time of a send that might well be refused. */
const believed = ({ belief: before, at }: Draft, tokens: number): Belief => {
  const risked = !isSilent(before) && roomAt(before, at, 0) < tokens
  const next = belief.sent(before, tokens, at, at)
  return risked ? { ...next, riskedAtMs: at } : next
}

/** Reasons that say why a call may pass where others wait: they are told also of a call that is a probe. */
const passesTheGate: ReadonlySet<GrantReason> = new Set([
  'fairness',
  'dependency',
  'nested',
  'warm-up',
  'backfill',
])

/** After the hold for an exhausted quota, or for a wait that was not believed whole, the next grant finds out. */
const isProbe = ({ wait, at }: Draft): boolean =>
  wait !== null && at >= wait.untilMs && (wait.kind === 'quota-exhausted' || (wait.statedUntilMs ?? 0) > at)

/** Until the probe is accepted the rest stay held. */
const holdForProbe = (draft: Draft, callId: string): void => {
  const { wait, at, policy } = draft
  if (wait !== null) draft.wait = { ...wait, untilMs: at + policy.quotaHoldMs, probeId: callId }
}

/** A primary must wait for it: it is neither owed its place, nor does a primary wait for its result. */
const inTheWay = ({ dependents }: Draft, { call, grant }: InFlight): boolean =>
  call.lane === 'auxiliary' &&
  grant !== 'dependency' &&
  grant !== 'nested' &&
  lookup(dependents, call.id) === undefined

/** The counts that a call in flight adds, as signs for entering (1) or leaving (-1). */
export const countFlight = (draft: Draft, flight: InFlight, sign: 1 | -1): void => {
  const { counts } = draft
  if (!flight.borrowed) counts.places += sign
  if (inTheWay(draft, flight)) counts.auxiliaryInTheWay += sign
  if (flight.call.lane === 'auxiliary') counts.auxiliaryInFlight += sign
  else {
    counts.primaryInFlight += sign
    if (flight.stage !== 'accepted') counts.primaryUnaccepted += sign
  }
}

/** Replaces the primaries that wait for `id`, and counts it as in their way or not, where it runs. */
export const setDependents = (draft: Draft, id: string, ids: ReadonlyArray<string>): void => {
  const flight = lookup(draft.inFlight, id)
  if (flight !== undefined && inTheWay(draft, flight)) draft.counts.auxiliaryInTheWay -= 1
  draft.dependents = ids.length === 0 ? without(draft.dependents, id) : HashMap.set(draft.dependents, id, ids)
  if (flight !== undefined && inTheWay(draft, flight)) draft.counts.auxiliaryInTheWay += 1
}

const countGrant = (draft: Draft, flight: InFlight): void => {
  const { counts } = draft
  const primary = flight.call.lane === 'primary'
  countFlight(draft, flight, 1)
  if (primary) {
    counts.primaryWaiting -= 1
    counts.primaryReady -= 1
  } else counts.auxiliaryWaiting -= 1
  draft.counters.granted += 1
  if (flight.grant === 'dependency' || flight.grant === 'nested') draft.counters.dependencyGrants += 1
  if (primary) draft.primaryGrantedAt = draft.at
  if (draft.episode === null) return
  draft.episode = primary
    ? {
        ...draft.episode,
        primariesAdmitted: draft.episode.primariesAdmitted + 1,
        primaryWaitMaxMs: Math.max(draft.episode.primaryWaitMaxMs, draft.at - flight.submittedAt),
      }
    : { ...draft.episode, auxiliariesReleased: draft.episode.auxiliariesReleased + 1 }
  if (primary) draft.primaryOwed = false
}

/** Counts a dispatch against its class's window; answers whether there is one. */
const takeWindow = (draft: Draft, priorityClass: PriorityClass): boolean => {
  const pace = draft.pacing[priorityClass]
  if (pace === undefined || pace.window === null) return false
  draft.pacing = { ...draft.pacing, [priorityClass]: pacing.counted(pace, 1) }
  return true
}
