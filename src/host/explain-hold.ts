/** Finds what holds a waiting call longest: several things may hold it at once, and the first to end is not the answer. */
import { type ScopeContext, waitReason } from '../../machines/index.ts'
import { budgetFitsAt, waitsForProvider } from '../../machines/scheduling/admission.ts'
import { fitOf } from '../../machines/scheduling/fit-prediction.ts'
import type { WaitReason } from '../../machines/scheduling/wait-reason.ts'
import type { Waiting } from '../../machines/state/calls.ts'

/** A hold whose end is known, epoch milliseconds. */
export interface TimedHold extends WaitReason {
  readonly wakeAt: number
}

/** Everything that holds the call until a known time, whatever else holds it. */
export const timedHolds = (context: ScopeContext, waiting: Waiting): ReadonlyArray<TimedHold> => {
  const { at, wait, pacing } = context
  const pace = pacing[waiting.call.priorityClass]
  const holds: TimedHold[] = [
    ...(waitsForProvider(context) ? [{ reason: 'provider-wait' as const, wakeAt: wait!.untilMs }] : []),
    { reason: 'budget', wakeAt: budgetFitsAt(context, waiting) },
    ...(pace !== undefined && pace.refusals > 0
      ? [{ reason: 'pacing' as const, wakeAt: pace.pausedUntilMs }]
      : []),
    {
      reason: waiting.call.lane === 'primary' ? 'quiet-window' : 'forecast',
      wakeAt: fitOf(context, waiting)?.tryAtMs ?? at,
    },
  ]
  return holds.filter(({ wakeAt }) => wakeAt > at)
}

export interface LongestHold {
  readonly reason: WaitReason
  /** Holds the call besides a reason that ends with an event, and not before a known time; null when nothing does. */
  readonly besides: TimedHold | null
}

/** A reason that ends with an event may end at any time, so it is told with the longest timed one beside it. */
export const longestOf = (first: WaitReason, holds: ReadonlyArray<TimedHold>): LongestHold => {
  let longest: TimedHold | null = null
  for (const hold of holds) if (longest === null || hold.wakeAt > longest.wakeAt) longest = hold
  if (first.wakeAt === null) return { reason: first, besides: longest }
  return { reason: longest !== null && longest.wakeAt > first.wakeAt ? longest : first, besides: null }
}

export const longestHold = (context: ScopeContext, waiting: Waiting): LongestHold =>
  longestOf(waitReason(context, waiting), timedHolds(context, waiting))
