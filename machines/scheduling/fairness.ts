/**
 * Who is next in the auxiliary lane: deficit round robin between principals (Shreedhar and
 * Varghese, "Efficient Fair Queuing using Deficit Round Robin", 1995), weighted, by input tokens.
 * A principal at the end of its turn gets `quantumTokens * weight` for its next one and goes to
 * the back of the ring, so that the front of the ring is who has waited longest for service.
 */
import { HashMap } from 'effect'
import { empty, first, insert, peek, pop, push, type Queue, remove } from '../collections/queue.ts'
import * as ring from '../collections/ring.ts'
import { broken } from '../model/invariant.ts'
import { type Policy, quotaOf, weightOf } from '../model/policy.ts'
import { lookup, type Place, type Principal, type ScopeContext, type Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'

const newcomer = (policy: Policy, name: string): Principal => ({
  queue: empty(),
  waiting: 0,
  inFlight: 0,
  deficitTokens: turnTokens(policy, name),
  servedAt: 0,
})

/** A call of no tokens still takes a turn. */
export const costOf = (waiting: Waiting): number => Math.max(1, waiting.call.inputTokens)

const turnTokens = (policy: Policy, name: string): number => policy.quantumTokens * weightOf(policy, name)

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
): { readonly head: Waiting; readonly queue: Queue<Place> } | null => {
  let rest = queue
  for (;;) {
    const place = peek(rest)
    if (place === undefined) return null
    const waiting = lookup(context.waiting, place.id)
    if (waiting !== undefined && waiting.seq === place.seq && !waiting.urgent && isReady(waiting))
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

/** Into its principal's queue, at its own place. */
export const enqueueAuxiliary = (draft: Draft, waiting: Waiting): void => {
  const { call, seq } = waiting
  const principal = lookup(draft.principals, call.principal) ?? newcomer(draft.policy, call.principal)
  if (principal.waiting === 0) draft.ring = ring.push(draft.ring, call.principal)
  const place = { seq, id: call.id }
  const queue = isNewest(draft, waiting)
    ? push(principal.queue, place)
    : insert(principal.queue, place, seqOf)
  put(draft, call.principal, { ...principal, queue, waiting: principal.waiting + 1 })
}

/** Out of its principal's backlog without service (withdrawn, expired, promoted). */
export const leaveBacklog = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name)
  if (principal === undefined || principal.waiting === 0)
    return broken('I4', `principal ${name} leaves a backlog that it does not have`)
  const waiting = principal.waiting - 1
  if (waiting === 0) draft.ring = ring.leave(draft.ring, name)
  put(draft, name, { ...principal, waiting, queue: waiting === 0 ? empty() : principal.queue })
}

/** Its place in flight is free again. */
export const leaveFlight = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name)
  if (principal !== undefined) put(draft, name, { ...principal, inFlight: principal.inFlight - 1 })
}

/** In flight without a turn of its own (promoted, nested). */
export const enterFlight = (draft: Draft, name: string): void => {
  const principal = lookup(draft.principals, name) ?? newcomer(draft.policy, name)
  put(draft, name, { ...principal, inFlight: principal.inFlight + 1 })
}

const rotate = (draft: Draft, name: string, principal: Principal): void => {
  const deficitTokens = principal.deficitTokens + turnTokens(draft.policy, name)
  draft.ring = ring.push(ring.pop(draft.ring), name)
  put(draft, name, { ...principal, deficitTokens })
}

/** Whether a principal has as many auxiliaries in flight as the policy grants it. */
export const isAtQuota = (policy: Policy, name: string, inFlight: number): boolean => {
  const quota = quotaOf(policy, name)
  return quota !== null && inFlight >= quota
}

/** The call whose turn it is, or null when nobody may take one. Who `isOut` is passed like who is at its quota. */
export const nextAuxiliary = (
  draft: Draft,
  isOut: (waiting: Waiting) => boolean = () => false,
): Waiting | null => {
  let unable = 0
  for (let turn = 0; unable < draft.ring.size; turn += 1) {
    const name = ring.peek(draft.ring) as string
    const principal = lookup(draft.principals, name) as Principal
    const found = headOf(draft, principal.queue)
    if (found === null) return broken('I4', `principal ${name} is in the ring without a backlog`)
    const trimmed = found.queue === principal.queue ? principal : { ...principal, queue: found.queue }
    if (isAtQuota(draft.policy, name, principal.inFlight) || isOut(found.head)) {
      draft.ring = ring.push(ring.pop(draft.ring), name)
      unable += 1
      continue
    }
    if (trimmed.deficitTokens >= costOf(found.head)) {
      if (trimmed !== principal) put(draft, name, trimmed)
      return found.head
    }
    unable = 0
    rotate(draft, name, trimmed)
    // Calls far above the quantum: many whole rounds in one step.
    if (turn > 0 && turn % draft.ring.size === 0) skipRounds(draft)
  }
  return null
}

/** The first in the order of turns whose head fits and is covered; everybody else keeps place and turn. */
export const nextThatFits = (draft: Draft, fits: (waiting: Waiting) => boolean): Waiting | null => {
  for (let rest = draft.ring; rest.size > 0; rest = ring.pop(rest)) {
    const name = ring.peek(rest) as string
    const principal = lookup(draft.principals, name) as Principal
    const found = headOf(draft, principal.queue)
    if (found === null || isAtQuota(draft.policy, name, principal.inFlight)) continue
    if (principal.deficitTokens >= costOf(found.head) && fits(found.head)) return found.head
  }
  return null
}

