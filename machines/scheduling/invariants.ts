/**
 * What must hold whatever happens to a scope, looked at while it works: at every grant, and after
 * every event. Each look costs the same however many calls wait. A capacity that was learned or
 * changed may fall below what is in flight, so places are looked at when they are granted.
 */
import { HashMap } from 'effect'
import { capacityOf, reservedOf } from '../limits/capacity.ts'
import type { GrantReason } from '../model/decision.ts'
import { broken } from '../model/invariant.ts'
import type { Waiting } from '../state/calls.ts'
import type { ScopeContext } from '../state/context.ts'
import { isWhole } from '../state/lines.ts'
import { primaryWanted } from './admission.ts'

/** Before a permit is granted: there is a place for it, and the gate is open for an auxiliary that needs no exception. */
export const checkGrant = (
  context: ScopeContext,
  { call }: Waiting,
  reason: GrantReason,
  borrowed: boolean,
): void => {
  const { counts, state } = context
  const { id } = call
  if (borrowed) return
  const capacity = capacityOf(context)
  if (!(counts.places >= 0 && counts.places < capacity))
    broken('I2', `call ${id} is granted place ${counts.places + 1} of ${capacity}`)
  if (call.lane === 'primary' || reason === 'dependency') return
  const auxiliaryPlaces = capacity - reservedOf(context)
  if (counts.auxiliaryInTheWay >= auxiliaryPlaces)
    broken(
      'I2',
      `call ${id} is granted auxiliary place ${counts.auxiliaryInTheWay + 1} of ${auxiliaryPlaces}`,
    )
  const isExcepted =
    reason === 'fairness' ? state === 'auxiliaryDraining' : state === 'quietRamp.quiet' && reason !== 'open'
  if (!isExcepted && primaryWanted(context))
    broken('I1', `call ${id} is granted as ${reason} in ${state} while a primary closes the gate`)
}

type Calls = HashMap.HashMap<string, unknown>

/** After a call has left a map: it was in it. */
export const checkLeft = (before: Calls, after: Calls, id: string): void => {
  if (HashMap.size(after) !== HashMap.size(before) - 1)
    broken('I3', `call ${id} leaves a place that it did not hold`)
}

/** After a call has entered a map: it was not in it. */
export const checkEntered = (before: Calls, after: Calls, id: string): void => {
  if (HashMap.size(after) !== HashMap.size(before) + 1)
    broken('I4', `call ${id} enters a place that it holds already`)
}

/** After an event: counts, maps, lines and deadlines agree. */
export const checkScope = (context: ScopeContext): void => {
  checkCounts(context)
  checkLines(context)
  const { at, phase, drain, sweepAt } = context
  const deadlinesMs =
    phase.patienceUntilMs +
    phase.graceUntilMs +
    phase.quietUntilMs +
    phase.lingerUntilMs +
    drain.windowStartMs
  if (
    !Number.isFinite(at + deadlinesMs + context.virtualTokens + drain.windowTokens + drain.servedTokens) ||
    Number.isNaN(sweepAt)
  )
    broken('I7', `a time or a sum is no number: ${JSON.stringify({ at, phase, drain, sweepAt })}`)
}

const checkCounts = ({ counts, waiting, inFlight }: ScopeContext): void => {
  const { primaryWaiting, primaryReady, primaryInFlight, primaryUnaccepted } = counts
  const { auxiliaryWaiting, auxiliaryInFlight, auxiliaryInTheWay, places } = counts
  // One comparison for the eight of them, which is false for what is no number as well.
  const least = Math.min(
    Math.min(primaryReady, primaryUnaccepted, auxiliaryWaiting, auxiliaryInTheWay, places),
    Math.min(
      primaryWaiting - primaryReady,
      primaryInFlight - primaryUnaccepted,
      auxiliaryInFlight - auxiliaryInTheWay,
      primaryInFlight + auxiliaryInFlight - places,
    ),
  )
  if (!(least >= 0)) broken('I3', `counts are below 0 or above their sums: ${JSON.stringify(counts)}`)
  if (primaryWaiting + auxiliaryWaiting !== HashMap.size(waiting))
    broken(
      'I3',
      `${HashMap.size(waiting)} calls wait, but the lanes count ${primaryWaiting} + ${auxiliaryWaiting}`,
    )
  if (primaryInFlight + auxiliaryInFlight !== HashMap.size(inFlight))
    broken(
      'I3',
      `${HashMap.size(inFlight)} calls are in flight, but the lanes count ${primaryInFlight} + ${auxiliaryInFlight}`,
    )
}

/** That a principal in a line has a backlog is looked at when its turn comes, and when it joins or leaves. */
const checkLines = ({ lines, counts, principals }: ScopeContext): void => {
  const { size } = lines
  if (!(size >= 0 && size <= counts.auxiliaryWaiting && size <= HashMap.size(principals)))
    broken(
      'I4',
      `the lines have ${size} principals of ${HashMap.size(principals)}, and ${counts.auxiliaryWaiting} auxiliaries wait`,
    )
  if (!isWhole(lines)) broken('I4', `the lines have ${size} principals, but not all in both orders`)
}
