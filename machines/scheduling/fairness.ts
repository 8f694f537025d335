/**
 * The books of the auxiliary lane: each principal's waiting calls, calls in flight, and place. A principal
 * with a backlog that is below its quota stands in the lines (`state/lines.ts`), from which `turns.ts` chooses. One at
 * its quota can take no turn, so it comes back when one of its calls ends. A principal that comes back takes the
 * greater of its own tag and virtual time: it has neither saved up nor lost anything.
 */
import { HashMap } from 'effect'
import * as order from '../collections/order.ts'
import { empty, insert, peek, pop, push, type Queue, remove } from '../collections/queue.ts'
import type { PriorityClass } from '../model/call.ts'
import { broken } from '../model/invariant.ts'
import type { Policy } from '../model/policy.ts'
import { quotaOf, weightOf } from '../model/shares.ts'
import type { Place, TakenTurn, Waiting } from '../state/calls.ts'
import { lookup, type Principal, type ScopeContext } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { enter, first, leave, type Stand } from '../state/lines.ts'
import { debtOf, forgiven, owing, passed } from './debts.ts'

const newcomer = (draft: Draft, name: string): Principal => {
  const tag = Math.max(draft.virtualTokens, debtOf(draft.debts, name) ?? 0)
  draft.debts = forgiven(draft.debts, name)
  return {
    queue: empty(),
    begun: empty(),
    waiting: 0,
    inFlight: 0,
    stands: null,
    tag,
    servedAt: 0,
    heldFromMs: 0,
  }
}

/** A call of no tokens still takes a turn. */
export const costOf = ({ call }: Pick<Waiting, 'call'>): number => Math.max(1, call.inputTokens)

export const seqOf = (place: Place): number => place.seq

/** It stands in its queue: it waits for no other call, and its owner is known. */
export const isReady = ({ waitsFor, unclaimedUntilMs }: Waiting): boolean =>
  waitsFor.length === 0 && unclaimedUntilMs === null

/** It came with this event, so it stands behind all others. One that comes back may still have its old place in the queue. */
export const isNewest = ({ nextSeq }: Pick<ScopeContext, 'nextSeq'>, { seq, attempts }: Waiting): boolean =>
  seq === nextSeq - 1 && attempts === 0

/** The call at the head of a queue whose places may belong to calls that are gone. */
export const headOf = (
  context: Pick<ScopeContext, 'waiting'>,
  queue: Queue<Place>,
  belongs: (waiting: Waiting) => boolean = () => true,
): { readonly head: Waiting; readonly queue: Queue<Place> } | null => {
  let rest = queue
  for (;;) {
    const place = peek(rest)
    if (place === undefined) return null
    const waiting = lookup(context.waiting, place.id)
    if (
      waiting !== undefined &&
      waiting.seq === place.seq &&
      !waiting.urgent &&
      isReady(waiting) &&
      belongs(waiting)
    )
      return { head: waiting, queue: rest }
    rest = pop(rest)
  }
}

const put = (draft: Draft, name: string, principal: Principal): void => {
  if (principal.waiting > 0 || principal.inFlight > 0) {
    draft.principals = HashMap.set(draft.principals, name, principal)
    return
  }
  draft.principals = HashMap.remove(draft.principals, name)
  draft.debts = owing(draft.debts, name, principal.tag, draft.virtualTokens)
  if (HashMap.isEmpty(draft.principals)) settleDebts(draft)
}

/** With nothing waiting and nothing in flight a busy time ends: a lead of one principal has cost the others nothing. */
const settleDebts = (draft: Draft): void => {
  for (const { tag } of order.ascending(draft.debts.order))
    draft.virtualTokens = Math.max(draft.virtualTokens, tag)
  draft.debts = passed(draft.debts, draft.virtualTokens)
}

/** Whether a principal has as many auxiliaries in flight as the policy grants it. */
export const isAtQuota = (policy: Policy, name: string, inFlight: number): boolean => {
  const quota = quotaOf(policy, name)
  return quota !== null && inFlight >= quota
}

/** Principals with a backlog, those at their quota included. */
export const hasBacklog = ({ lines, parked }: Pick<ScopeContext, 'lines' | 'parked'>): boolean =>
  lines.size + parked > 0

/** Whether it waits at its quota: it can take no turn. */
const isParked = (policy: Policy, name: string, { waiting, inFlight }: Principal): boolean =>
  waiting > 0 && isAtQuota(policy, name, inFlight)

const standBehind = (draft: Draft, principal: Principal): Stand => ({
  line: lineOf(draft, principal),
  place: draft.lines.nextPlace,
})

/** The class of its first call. */
const lineOf = (draft: Draft, { queue }: Principal): PriorityClass =>
  headOf(draft, queue)?.head.call.priorityClass ?? broken('I4', 'a principal has a backlog without a call')

