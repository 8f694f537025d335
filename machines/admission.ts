/** May this call go now? Grants permits, one pass per event and per state entered. */
import { HashMap } from 'effect'
import { type Cost, charge, fitsAt } from './budget.ts'
import type { PriorityClass } from './call.ts'
import { capacityOf, reservedOf } from './capacity.ts'
import { type Draft, type InFlight, lookup, type Place, type ScopeContext, type Waiting } from './context.ts'
import type { DeferReason, GrantReason } from './decision.ts'
import {
  endTurn,
  enterFlight,
  headOf,
  isReady,
  leaveBacklog,
  nextAuxiliary,
  nextThatFits,
  ringFront,
  served,
  unservedSince,
} from './fairness.ts'
import * as pacing from './pacing.ts'
import { empty, peek, pop, push, type Queue, toArray } from './queue.ts'
import * as ramp from './ramp.ts'
import { noteGrant } from './timeouts.ts'
import { chooseWarmUp } from './warm-up.ts'

export const costOfCall = ({ call }: Pick<Waiting, 'call'>): Cost => ({
  requests: 1,
  inputTokens: call.inputTokens,
  outputTokens: call.outputTokens,
})

/** Whether the gate is closed for a primary: one waits, or the policy still holds it for one that runs, or for its turn. */
export const primaryWanted = ({ policy, counts, heldTurns }: ScopeContext): boolean =>
  counts.primaryWaiting > 0 ||
  heldTurns > 0 ||
  (policy.hold === 'untilSettled' && counts.primaryInFlight > 0) ||
  (policy.hold === 'untilAccepted' && counts.primaryUnaccepted > 0)

/** Places that auxiliaries may fill: capacity less reserve, half of it (never 0) while a primary was admitted just now. */
export const auxiliaryPlaces = (context: ScopeContext): number => {
  const { policy, primaryGrantedAt, at } = context
  const places = capacityOf(context) - reservedOf(context)
  const squeezed = policy.squeezeMs > 0 && primaryGrantedAt > 0 && at < primaryGrantedAt + policy.squeezeMs
  return squeezed ? Math.max(1, Math.floor(places / 2)) : places
}

export const waitsForProvider = ({ wait, at }: ScopeContext): boolean => wait !== null && at < wait.untilMs

const paceOf = (context: ScopeContext, priorityClass: PriorityClass): pacing.Pace =>
  context.pacing[priorityClass] ?? pacing.steady

/** Whether primaries have kept the longest unserved principal for `maxDeferralMs`. */
export const overdue = (context: ScopeContext): boolean => {
  const { at, policy, primaryOwed, quantumEndedAt } = context
  const since = unservedSince(context)
  if (since === null || at < since + policy.maxDeferralMs) return false
  // Quanta and primaries take turns, unless the primary cannot go for that long itself.
  return !primaryOwed || at >= quantumEndedAt + policy.maxDeferralMs
}

/** Why no auxiliary may go whichever it is, or null. Whether the gate is open is the state's business. */
export const auxiliaryObstacle = (context: ScopeContext): DeferReason | null => {
  const { counts } = context
  if (waitsForProvider(context)) return 'provider-wait'
  if (counts.places >= capacityOf(context)) return 'capacity-full'
  // Every class in flight counts against the auxiliaries' places, as in the Edict's gate; but a
  // quantum that is due must not wait for a time when no primary runs, which may never come.
  const taken = primaryWanted(context) ? counts.auxiliaryInFlight : counts.places
  if (taken >= auxiliaryPlaces(context)) return 'reserve-kept'
  return context.foregroundActive && !overdue(context) ? 'foreground-active' : null
}

/** The front of the ring cannot go for a reason that lies outside this scope's own places. */
const quantumBlocked = (context: ScopeContext): boolean => {
  const obstacle = auxiliaryObstacle(context)
  if (obstacle !== null) return obstacle !== 'capacity-full' && obstacle !== 'reserve-kept'
  const front = ringFront(context)
  return front === null || auxiliaryMisfit(context, front) !== null
}

/** A principal's quantum comes before the next primary, and can be served now. */
export const fairnessDue = (context: ScopeContext): boolean =>
  context.ring.size > 0 &&
  overdue(context) &&
  primaryWanted(context) &&
  auxiliaryObstacle(context) === null &&
  !quantumBlocked(context)

/** The drain makes way for a primary: nothing is overdue, or its quantum is spent, or cannot be served. */
export const primaryDue = (context: ScopeContext): boolean =>
  primaryWanted(context) &&
  (context.ring.size === 0 || !overdue(context) || quantumSpent(context) || quantumBlocked(context))

const isPaced = (context: ScopeContext, { call }: Waiting): boolean =>
  !pacing.paceAllows(paceOf(context, call.priorityClass), context.at)

/** Why this auxiliary does not fit, though the lane may go; null when it does. */
export const auxiliaryMisfit = (context: ScopeContext, waiting: Waiting): 'pacing' | 'budget' | null => {
  if (isPaced(context, waiting)) return 'pacing'
  return fitsAt(context.budget, costOfCall(waiting), context.at) > context.at ? 'budget' : null
}

