/**
 * Which auxiliaries go while they lift a ceiling for a primary. What is used in one minute is what the
 * next one grows from, so each minute is packed as full as its ceiling permits: at once up to what it
 * is known to take, and above that one call at a time, whose answer says more exactly where it ends.
 * Calls are chosen by size among the first of the queues: whoever is passed over keeps its place, and
 * whoever goes is charged to its principal's turn.
 */

import { between, leavesAt, minuteMs, trailing } from '../collections/usage-window.ts'
import { fitsAt } from '../limits/budget.ts'
import { ceilingAt } from '../limits/ceiling.ts'
import { steady, warmFromMs } from '../limits/pacing.ts'
import { boundsOf, changesAt, type Ramp, refusedUseAt } from '../limits/ramp.ts'
import { factorAt } from '../limits/ramp-plan.ts'
import type { ScopeContext, Waiting } from '../state/context.ts'
import { frontCalls } from './turns.ts'

/** Calls that are looked at; every choice of them is tried. */
const candidates = 8

/** Use that leaves the trailing minute so soon is waited for: whole minutes pack fuller than what is left of them piece by piece. */
const settlingMs = 5_000

export interface Room {
  /** Input tokens that may be sent together; above them one call at a time. */
  readonly togetherTokens: number
  /** Input tokens that the minute is to be filled with: what is expected to be accepted. */
  readonly aimTokens: number
  /** Input tokens that are not known to be refused. */
  readonly mostTokens: number
  /** A call is on its way whose answer will say more. */
  readonly unanswered: boolean
}

/** What auxiliaries may add to the trailing minute now. */
export const roomAt = (ramp: Ramp, atMs: number): Room => {
  const used = trailing(ramp.slots, atMs)
  const taken = trailing(ramp.accepted, atMs)
  const refused = refusedUseAt(ramp, atMs) ?? Number.POSITIVE_INFINITY
  const known = Math.min(refused - 1, Math.max(taken, ceilingAt(boundsOf(ramp), atMs).low))
  const unanswered = used > taken
  const room = (together: number, aim: number, most: number): Room => ({
    togetherTokens: together - used,
    aimTokens: aim - used,
    mostTokens: most - used,
    unanswered,
  })
  // With nothing accepted yet there is no level to hold: the first call makes it.
  if (ramp.plan?.kind === 'hold' && known > 0) return room(known, known, known)
  const lifted = factorAt(ramp) * between(ramp.accepted, atMs - 2 * minuteMs, atMs - minuteMs)
  if (refused > lifted && lifted > 0)
    return room(Math.max(known, lifted), Math.max(known, lifted), refused - 1)
  if (!Number.isFinite(refused)) return room(known, known, refused)
  // It is searched for between what was taken and what was refused.
  return room(known, Math.floor((known + refused) / 2), refused - 1)
}

/** The choice of `sizes` (their indices) with the largest sum of at most `room`. */
export const pack = (sizes: ReadonlyArray<number>, room: number): ReadonlyArray<number> => {
  let [best, chosen] = [0, 0]
  for (let choice = 1; choice < 1 << sizes.length; choice += 1) {
    let sum = 0
    for (let index = 0; index < sizes.length; index += 1) if (choice & (1 << index)) sum += sizes[index]!
    if (sum <= room && sum > best) [best, chosen] = [sum, choice]
  }
  return sizes.flatMap((_, index) => (chosen & (1 << index) ? [index] : []))
}

const mayGo = ({ pacing, budget, at }: ScopeContext, { call }: Waiting): boolean =>
  at >= warmFromMs(pacing[call.priorityClass] ?? steady) &&
  fitsAt(budget, { requests: 1, inputTokens: call.inputTokens, outputTokens: call.outputTokens }, at) <= at

const smallest = (calls: ReadonlyArray<Waiting>): Waiting | null =>
  calls.reduce<Waiting | null>(
    (least, waiting) =>
      least === null || waiting.call.inputTokens < least.call.inputTokens ? waiting : least,
    null,
  )

/** The next auxiliary to warm up with; null when none should go before something changes. */
export const chooseWarmUp = (context: ScopeContext): Waiting | null => {
  const { ramp, at } = context
  if (ramp.plan?.kind === 'build' && leavesAt(ramp.slots, at) - at <= settlingMs) return null
  const room = roomAt(ramp, at)
  if (room.mostTokens <= 0) return null
  const calls = frontCalls(context, candidates).filter((waiting) => mayGo(context, waiting))
  const packed = pack(
    calls.map(({ call }) => call.inputTokens),
    room.aimTokens,
  ).map((index) => calls[index]!)
  const next = smallest(packed.length > 0 ? packed : calls)
  if (next === null || next.call.inputTokens > room.mostTokens) return null
  return next.call.inputTokens <= room.togetherTokens || !room.unanswered ? next : null
}

/** When time alone may next change what `chooseWarmUp` answers, epoch milliseconds; Infinity when it cannot. */
export const warmAgainAt = (ramp: Ramp, atMs: number): number => {
  const changesMs = ramp.refusedUse === null ? 0 : changesAt(ramp, ramp.refusedUse.atMs)
  return Math.min(leavesAt(ramp.slots, atMs), changesMs > atMs ? changesMs : Number.POSITIVE_INFINITY)
}
