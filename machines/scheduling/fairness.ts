/**
 * The books of the auxiliary lane: what each principal has waiting and in flight, and where it stands. A
 * principal stands in the ring (who was served least recently comes first) and in the order of tags (virtual time,
 * by which `turns.ts` chooses) while it has a backlog and is below its quota; one at its quota can take no turn, so
 * it comes back when one of its calls ends. A principal that comes back takes the greater of its own tag and
 * virtual time: it has neither saved up nor lost anything.
 */
import { HashMap } from 'effect'
import * as order from '../collections/order.ts'
import { empty, insert, peek, pop, push, type Queue, remove } from '../collections/queue.ts'
import * as ring from '../collections/ring.ts'
import { broken } from '../model/invariant.ts'
import { type Policy, quotaOf, weightOf } from '../model/policy.ts'
import {
  lookup,
  type Place,
  type Principal,
  type ScopeContext,
  type TakenTurn,
  type Waiting,
} from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { debtOf, forgiven, owing, passed } from './debts.ts'

const newcomer = (draft: Draft, name: string): Principal => {
  const tag = Math.max(draft.virtualTokens, debtOf(draft.debts, name) ?? 0)
  draft.debts = forgiven(draft.debts, name)
  return { queue: empty(), waiting: 0, inFlight: 0, tag, servedAt: 0, heldFromMs: 0 }
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

/** With nobody waiting and nothing in flight a busy time ends: what anybody had more has cost nobody anything. */
const settleDebts = (draft: Draft): void => {
  for (const { tag } of order.ascending(draft.debts.order))
    draft.virtualTokens = Math.max(draft.virtualTokens, tag)
  draft.debts = passed(draft.debts, draft.virtualTokens)
}

/** Into the ring, behind the others or at a place that it had, and into the order of tags. */
const enter = (draft: Draft, name: string, tag: number, place: number | null = null): void => {
  draft.ring = place === null ? ring.push(draft.ring, name) : ring.backTo(draft.ring, name, place)
  draft.order = order.put(draft.order, { tag, place: ring.placeOf(draft.ring, name) as number, name })
}

const leave = (draft: Draft, name: string, tag: number): void => {
  draft.order = order.take(draft.order, { tag, place: ring.placeOf(draft.ring, name) as number, name })
  draft.ring = ring.leave(draft.ring, name)
}

/** Whether a principal has as many auxiliaries in flight as the policy grants it. */
export const isAtQuota = (policy: Policy, name: string, inFlight: number): boolean => {
  const quota = quotaOf(policy, name)
  return quota !== null && inFlight >= quota
}

/** Principals with a backlog, those at their quota included. */
export const hasBacklog = ({ ring, parked }: Pick<ScopeContext, 'ring' | 'parked'>): boolean =>
  ring.size + parked > 0

type Standing = 'none' | 'in the ring' | 'parked'

const standingOf = (policy: Policy, name: string, { waiting, inFlight }: Principal): Standing =>
  waiting === 0 ? 'none' : isAtQuota(policy, name, inFlight) ? 'parked' : 'in the ring'

/** Replaces a principal's books, and has it enter or leave the ring as they say; behind the others where it was served. */
const keep = (draft: Draft, name: string, before: Principal, after: Principal, wasServed = false): void => {
  const [was, is] = [standingOf(draft.policy, name, before), standingOf(draft.policy, name, after)]
  let principal = after
  if (was === 'parked') draft.parked -= 1
  if (is === 'parked') draft.parked += 1
  if (was === 'in the ring' && (is !== was || wasServed)) leave(draft, name, before.tag)
  if (is === 'in the ring' && is !== was) {
    // Until now nothing of it could go: it has saved nothing up, and primaries hold it from here.
    const tag = Math.max(after.tag, draft.virtualTokens)
    principal = { ...after, tag, heldFromMs: Math.max(after.heldFromMs, draft.heldMs) }
  }
  if (is === 'in the ring' && (is !== was || wasServed)) enter(draft, name, principal.tag)
  put(draft, name, principal)
}

/** Into its principal's queue, at its own place. */
export const enqueueAuxiliary = (draft: Draft, waiting: Waiting): void => {
  const { call, seq } = waiting
  const principal = lookup(draft.principals, call.principal) ?? newcomer(draft, call.principal)
  const place = { seq, id: call.id }
  const queue = isNewest(draft, waiting)
    ? push(principal.queue, place)
    : insert(principal.queue, place, seqOf)
  keep(draft, call.principal, principal, { ...principal, queue, waiting: principal.waiting + 1 })
}

/** Out of its principal's backlog without service (withdrawn, expired, promoted). */
export const leaveBacklog = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name)
  if (principal === undefined || principal.waiting === 0)
    return broken('I4', `principal ${name} leaves a backlog that it does not have`)
  const waiting = principal.waiting - 1
  keep(draft, name, principal, { ...principal, waiting, queue: waiting === 0 ? empty() : principal.queue })
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