/** What a change may do to where a principal stands. */
interface Change {
  /** Its first call may be another one. */
  readonly first?: boolean
  /** It was served, and goes behind the others: the class of the call that is its first now, or null. */
  readonly served?: PriorityClass | null
  /** It was served, and keeps its place: the call that it was held for still waits. */
  readonly stays?: boolean
}

/** Replaces a principal's books, and has it enter, leave or change lines as they say. */
const keep = (
  draft: Draft,
  name: string,
  before: Principal,
  after: Principal,
  { first: isOtherFirst = false, served = null, stays = false }: Change = {},
): void => {
  const stood = before.stands
  if (isParked(draft.policy, name, before)) draft.parked -= 1
  if (after.waiting === 0 || isParked(draft.policy, name, after)) {
    if (after.waiting > 0) draft.parked += 1
    if (stood !== null) draft.lines = leave(draft.lines, name, before.tag, stood)
    return put(draft, name, { ...after, stands: null })
  }
  if (stood === null) {
    // Until now nothing of it could go: it has saved nothing up, and primaries hold it from here.
    const tag = Math.max(after.tag, draft.virtualTokens)
    const heldFromMs = Math.max(after.heldFromMs, draft.heldMs)
    return put(draft, name, stand(draft, name, { ...after, tag, heldFromMs }, standBehind(draft, after)))
  }
  const stands =
    served !== null
      ? { line: served, place: stays ? stood.place : draft.lines.nextPlace }
      : isOtherFirst
        ? { line: lineOf(draft, after), place: stood.place }
        : stood
  if (served === null && stands.line === stood.line) return put(draft, name, after)
  draft.lines = leave(draft.lines, name, before.tag, stood)
  put(draft, name, stand(draft, name, after, stands))
}

const stand = (draft: Draft, name: string, principal: Principal, stands: Stand): Principal => {
  draft.lines = enter(draft.lines, name, principal.tag, stands)
  return { ...principal, stands }
}

/** Into its principal's queue, at its own place. */
export const enqueueAuxiliary = (draft: Draft, waiting: Waiting): void => {
  const { call, seq } = waiting
  const principal = lookup(draft.principals, call.principal) ?? newcomer(draft, call.principal)
  const place = { seq, id: call.id }
  const isLast = isNewest(draft, waiting)
  const queue = isLast ? push(principal.queue, place) : insert(principal.queue, place, seqOf)
  const begun = waiting.ofBegunTurn === true ? insert(principal.begun, place, seqOf) : principal.begun
  const after = { ...principal, queue, begun, waiting: principal.waiting + 1 }
  keep(draft, call.principal, principal, after, { first: !isLast })
}

/** The turn of a call that stands in its principal's queue has begun. */
export const favorBegun = (draft: Draft, { call, seq }: Waiting): void => {
  const principal = lookup(draft.principals, call.principal)
  if (principal === undefined) return
  const begun = insert(principal.begun, { seq, id: call.id }, seqOf)
  put(draft, call.principal, { ...principal, begun })
}

/** Out of its principal's backlog without service (withdrawn, expired, promoted). `seq`: of the call, where it is still among those that wait. */
export const leaveBacklog = (draft: Draft, name: string, seq: number | null = null): void => {
  const principal = lookup(draft.principals, name)
  if (principal === undefined || principal.waiting === 0)
    return broken('I4', `principal ${name} leaves a backlog that it does not have`)
  const waiting = principal.waiting - 1
  const rest = waiting === 0 ? null : headOf(draft, principal.queue, (other) => other.seq !== seq)
  const begun = waiting === 0 ? empty<Place>() : principal.begun
  const after = { ...principal, waiting, begun, queue: rest?.queue ?? empty<Place>() }
  keep(draft, name, principal, after, { first: true })
}

/** Its place in flight is free again. */
export const leaveFlight = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name)
  if (principal !== undefined)
    keep(draft, name, principal, { ...principal, inFlight: principal.inFlight - 1 })
}

/** In flight without a turn of its own (promoted, nested). */
export const enterFlight = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name) ?? newcomer(draft, name)
  keep(draft, name, principal, { ...principal, inFlight: principal.inFlight + 1 })
}

/** The policy has changed: its quotas decide anew which principals stand in the lines. */
export const reviewQuotas = (draft: Draft, before: Policy): void => {
  for (const [name, principal] of HashMap.toEntries(draft.principals).sort(([one], [other]) =>
    one < other ? -1 : 1,
  )) {
    const [was, is] = [isParked(before, name, principal), isParked(draft.policy, name, principal)]
    if (was === is) continue
    if (was) draft.parked -= 1
    else draft.lines = leave(draft.lines, name, principal.tag, principal.stands as Stand)
    keep(draft, name, { ...principal, waiting: 0, stands: null }, principal)
  }
}

