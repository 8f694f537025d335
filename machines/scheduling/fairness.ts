/**
 * The books of the auxiliary lane: what each principal has waiting, in flight and left of its turn, and
 * where it stands in the ring of turns (`turns.ts` chooses by them). A principal stands in the ring
 * while it has a backlog and is below its quota; one at its quota can take no turn, so it comes back,
 * behind the others, when one of its calls ends.
 */
import { HashMap } from 'effect'
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

const newcomer = (draft: Draft, name: string): Principal => ({
  queue: empty(),
  waiting: 0,
  inFlight: 0,
  deficitTokens: turnTokens(draft.policy, name),
  turns: 0,
  servedAt: 0,
  heldFromMs: 0,
})

/** A call of no tokens still takes a turn. */
export const costOf = (waiting: Waiting): number => Math.max(1, waiting.call.inputTokens)

/** What one turn of a principal is worth, input tokens. */
export const turnTokens = (policy: Policy, name: string): number =>
  policy.quantumTokens * weightOf(policy, name)

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
  draft.principals =
    principal.waiting === 0 && principal.inFlight === 0
      ? HashMap.remove(draft.principals, name)
      : HashMap.set(draft.principals, name, principal)
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

/** Replaces a principal's books, and has it enter or leave the ring as they say. */
const keep = (draft: Draft, name: string, before: Principal, after: Principal): void => {
  const [was, is] = [standingOf(draft.policy, name, before), standingOf(draft.policy, name, after)]
  let principal = after
  if (was !== is) {
    if (was === 'in the ring') draft.ring = ring.leave(draft.ring, name)
    if (was === 'parked') draft.parked -= 1
    if (is === 'parked') draft.parked += 1
    if (is === 'in the ring') {
      draft.ring = ring.push(draft.ring, name)
      // Until now nothing of it could go: primaries hold it from here.
      principal = { ...after, heldFromMs: Math.max(after.heldFromMs, draft.heldMs) }
    }
  }
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
    draft.parked += is === 'parked' ? 1 : -1
    draft.ring = is === 'parked' ? ring.leave(draft.ring, name) : ring.push(draft.ring, name)
  }
}

/** Takes the principals at their quota out of a ring that was read back: older versions left them in it. */
export const parkAtQuota = (draft: Draft): void => {
  for (const [name, principal] of HashMap.entries(draft.principals)) {
    if (standingOf(draft.policy, name, principal) !== 'parked') continue
    draft.parked += 1
    if (ring.placeOf(draft.ring, name) !== null) draft.ring = ring.leave(draft.ring, name)
  }
}

/** Adds turns to what a principal has left over. */
export const addTurns = (draft: Draft, name: string, count: number): void => {
  const principal = lookup(draft.principals, name) as Principal
  const deficitTokens = principal.deficitTokens + count * turnTokens(draft.policy, name)
  put(draft, name, { ...principal, deficitTokens, turns: principal.turns + count })
}

/** Its turn is over: it gets what its next one is worth, and goes to the back of the ring. */
export const rotate = (draft: Draft, name: string): void => {
  addTurns(draft, name, 1)
  if (ring.placeOf(draft.ring, name) !== null) draft.ring = ring.push(ring.leave(draft.ring, name), name)
}

/** At least covers its first call: what many turns add up to may be a fraction of a token short. */
export const cover = (draft: Draft, name: string, tokens: number): void => {
  const principal = lookup(draft.principals, name) as Principal
  if (principal.deficitTokens < tokens) put(draft, name, { ...principal, deficitTokens: tokens })
}

/**
 * Takes `waiting` out of its principal's queue as served, and answers what its turn was. Where it was
 * chosen in its turn, or stands first, the turn ends when the next call is not covered.
 */
export const served = (draft: Draft, waiting: Waiting, inTurn: boolean): TakenTurn => {
  const name = waiting.call.principal
  const before = lookup(draft.principals, name) as Principal
  const { servedAt, heldFromMs, turns } = before
  const turn: TakenTurn = { place: ring.placeOf(draft.ring, name), turns, servedAt, heldFromMs }
  const endsTurn = inTurn || ring.peek(draft.ring) === name
  const rest = remove(
    // Whoever chose it has dropped the places before it that are empty, or has only looked.
    peek(before.queue)?.seq === waiting.seq ? before.queue : headOf(draft, before.queue)!.queue,
    waiting.seq,
    seqOf,
  )
  const next = headOf(draft, rest)
  const left = before.waiting - 1
  const principal: Principal = {
    queue: left === 0 ? empty() : (next?.queue ?? rest),
    waiting: left,
    inFlight: before.inFlight + 1,
    // A principal that comes back starts with one turn; it neither saves up nor owes.
    deficitTokens: left === 0 ? turnTokens(draft.policy, name) : before.deficitTokens - costOf(waiting),
    turns: left === 0 ? turns + 1 : turns,
    servedAt: draft.at,
    heldFromMs: draft.heldMs,
  }
  keep(draft, name, before, principal)
  if (next !== null && left > 0 && endsTurn && principal.deficitTokens < costOf(next.head))
    rotate(draft, name)
  return turn
}

/**
 * Ends the turn of the principal that was served just now, where its next service is a whole
 * `maxDeferralMs` away; it keeps what it has left over. Else the front of the ring would no longer
 * be who has waited longest.
 */
export const passTurn = (draft: Draft): void => {
  const name = ring.peek(draft.ring)
  if (name === undefined || lookup(draft.principals, name)?.servedAt !== draft.at) return
  draft.ring = ring.push(ring.leave(draft.ring, name), name)
}

/**
 * Gives a turn back that the provider did not take, or that was preempted: its call stands in its place
 * again, its principal where it stood in the ring, with what it had left over and the age it had then.
 */
export const returnTurn = (draft: Draft, waiting: Waiting, turn: TakenTurn): void => {
  const name = waiting.call.principal
  const known = lookup(draft.principals, name)
  enqueueAuxiliary(draft, waiting)
  const principal = lookup(draft.principals, name) as Principal
  // What it was given for the turns that it has had since, it gives back: it has not had them.
  const since = Math.max(0, principal.turns - turn.turns)
  const refunded = principal.deficitTokens + costOf(waiting) - since * turnTokens(draft.policy, name)
  put(draft, name, {
    ...principal,
    deficitTokens: known === undefined ? costOf(waiting) : refunded,
    turns: known === undefined ? turn.turns : principal.turns - since,
    servedAt: known === undefined ? turn.servedAt : Math.min(principal.servedAt, turn.servedAt),
    heldFromMs: known === undefined ? turn.heldFromMs : Math.min(principal.heldFromMs, turn.heldFromMs),
  })
  const place = ring.placeOf(draft.ring, name)
  if (turn.place !== null && place !== null && turn.place < place)
    draft.ring = ring.backTo(draft.ring, name, turn.place)
}