/** Up to `count` calls from the fronts of the queues, in the order of turns, evenly between principals. */
export const frontCalls = (context: ScopeContext, count: number): ReadonlyArray<Waiting> => {
  const names = ring.first(context.ring, count)
  const share = Math.max(1, Math.floor(count / Math.max(1, names.length)))
  return names.flatMap((name) => {
    const principal = lookup(context.principals, name) as Principal
    if (isAtQuota(context.policy, name, principal.inFlight)) return []
    // Some places may belong to calls that are gone.
    const calls = first(principal.queue, 2 * share).flatMap(({ id, seq }) => {
      const waiting = lookup(context.waiting, id)
      return waiting?.seq === seq && !waiting.urgent && isReady(waiting) ? [waiting] : []
    })
    return calls.slice(0, share)
  })
}

const skipRounds = (draft: Draft): void => {
  const names: string[] = []
  let rounds = Number.POSITIVE_INFINITY
  for (let rest = draft.ring; rest.size > 0; rest = ring.pop(rest)) {
    const name = ring.peek(rest) as string
    const principal = lookup(draft.principals, name) as Principal
    const found = headOf(draft, principal.queue)
    if (found === null) continue
    names.push(name)
    const missing = costOf(found.head) - principal.deficitTokens
    rounds = Math.min(rounds, Math.ceil(missing / turnTokens(draft.policy, name)) - 1)
  }
  if (!(rounds > 0) || rounds === Number.POSITIVE_INFINITY) return
  for (const name of names) {
    const principal = lookup(draft.principals, name) as Principal
    const deficitTokens = principal.deficitTokens + rounds * turnTokens(draft.policy, name)
    put(draft, name, { ...principal, deficitTokens })
  }
}

/** Takes `waiting` out of its principal's queue as served, and ends the turn when the next call is not covered. */
export const served = (draft: Draft, waiting: Waiting): void => {
  const name = waiting.call.principal
  const before = lookup(draft.principals, name) as Principal
  const principal: Principal = {
    ...before,
    // Whoever chose it has dropped the places before it that are empty, or has only looked.
    queue: remove(
      peek(before.queue)?.seq === waiting.seq ? before.queue : headOf(draft, before.queue)!.queue,
      waiting.seq,
      seqOf,
    ),
    waiting: before.waiting - 1,
    inFlight: before.inFlight + 1,
    deficitTokens: before.deficitTokens - costOf(waiting),
    servedAt: draft.at,
  }
  if (principal.waiting === 0) {
    draft.ring = ring.peek(draft.ring) === name ? ring.pop(draft.ring) : ring.leave(draft.ring, name)
    // A principal that comes back starts with one turn; it neither saves up nor owes.
    put(draft, name, { ...principal, queue: empty(), deficitTokens: turnTokens(draft.policy, name) })
    return
  }
  put(draft, name, principal)
  const next = headOf(draft, principal.queue)
  if (next !== null && ring.peek(draft.ring) === name && principal.deficitTokens < costOf(next.head)) {
    rotate(draft, name, { ...principal, queue: next.queue })
  }
}

/**
 * Ends the turn of the principal that was served just now, where its next service is a whole
 * `maxDeferralMs` away; it keeps what it has left over. Else the front of the ring would no longer
 * be who has waited longest.
 */
export const passTurn = (draft: Draft): void => {
  const name = ring.peek(draft.ring)
  if (name === undefined || lookup(draft.principals, name)?.servedAt !== draft.at) return
  draft.ring = ring.push(ring.pop(draft.ring), name)
}

/** Gives a turn back that the provider did not take: the call stands in its place again, and pays when it is served. */
export const refundTurn = (draft: Draft, name: string, tokens: number): void => {
  const principal = lookup(draft.principals, name)
  if (principal === undefined) return
  put(draft, name, { ...principal, deficitTokens: principal.deficitTokens + Math.max(1, tokens) })
}

/** The call at the front of the ring: of the principal that has waited longest for service. */
export const ringFront = (context: ScopeContext): Waiting | null => {
  const name = ring.peek(context.ring)
  if (name === undefined) return null
  return headOf(context, (lookup(context.principals, name) as Principal).queue)?.head ?? null
}

/** Epoch milliseconds since which the longest unserved principal has waited; null without a backlog. */
export const unservedSince = (context: ScopeContext): number | null => {
  const front = ringFront(context)
  if (front === null) return null
  const { servedAt } = lookup(context.principals, front.call.principal) as Principal
  return Math.max(servedAt, front.submittedAt)
}

export interface WorstCase {
  /** Principals with a backlog, the call's own included. Default 1. */
  readonly principals?: number
  /** Calls of its own principal before it. Default 0. */
  readonly callsAhead?: number
  /** Input tokens of the largest among it and those before it. Default: a quantum. */
  readonly largestCallTokens?: number
  /** Whose call it is, for its weight. Default: the principal of the least weight. */
  readonly principal?: string
}

/**
 * The longest time, milliseconds, that primaries can keep an auxiliary from a permit while a place
 * in flight is free for it and the provider asks for no wait. Every `maxDeferralMs` at the latest one
 * principal's turn is served, a call at least; a call that is larger than what its principal gets in
 * a turn takes several, and everybody else may be served once before each of them.
 */
export const worstCaseWaitMs = (
  policy: Policy,
  { principals = 1, callsAhead = 0, largestCallTokens = policy.quantumTokens, principal }: WorstCase = {},
): number => {
  const weight =
    principal === undefined ? Math.min(1, ...Object.values(policy.weights)) : weightOf(policy, principal)
  const calls = callsAhead + 1
  const tokens = calls * Math.max(1, largestCallTokens)
  const turns = Math.max(calls, Math.ceil(tokens / (policy.quantumTokens * weight)))
  return policy.maxDeferralMs * (turns * (principals - 1) + calls)
}
