/** Why a call that is still waiting waits: one closed word, derived from the context. */

import { capacityOf } from '../limits/capacity.ts'
import type { DeferReason } from '../model/decision.ts'
import type { Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext } from '../state/context.ts'
import {
  auxiliaryFit,
  auxiliaryObstacle,
  budgetFitsAt,
  nextPrimary,
  primaryFitsAt,
  primaryWanted,
  waitsForProvider,
} from './admission.ts'
import { quantumSpent } from './auxiliary-choice.ts'
import { isAtQuota } from './fairness.ts'

export interface WaitReason {
  readonly reason: DeferReason
  /** When time alone changes it, epoch milliseconds; null when a settlement or another event must. */
  readonly wakeAt: number | null
}

const because = (reason: DeferReason, wakeAt: number | null = null): WaitReason => ({ reason, wakeAt })

const whyPrimaryQuiet = (context: ScopeContext, waiting: Waiting): WaitReason => {
  const { at, wait, pacing } = context
  const fits = primaryFitsAt(context, waiting)
  if (waitsForProvider(context)) return because('provider-wait', wait!.untilMs)
  if (budgetFitsAt(context, waiting) > at) return because('budget', fits)
  const pace = pacing[waiting.call.priorityClass]
  if (pace !== undefined && pace.refusals > 0 && at < pace.pausedUntilMs) return because('pacing', fits)
  return because('quiet-window', fits)
}

/** When patience or grace ends, whichever runs; null where only an end of a call helps. */
const pendingUntilMs = ({ at, phase }: ScopeContext): number | null => {
  const untilMs = phase.graceUntilMs > at ? phase.graceUntilMs : phase.patienceUntilMs
  return untilMs > at ? untilMs : null
}

const whyPrimary = (context: ScopeContext, waiting: Waiting): WaitReason => {
  if (waiting.waitsFor.length > 0) return because('dependencies')
  switch (context.state) {
    case 'primaryPending':
      return because('auxiliaries-in-flight', pendingUntilMs(context))
    case 'quietRamp.quiet':
      return nextPrimary(context)?.waiting.seq === waiting.seq
        ? whyPrimaryQuiet(context, waiting)
        : because('behind-others')
    default:
      // A slot opens on a settlement, not at a time we could name.
      return because(context.counts.places >= capacityOf(context) ? 'capacity-full' : 'behind-others')
  }
}

const whyGateClosed = ({ counts }: ScopeContext): WaitReason => {
  if (counts.primaryWaiting > 0) return because('primary-pending')
  return because(counts.primaryInFlight > 0 ? 'primary-active' : 'turn-held')
}

const whyAuxiliary = (context: ScopeContext, waiting: Waiting): WaitReason => {
  const { policy, drain, at } = context
  if (waitsForProvider(context)) return because('provider-wait', context.wait!.untilMs)
  if (waiting.urgent) return because('capacity-full')
  const draining = context.state === 'auxiliaryDraining'
  if (primaryWanted(context) && (!draining || quantumSpent(context))) return whyGateClosed(context)
  const obstacle = auxiliaryObstacle(context)
  if (obstacle !== null) return because(obstacle)
  const { reason: misfit, tryAtMs } = auxiliaryFit(context, waiting)
  if (misfit === 'budget') return because('budget', budgetFitsAt(context, waiting))
  if (misfit === 'forecast') return because('forecast', tryAtMs)
  if (misfit === 'pacing') {
    const untilMs = context.pacing[waiting.call.priorityClass]!.pausedUntilMs
    // A full window opens with an acceptance.
    return because('pacing', untilMs > at ? untilMs : null)
  }
  const { principal } = waiting.call
  const inFlight = lookup(context.principals, principal)?.inFlight ?? 0
  if (isAtQuota(policy, principal, inFlight)) return because('quota')
  if (draining && drain.windowTokens >= policy.quantumTokens) {
    return because('drain-pace', drain.windowStartMs + policy.drainIntervalMs)
  }
  return because('behind-others')
}

/** Why `waiting` has no permit now. */
export const waitReason = (context: ScopeContext, waiting: Waiting): WaitReason =>
  waiting.call.lane === 'primary' ? whyPrimary(context, waiting) : whyAuxiliary(context, waiting)