/** The policy has changed: what it says of quotas decides anew which principals stand in the ring. */
export const reviewQuotas = (draft: Draft, before: Policy): void => {
  for (const [name, principal] of HashMap.toEntries(draft.principals).sort(([one], [other]) =>
    one < other ? -1 : 1,
  )) {
    const [was, is] = [standingOf(before, name, principal), standingOf(draft.policy, name, principal)]
    if (was === is) continue
    if (was === 'parked') draft.parked -= 1
    else leave(draft, name, principal.tag)
    keep(draft, name, { ...principal, waiting: 0 }, principal)
  }
}

/** Puts principals that were read back into the order of their tags, but for those at their quota: older versions left them in the ring. */
export const standAsRead = (draft: Draft): void => {
  for (const [name, principal] of HashMap.entries(draft.principals)) {
    const isParked = standingOf(draft.policy, name, principal) === 'parked'
    const place = ring.placeOf(draft.ring, name)
    if (isParked) draft.parked += 1
    if (place === null) continue
    if (isParked) draft.ring = ring.leave(draft.ring, name)
    else draft.order = order.put(draft.order, { tag: principal.tag, place, name })
  }
}

/** How far a principal that others were let past may lag behind virtual time, so that it catches up no more than that. */
const lagTokens = (policy: Policy, name: string): number => policy.quantumTokens / weightOf(policy, name)

/**
 * Takes `waiting` out of its principal's queue as served, and answers what its turn was. Virtual time comes up to
 * the start of a call that was served in its turn; one out of its turn is only charged to its principal.
 */
export const served = (draft: Draft, waiting: Waiting, inTurn: boolean): TakenTurn => {
  const name = waiting.call.principal
  const before = lookup(draft.principals, name) as Principal
  const { servedAt, heldFromMs, tag } = before
  const reached = inTurn ? tag : (order.least(draft.order)?.tag ?? tag)
  const starts = Math.max(tag, draft.virtualTokens - lagTokens(draft.policy, name))
  const endTag = starts + costOf(waiting) / weightOf(draft.policy, name)
  const turn: TakenTurn = { place: ring.placeOf(draft.ring, name), tag, endTag, servedAt, heldFromMs }
  if (reached > draft.virtualTokens) {
    draft.virtualTokens = reached
    draft.debts = passed(draft.debts, reached)
  }
  const rest = remove(
    // Whoever chose it has dropped the places before it that are empty, or has only looked.
    peek(before.queue)?.seq === waiting.seq ? before.queue : headOf(draft, before.queue)!.queue,
    waiting.seq,
    seqOf,
  )
  const left = before.waiting - 1
  const principal: Principal = {
    queue: left === 0 ? empty() : (headOf(draft, rest)?.queue ?? rest),
    waiting: left,
    inFlight: before.inFlight + 1,
    tag: endTag,
    servedAt: draft.at,
    heldFromMs: draft.heldMs,
  }
  keep(draft, name, before, principal, true)
  return turn
}

/**
 * Gives a turn back that the provider did not take, or that was preempted: its call stands in its place
 * again, its principal where it stood in the ring and in the order of tags, with the age it had then.
 */
export const returnTurn = (draft: Draft, waiting: Waiting, turn: TakenTurn): void => {
  const name = waiting.call.principal
  const known = lookup(draft.principals, name)
  const tagNow = known?.tag ?? debtOf(draft.debts, name) ?? turn.endTag
  enqueueAuxiliary(draft, waiting)
  const principal = lookup(draft.principals, name) as Principal
  const place = ring.placeOf(draft.ring, name)
  const returned: Principal = {
    ...principal,
    // What it has been charged for other calls since, it keeps.
    tag: tagNow === turn.endTag ? turn.tag : tagNow - (turn.endTag - turn.tag),
    servedAt: known === undefined ? turn.servedAt : Math.min(principal.servedAt, turn.servedAt),
    heldFromMs: known === undefined ? turn.heldFromMs : Math.min(principal.heldFromMs, turn.heldFromMs),
  }
  put(draft, name, returned)
  if (place === null) return
  leave(draft, name, principal.tag)
  enter(draft, name, returned.tag, turn.place !== null && turn.place < place ? turn.place : place)
}
