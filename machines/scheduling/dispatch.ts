/** Grants everything that may go: one pass per event and per state entered, and loans of a parent's place. */
import { HashMap } from 'effect'
import { empty, peek, pop, push, toArray } from '../collections/queue.ts'
import { capacityOf } from '../limits/capacity.ts'
import type { Place, Waiting } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { auxiliaryFit, auxiliaryObstacle, overdue, primaryWanted, waitsForProvider } from './admission.ts'
import { chooseAuxiliary, quantumSpent } from './auxiliary-choice.ts'
import { costOf, enterFlight, isReady, leaveBacklog } from './fairness.ts'
import { grant } from './grant.ts'
import { auxiliariesBeside, headWaits, lookAgainAtFronts, passPrimaries, take } from './right-of-way.ts'

const passUrgent = (draft: Draft): void => {
  while (draft.urgent.size > 0 && draft.counts.places < capacityOf(draft) && !waitsForProvider(draft)) {
    const place = peek(draft.urgent)!
    const waiting = lookup(draft.waiting, place.id)
    draft.urgent = pop(draft.urgent)
    // One that went in its parent's place and came back stands in its principal's queue.
    if (waiting?.seq !== place.seq || !waiting.urgent || !isReady(waiting)) continue
    if (waiting.call.lane === 'auxiliary') enterFlight(draft, waiting.call.principal)
    grant(draft, waiting, 'dependency')
  }
}

/** Opens the next window of the metered drain when the last one has passed. False while the window's quantum is spent. */
const paceAllowsDrain = (draft: Draft): boolean => {
  if (draft.at >= draft.drain.windowStartMs + draft.policy.drainIntervalMs) {
    draft.drain = { ...draft.drain, windowStartMs: draft.at, windowTokens: 0 }
  }
  return draft.drain.windowTokens < draft.policy.quantumTokens
}

const passAuxiliaries = (draft: Draft): void => {
  const metered = draft.state === 'auxiliaryDraining'
  const wanted = primaryWanted(draft)
  // Beside a primary the drain serves a quantum that is due, and nothing else.
  if (wanted && !(metered && overdue(draft))) return
  while (draft.lines.size > 0 && auxiliaryObstacle(draft) === null) {
    if (metered && (!paceAllowsDrain(draft) || (wanted && quantumSpent(draft)))) return
    const choice = chooseAuxiliary(draft)
    if (choice === null) return lookAgainAtFronts(draft, false)
    const { probe } = auxiliaryFit(draft, choice.chosen)
    const turn = take(draft, choice)
    const { chosen } = choice
    const cost = costOf(chosen)
    const { windowTokens, servedTokens } = draft.drain
    if (metered) {
      draft.drain = {
        ...draft.drain,
        windowTokens: windowTokens + cost,
        servedTokens: servedTokens + cost,
      }
    }
    grant(draft, chosen, wanted ? 'fairness' : probe ? 'probe' : metered ? 'drain' : 'open', { turn })
  }
}

/** A child of a running call borrows its parent's place, one child at a time: the parent waits for it. */
export const lend = (draft: Draft, parentId: string): void => {
  const children = lookup(draft.nested, parentId)
  if (!HashMap.has(draft.inFlight, parentId) || children === undefined || children.lent !== null) return
  let chosen: Waiting | null = null
  let queue = empty<Place>()
  for (const place of toArray(children.queue)) {
    const waiting = lookup(draft.waiting, place.id)
    if (waiting === undefined || waiting.seq !== place.seq) continue
    if (chosen === null && isReady(waiting)) chosen = waiting
    else queue = push(queue, place)
  }
  if (chosen === null) {
    if (queue.size === 0) draft.nested = HashMap.remove(draft.nested, parentId)
    return
  }
  if (chosen.call.lane === 'auxiliary') {
    if (!chosen.urgent) leaveBacklog(draft, chosen.call.principal, chosen.seq)
    enterFlight(draft, chosen.call.principal)
  }
  draft.nested = HashMap.set(draft.nested, parentId, { queue, lent: chosen.call.id })
  grant(draft, chosen, 'nested', { borrowed: true })
}

/** The head that does not fit yet waits; smaller primaries, and auxiliaries that do not delay it, pass. One that fits has left this state before it goes. */
const passQuiet = (draft: Draft): void => {
  if (!headWaits(draft)) return
  passPrimaries(draft)
  auxiliariesBeside(draft)
}

/** Grants everything that may go in its state now. */
export const pass = (draft: Draft): void => {
  if (draft.phase.lookAgainMs !== 0) draft.phase = { ...draft.phase, lookAgainMs: 0 }
  passUrgent(draft)
  if (draft.state === 'quietRamp.admitting' || draft.state === 'quietRamp.active') passPrimaries(draft)
  else if (draft.state === 'quietRamp.quiet') passQuiet(draft)
  else if (draft.state !== 'primaryPending') passAuxiliaries(draft)
}
