/**
 * Whose turn it is in the auxiliary lane: start-time fair queueing between principals (Goyal, Vin and Cheng,
 * "Start-time Fair Queuing", 1996), weighted, by input tokens. Each principal has a tag, the virtual time at which its
 * next call starts; a call served moves it on by its tokens over its principal's weight. The least tag goes next; of
 * equal ones the principal that was served least recently. A quantum beside primaries begins with the principal that
 * was served least recently instead: primaries have held it longest.
 */
import { first } from '../collections/queue.ts'
import type { PriorityClass } from '../model/call.ts'
import { broken } from '../model/invariant.ts'
import type { Waiting } from '../state/calls.ts'
import { lookup, type Principal, type ScopeContext } from '../state/context.ts'
import * as lines from '../state/lines.ts'
import { headOf, isReady } from './fairness.ts'
import { isPatient } from './favor.ts'

/** A principal that stands in a line, and its first call. */
export interface Front {
  readonly head: Waiting
  readonly principal: Principal
}

const frontOf = (context: ScopeContext, name: string): Front => {
  const principal = lookup(context.principals, name) as Principal
  const found = headOf(context, principal.queue)
  if (found === null) return broken('I4', `principal ${name} stands in a line without a backlog`)
  return { head: found.head, principal }
}

/** The call whose turn it is. */
export interface NextTurn {
  readonly head: Waiting
  /** It goes because primaries held it longest; its tag does not count. */
  readonly byAge: boolean
}

type IsOut = (priorityClass: PriorityClass) => boolean

const nobodyIsOut: IsOut = () => false

/** The call of a principal that goes when its turn comes: of its first and those of begun turns, where they are equal. */
const favoredIn = (context: ScopeContext, name: string): Waiting => {
  const { head: oldest, principal } = frontOf(context, name)
  if (context.policy.favor === 'arrival' || oldest.ofBegunTurn === true) return oldest
  const { begun } = principal
  if (begun.size === 0 || !isPatient(context, oldest)) return oldest
  const found = headOf(context, begun)?.head
  return found?.call.priorityClass === oldest.call.priorityClass ? found : oldest
}

/** Looks only: the call whose turn it is, of a class that is not out; null when nobody may take one. O(log n). */
export const nextAuxiliary = (context: ScopeContext, isOut: IsOut = nobodyIsOut): Waiting | null => {
  const found = lines.first(context.lines, 'byTag', isOut)
  return found === undefined ? null : favoredIn(context, found.name)
}

/** Looks only: the principal that was served least recently, among those of classes that are not out. */
export const longestUnserved = (context: ScopeContext, isOut: IsOut = nobodyIsOut): Front | null => {
  const found = lines.first(context.lines, 'byAge', isOut)
  return found === undefined ? null : frontOf(context, found.name)
}

/** Principals that are looked at for a call that may pass one that does not fit. */
const passersLookedAt = 32

/** The first in the order of turns whose head fits; everybody keeps place and turn. */
export const nextThatFits = (context: ScopeContext, fits: (waiting: Waiting) => boolean): Waiting | null => {
  for (const name of lines.firstNames(context.lines, 'byTag', passersLookedAt)) {
    const head = favoredIn(context, name)
    if (fits(head)) return head
  }
  return null
}

/** Up to `count` calls from the fronts of the queues, in the order of turns, evenly between principals. */
export const frontCalls = (context: ScopeContext, count: number): ReadonlyArray<Waiting> => {
  const names = lines.firstNames(context.lines, 'byTag', count)
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

/** Reading of the held clock since which primaries have held `front`. */
export const heldSince = ({ head, principal }: Front): number =>
  Math.max(principal.heldFromMs, head.heldFromMs)