/**
 * Puts principals that were read back, and the places of those that stood, into the lines. Older versions left those at
 * their quota in place.
 */
export const standAsRead = (
  draft: Draft,
  places: ReadonlyArray<readonly [string, number]>,
  nextPlace: number,
): void => {
  for (const [name, place] of places) {
    const principal = lookup(draft.principals, name) as Principal
    if (principal.waiting === 0 || isParked(draft.policy, name, principal)) continue
    const stood = stand(draft, name, principal, { line: lineOf(draft, principal), place })
    draft.principals = HashMap.set(draft.principals, name, stood)
  }
  for (const [name, principal] of HashMap.entries(draft.principals))
    if (isParked(draft.policy, name, principal)) draft.parked += 1
  draft.lines = { ...draft.lines, nextPlace: Math.max(draft.lines.nextPlace, nextPlace) }
}

/** How far a principal that others were let past may lag behind virtual time, so that it catches up no more than that. */
const lagTokens = (policy: Policy, name: string): number => policy.quantumTokens / weightOf(policy, name)

/**
 * Takes `waiting` out of its principal's queue as served, and returns its turn. Virtual time comes up to
 * the start of a call that was served in its turn; one out of its turn is only charged to its principal.
 */
export const served = (draft: Draft, waiting: Waiting, inTurn: boolean): TakenTurn => {
  const name = waiting.call.principal
  const before = lookup(draft.principals, name) as Principal
  const { servedAt, heldFromMs, tag } = before
  const reached = inTurn ? tag : (first(draft.lines, 'byTag')?.tag ?? tag)
  const starts = Math.max(tag, draft.virtualTokens - lagTokens(draft.policy, name))
  const endTag = starts + costOf(waiting) / weightOf(draft.policy, name)
  const turn: TakenTurn = { place: before.stands?.place ?? null, tag, endTag, servedAt, heldFromMs }
  if (reached > draft.virtualTokens) {
    draft.virtualTokens = reached
    draft.debts = passed(draft.debts, reached)
  }
  // Whoever chose it has dropped the places before it that are empty, or has only looked.
  const queue = peek(before.queue)?.seq === waiting.seq ? before.queue : headOf(draft, before.queue)!.queue
  // The call that primaries have held longest still waits, and its principal is held for it as before.
  const passes =
    waiting.ofBegunTurn === true && lookup(draft.waiting, (peek(queue) as Place).id)?.ofBegunTurn !== true
  const rest = remove(queue, waiting.seq, seqOf)
  const left = before.waiting - 1
  const next = left === 0 ? null : headOf(draft, rest)
  if (left > 0 && next === null) broken('I4', `principal ${name} has a backlog without a call`)
  const begun = waiting.ofBegunTurn === true ? remove(before.begun, waiting.seq, seqOf) : before.begun
  const principal: Principal = {
    queue: next?.queue ?? empty(),
    begun: left === 0 ? empty() : begun,
    waiting: left,
    inFlight: before.inFlight + 1,
    stands: before.stands,
    tag: endTag,
    servedAt: draft.at,
    heldFromMs: passes ? heldFromMs : draft.heldMs,
  }
  keep(draft, name, before, principal, { served: next?.head.call.priorityClass ?? null, stays: passes })
  return turn
}

/**
 * Gives a turn back that the provider did not take, or that was preempted: its call stands in its place
 * again, its principal where it stood in the lines, with the age that it had then.
 */
export const returnTurn = (draft: Draft, waiting: Waiting, turn: TakenTurn): void => {
  const name = waiting.call.principal
  const known = lookup(draft.principals, name)
  const tagNow = known?.tag ?? debtOf(draft.debts, name) ?? turn.endTag
  enqueueAuxiliary(draft, waiting)
  const principal = lookup(draft.principals, name) as Principal
  const returned: Principal = {
    ...principal,
    // Charges for its other calls since then stay.
    tag: tagNow === turn.endTag ? turn.tag : tagNow - (turn.endTag - turn.tag),
    servedAt: known === undefined ? turn.servedAt : Math.min(principal.servedAt, turn.servedAt),
    heldFromMs: known === undefined ? turn.heldFromMs : Math.min(principal.heldFromMs, turn.heldFromMs),
  }
  const { stands } = principal
  if (stands === null) return put(draft, name, returned)
  draft.lines = leave(draft.lines, name, principal.tag, stands)
  const place = turn.place !== null && turn.place < stands.place ? turn.place : stands.place
  put(draft, name, stand(draft, name, returned, { ...stands, place }))
}