/** When this primary may be tried, epoch milliseconds: what the provider said, the budget and the ramp allow. */
export const primaryFitsAt = (context: ScopeContext, waiting: Waiting): number => {
  const { at, wait, policy } = context
  const pace = paceOf(context, waiting.call.priorityClass)
  return Math.max(
    at,
    wait?.untilMs ?? 0,
    pace.refusals > 0 ? pace.pausedUntilMs : 0,
    fitsAt(context.budget, costOfCall(waiting), at),
    ramp.tryAt(context.ramp, waiting.call.inputTokens, policy.quietWindowMs, at),
  )
}

/** The primary whose turn it is, lowest rank, then first come; and its rank's queue, of which it is the first. */
export const nextPrimary = (
  context: ScopeContext,
): { readonly waiting: Waiting; readonly rank: number; readonly queue: Queue<Place> } | null => {
  for (let rank = 0; rank < context.primaries.length; rank += 1) {
    const found = headOf(context, context.primaries[rank]!)
    if (found !== null) return { waiting: found.head, rank, queue: found.queue }
  }
  return null
}

/** Moves a waiting call into flight and says so. */
const grant = (draft: Draft, waiting: Waiting, reason: GrantReason, borrowed = false): void => {
  const { call, seq, submittedAt } = waiting
  const granted: InFlight = {
    call,
    seq,
    submittedAt,
    attempts: waiting.attempts + 1,
    grantedAt: draft.at,
    stage: waiting.dispatchAtOnce ? 'dispatched' : 'admitted',
    grant: reason,
    preempted: false,
    borrowed,
    paced: takeWindow(draft, call.priorityClass),
  }
  draft.waiting = HashMap.remove(draft.waiting, call.id)
  draft.inFlight = HashMap.set(draft.inFlight, call.id, granted)
  probeQuota(draft, call.id)
  draft.budget = charge(draft.budget, costOfCall(waiting), draft.at)
  draft.ramp = ramp.use(draft.ramp, call.inputTokens, draft.at, draft.at)
  countGrant(draft, granted)
  noteGrant(draft, call.lane, { seq, id: call.id, grantedAt: draft.at })
  const fresh = draft.unannounced.includes(call.id)
  if (fresh) draft.unannounced = draft.unannounced.filter((id) => id !== call.id)
  const verdict = fresh && waiting.attempts === 0 ? 'admit' : 'release'
  const decision = { callId: call.id, verdict, reason, at: draft.at, state: draft.state } as const
  draft.decisions.push(waiting.dispatchAtOnce ? { ...decision, dispatched: true } : decision)
}

/** After the hold for an exhausted quota one call finds out whether there is some again; until it is accepted the rest stay held. */
const probeQuota = (draft: Draft, callId: string): void => {
  const { wait, at, policy } = draft
  if (wait?.kind !== 'quota-exhausted' || at < wait.untilMs) return
  draft.wait = { ...wait, untilMs: at + policy.quotaHoldMs, probeId: callId }
}

const inTheWay = ({ call, grant }: InFlight): boolean =>
  call.lane === 'auxiliary' && grant !== 'dependency' && grant !== 'nested'

