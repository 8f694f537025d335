/**
 * Whose turn it is in the auxiliary lane: start-time fair queueing between principals (Goyal, Vin and Cheng,
 * "Start-time Fair Queuing", 1996), weighted, by input tokens. Each principal has a tag, the virtual time at which its
 * next call starts; a call served moves it on by its tokens over its principal's weight. The least tag goes next; of
 * equal ones the principal that was served least recently. A quantum beside primaries begins with the front of the
 * ring instead: the principal that they have held longest.
 */
import * as order from '../collections/order.ts'
import { first } from '../collections/queue.ts'
import * as ring from '../collections/ring.ts'
import { broken } from '../model/invariant.ts'
import { lookup, type Principal, type ScopeContext, type Waiting } from '../state/context.ts'
import { headOf, isReady } from './fairness.ts'

/** The head of a principal in the ring, which has one. */
const headIn = (context: ScopeContext, name: string): Waiting => {
  const found = headOf(context, (lookup(context.principals, name) as Principal).queue)
  return found?.head ?? broken('I4', `principal ${name} is in the ring without a backlog`)
}

/** The call whose turn it is. */
export interface NextTurn {
  readonly head: Waiting
  /** It goes because primaries held it longest, whatever its tag is. */
  readonly byAge: boolean
}

/** Looks only. Principals whose first call `isOut` keep their places, and are looked at one by one: O(log n) and a look at each of them. */
export const pickAuxiliary = (
  context: ScopeContext,
  isOut: (waiting: Waiting) => boolean,
): NextTurn | null => {
  for (const { name } of order.ascending(context.order)) {
    const head = headIn(context, name)
    if (!isOut(head)) return { head, byAge: false }
  }
  return null
}

/** Looks only: the call whose turn it is; null when nobody may take one. */
export const nextAuxiliary = (
  context: ScopeContext,
  isOut: (waiting: Waiting) => boolean = () => false,
): Waiting | null => pickAuxiliary(context, isOut)?.head ?? null

/** Principals that are looked at for a call that may pass one that does not fit. */
const passersLookedAt = 32

const firstNames = (context: ScopeContext, count: number): ReadonlyArray<string> => {
  const names: string[] = []
  for (const { name } of order.ascending(context.order)) {
    if (names.length >= count) break
    names.push(name)
  }
  return names
}

/** The first in the order of turns whose head fits; everybody keeps place and turn. */
export const nextThatFits = (context: ScopeContext, fits: (waiting: Waiting) => boolean): Waiting | null => {
  for (const name of firstNames(context, passersLookedAt)) {
    const head = headIn(context, name)
    if (fits(head)) return head
  }
  return null
}

/** Up to `count` calls from the fronts of the queues, in the order of turns, evenly between principals. */
export const frontCalls = (context: ScopeContext, count: number): ReadonlyArray<Waiting> => {
  const names = firstNames(context, count)
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

/** The first call that is not `isOut` of the principal that has waited longest for service. */
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

/** Reading of the held clock since which primaries have held `front`, the first call of its principal. */
export const heldSince = (context: ScopeContext, front: Waiting): number =>
  Math.max((lookup(context.principals, front.call.principal) as Principal).heldFromMs, front.heldFromMs)
