/**
 * Whose turn it is in the auxiliary lane: deficit round robin between principals (Shreedhar and
 * Varghese, "Efficient Fair Queuing using Deficit Round Robin", 1995), weighted, by input tokens.
 * A principal at the end of its turn gets `quantumTokens * weight` for its next one and goes to the
 * back of the ring, so that the front of the ring is the principal that has waited longest for service.
 * Rounds in which nobody's call is covered are counted, not walked.
 */
import { first } from '../collections/queue.ts'
import * as ring from '../collections/ring.ts'
import { broken } from '../model/invariant.ts'
import type { Policy } from '../model/policy.ts'
import { lookup, type Principal, type ScopeContext, type Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { addTurns, costOf, cover, headOf, isReady, rotate, turnTokens } from './fairness.ts'

/** The head of a principal in the ring, which has one. */
const headIn = (context: ScopeContext, name: string): Waiting => {
  const found = headOf(context, (lookup(context.principals, name) as Principal).queue)
  return found?.head ?? broken('I4', `principal ${name} is in the ring without a backlog`)
}

/** Turns that a principal must still be given before its first call is covered; 0 when it is. */
const turnsMissing = (policy: Policy, name: string, { deficitTokens }: Principal, head: Waiting): number => {
  const missing = costOf(head) - deficitTokens
  return missing <= 0 ? 0 : Math.max(1, Math.ceil(missing / turnTokens(policy, name)))
}

/** The call whose turn it is, and what has to pass until it is. */
export interface NextTurn {
  readonly head: Waiting
  /** Whole rounds in which nobody is served. */
  readonly rounds: number
  /** Principals that those rounds bring a turn each. */
  readonly sharing: ReadonlyArray<string>
  /** Principals before it whose turn does not cover their call: they get one more, and go to the back. */
  readonly passed: ReadonlyArray<string>
}

/** Looks only. Principals whose first call `isOut` keep their places. O(1) while turns cover calls, at most one look at each principal. */
export const pickAuxiliary = (
  context: ScopeContext,
  isOut: (waiting: Waiting) => boolean,
): NextTurn | null => {
  const short: Array<{ readonly name: string; readonly head: Waiting; readonly turns: number }> = []
  for (const name of ring.names(context.ring)) {
    const head = headIn(context, name)
    if (isOut(head)) continue
    const turns = turnsMissing(context.policy, name, lookup(context.principals, name) as Principal, head)
    if (turns === 0) return { head, rounds: 0, sharing: [], passed: short.map((one) => one.name) }
    short.push({ name, head, turns })
  }
  if (short.length === 0) return null
  const rounds = short.reduce((least, { turns }) => Math.min(least, turns), Number.POSITIVE_INFINITY)
  const index = short.findIndex(({ turns }) => turns === rounds)
  const sharing = short.map(({ name }) => name)
  return { head: short[index]!.head, rounds, sharing, passed: sharing.slice(0, index) }
}

/** Has the turns pass that a pick needs. */
export const takeTurn = (draft: Draft, { head, rounds, sharing, passed }: NextTurn): void => {
  for (const name of sharing) addTurns(draft, name, rounds)
  for (const name of passed) rotate(draft, name)
  cover(draft, head.call.principal, costOf(head))
}

/** The call whose turn it is, once its turn has come; null when nobody may take one. */
export const nextAuxiliary = (
  draft: Draft,
  isOut: (waiting: Waiting) => boolean = () => false,
): Waiting | null => {
  const pick = pickAuxiliary(draft, isOut)
  if (pick !== null) takeTurn(draft, pick)
  return pick?.head ?? null
}

/** Principals that are looked at for a call that may pass one that does not fit. */
const passersLookedAt = 32

/** The first in the order of turns whose head fits and is covered after `rounds` more; everybody keeps place and turn. */
export const nextThatFits = (
  context: ScopeContext,
  fits: (waiting: Waiting) => boolean,
  rounds = 0,
): Waiting | null => {
  for (const name of ring.first(context.ring, passersLookedAt)) {
    const head = headIn(context, name)
    const principal = lookup(context.principals, name) as Principal
    if (turnsMissing(context.policy, name, principal, head) <= rounds && fits(head)) return head
  }
  return null
}

/** Up to `count` calls from the fronts of the queues, in the order of turns, evenly between principals. */
export const frontCalls = (context: ScopeContext, count: number): ReadonlyArray<Waiting> => {
  const names = ring.first(context.ring, count)
  const share = Math.max(1, Math.floor(count / Math.max(1, names.length)))
  return names.flatMap((name) => {
    const principal = lookup(context.principals, name) as Principal
    // Some places may belong to calls that are gone.
    const calls = first(principal.queue, 2 * share).flatMap(({ id, seq }) => {
      const waiting = lookup(context.waiting, id)
      return waiting?.seq === seq && !waiting.urgent && isReady(waiting) ? [waiting] : []
    })
    return calls.slice(0, share)
  })
}

/** The first call in the order of turns that is not `isOut`: of the principal that has waited longest for service. */
export const ringFront = (
  context: ScopeContext,
  isOut: (waiting: Waiting) => boolean = () => false,
): Waiting | null => {
  for (const name of ring.names(context.ring)) {
    const head = headIn(context, name)
    if (!isOut(head)) return head
  }
  return null
}

/** Reading of the held clock since which primaries have held `front`, the first call in the order of turns. */
export const heldSince = (context: ScopeContext, front: Waiting): number =>
  Math.max((lookup(context.principals, front.call.principal) as Principal).heldFromMs, front.heldFromMs)