/** The counts that a call in flight adds, as signs for entering (1) or leaving (-1). */
export const countFlight = ({ counts }: Draft, flight: InFlight, sign: 1 | -1): void => {
  if (!flight.borrowed) counts.places += sign
  if (inTheWay(flight)) counts.auxiliaryInTheWay += sign
  if (flight.call.lane === 'auxiliary') counts.auxiliaryInFlight += sign
  else {
    counts.primaryInFlight += sign
    if (flight.stage !== 'accepted') counts.primaryUnaccepted += sign
  }
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

const passUrgent = (draft: Draft): void => {
  while (draft.urgent.size > 0 && draft.counts.places < capacityOf(draft) && !waitsForProvider(draft)) {
    const place = peek(draft.urgent)!
    const waiting = lookup(draft.waiting, place.id)
    draft.urgent = pop(draft.urgent)
    if (waiting === undefined || waiting.seq !== place.seq || !isReady(waiting)) continue
    if (waiting.call.lane === 'auxiliary') enterFlight(draft, waiting.call.principal)
    grant(draft, waiting, 'dependency')
  }
}

const passPrimaries = (draft: Draft): void => {
  if (fairnessDue(draft)) return
  draft.phase = { ...draft.phase, quietUntilMs: 0 }
  while (draft.counts.places < capacityOf(draft) && draft.counts.primaryReady > 0) {
    const next = nextPrimary(draft)
    if (next === null) return
    const fits = primaryFitsAt(draft, next.waiting)
    if (fits > draft.at) {
      draft.phase = { ...draft.phase, quietUntilMs: fits }
      return
    }
    draft.primaries = draft.primaries.with(next.rank, pop(next.queue))
    grant(draft, next.waiting, 'primary')
  }
}

/** How often a head that does not fit yet is passed over before its room is kept for it. */
const maxBypass = 2

/** Whose turn it is, or, at most `maxBypass` times for the same head that does not fit, somebody else who fits. */
const chooseAuxiliary = (draft: Draft, fits: (waiting: Waiting) => boolean): Waiting | null => {
  // A class that backs off does so alone: no room is kept for it, the others of the lane go on.
  const backsOff = (waiting: Waiting): boolean => !fits(waiting) && isPaced(draft, waiting)
  const head = nextAuxiliary(draft, backsOff)
  if (head === null || fits(head)) return head
  const before = draft.bypass?.callId === head.call.id ? draft.bypass.count : 0
  if (before >= maxBypass) return null
  const other = nextThatFits(draft, fits)
  if (other !== null) draft.bypass = { callId: head.call.id, count: before + 1 }
  return other
}

/** Opens the next window of the metered drain when the last one has passed. False while the window's quantum is spent. */
const paceAllowsDrain = (draft: Draft): boolean => {
  if (draft.at >= draft.drain.windowStartMs + draft.policy.drainIntervalMs) {
    draft.drain = { ...draft.drain, windowStartMs: draft.at, windowTokens: 0 }
  }
  return draft.drain.windowTokens < draft.policy.quantumTokens
}

/** A quantum is spent: enough for a turn that began while a primary was pending. */
export const quantumSpent = ({ drain, policy }: ScopeContext): boolean =>
  drain.servedTokens >= policy.quantumTokens

const passAuxiliaries = (draft: Draft): void => {
  const metered = draft.state === 'auxiliaryDraining'
  const wanted = primaryWanted(draft)
  // Beside a primary the drain serves a quantum that is due, and nothing else.
  if (wanted && !(metered && overdue(draft))) return
  while (draft.ring.size > 0 && auxiliaryObstacle(draft) === null) {
    if (metered && (!paceAllowsDrain(draft) || (wanted && quantumSpent(draft)))) return
    const chosen = chooseAuxiliary(draft, (waiting) => auxiliaryMisfit(draft, waiting) === null)
    if (chosen === null) return
    served(draft, chosen)
    if (draft.foregroundActive) endTurn(draft)
    if (draft.bypass?.callId === chosen.call.id) draft.bypass = null
    const cost = Math.max(1, chosen.call.inputTokens)
    const { windowStartMs, windowTokens, servedTokens } = draft.drain
    if (metered) {
      draft.drain = { windowStartMs, windowTokens: windowTokens + cost, servedTokens: servedTokens + cost }
    }
    grant(draft, chosen, metered ? (wanted ? 'fairness' : 'drain') : 'open')
  }
}

/** A child of a running call borrows its parent's place, one child at a time: the parent waits for it. */
export const lend = (draft: Draft, parentId: string): void => {
  const children = lookup(draft.nested, parentId)
  if (!HashMap.has(draft.inFlight, parentId) || children === undefined || children.lent !== null) return
  let chosen: Waiting | null = null
  let queue = empty<Place>()
  for (const place of toArray(children.queue)) {
    const waiting = lookup(draft.waiting, place.id)
    if (waiting === undefined || waiting.seq !== place.seq) continue
    if (chosen === null && isReady(waiting)) chosen = waiting
    else queue = push(queue, place)
  }
  if (chosen === null) {
    if (queue.size === 0) draft.nested = HashMap.remove(draft.nested, parentId)
    return
  }
  if (chosen.call.lane === 'auxiliary') {
    if (!chosen.urgent) leaveBacklog(draft, chosen.call.principal)
    enterFlight(draft, chosen.call.principal)
  }
  draft.nested = HashMap.set(draft.nested, parentId, { queue, lent: chosen.call.id })
  grant(draft, chosen, 'nested', true)
}

/** Looks at the head primary again, and lets auxiliaries warm the ceiling up for it where the ramp plans so. */
const passQuiet = (draft: Draft): void => {
  draft.ramp = ramp.review(draft.ramp, draft.at)
  const fits = (waiting: Waiting) => auxiliaryMisfit(draft, waiting) === null
  for (let warmth = ramp.warmth(draft.ramp, draft.at); warmth !== null; ) {
    if (draft.ring.size === 0 || auxiliaryObstacle(draft) !== null) break
    const chosen = warmth === 'warm-up' ? chooseWarmUp(draft) : chooseAuxiliary(draft, fits)
    if (chosen === null) break
    served(draft, chosen)
    grant(draft, chosen, warmth)
    draft.ramp = ramp.review(draft.ramp, draft.at)
    warmth = ramp.warmth(draft.ramp, draft.at)
  }
  const next = nextPrimary(draft)
  const quietUntilMs = next === null ? 0 : primaryFitsAt(draft, next.waiting)
  draft.phase = { ...draft.phase, quietUntilMs }
}

/** Grants everything that may go in its state now. */
export const pass = (draft: Draft): void => {
  passUrgent(draft)
  if (draft.state === 'quietRamp.admitting' || draft.state === 'quietRamp.active') passPrimaries(draft)
  else if (draft.state === 'quietRamp.quiet') passQuiet(draft)
  else if (draft.state !== 'primaryPending') passAuxiliaries(draft)
}
