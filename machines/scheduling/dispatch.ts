/** Grants everything that may go: one pass per event and per state entered, and loans of a parent's place. */
import { HashMap } from 'effect'
import { empty, peek, pop, push, toArray } from '../collections/queue.ts'
import { capacityOf } from '../limits/capacity.ts'
import * as ramp from '../limits/ramp.ts'
import { lookup, type Place, type Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import {
  auxiliaryMisfit,
  auxiliaryObstacle,
  fairnessDue,
  isPaced,
  nextPrimary,
  overdue,
  primaryFitsAt,
  primaryWanted,
  quantumSpent,
  waitsForProvider,
} from './admission.ts'
import {
  enterFlight,
  isReady,
  leaveBacklog,
  nextAuxiliary,
  nextThatFits,
  passTurn,
  served,
} from './fairness.ts'
import { grant } from './grant.ts'
import { chooseWarmUp } from './warm-up.ts'

const passUrgent = (draft: Draft): void => {
  while (draft.urgent.size > 0 && draft.counts.places < capacityOf(draft) && !waitsForProvider(draft)) {
    const place = peek(draft.urgent)!
    const waiting = lookup(draft.waiting, place.id)
    draft.urgent = pop(draft.urgent)
    if (waiting === undefined || waiting.seq !== place.seq || !isReady(waiting)) continue
    if (waiting.call.lane === 'auxiliary') enterFlight(draft, waiting.call.principal)
    grant(draft, waiting, 'dependency')
  }
}

const passPrimaries = (draft: Draft): void => {
  if (fairnessDue(draft)) return
  if (draft.phase.quietUntilMs !== 0) draft.phase = { ...draft.phase, quietUntilMs: 0 }
  while (draft.counts.places < capacityOf(draft) && draft.counts.primaryReady > 0) {
    const next = nextPrimary(draft)
    if (next === null) return
    const fits = primaryFitsAt(draft, next.waiting)
    if (fits > draft.at) {
      draft.phase = { ...draft.phase, quietUntilMs: fits }
      return
    }
    draft.primaries = draft.primaries.with(next.rank, pop(next.queue))
    grant(draft, next.waiting, 'primary')
  }
}

/** How often a head that does not fit yet is passed over before its room is kept for it. */
const maxBypass = 2

/** Whose turn it is, or, at most `maxBypass` times for the same head that does not fit, somebody else who fits. */
const chooseAuxiliary = (draft: Draft, fits: (waiting: Waiting) => boolean): Waiting | null => {
  // A class that backs off does so alone: no room is kept for it, the others of the lane go on.
  const backsOff = (waiting: Waiting): boolean => !fits(waiting) && isPaced(draft, waiting)
  const head = nextAuxiliary(draft, backsOff)
  if (head === null || fits(head)) return head
  const before = draft.bypass?.callId === head.call.id ? draft.bypass.count : 0
  if (before >= maxBypass) return null
  const other = nextThatFits(draft, fits)
  if (other !== null) draft.bypass = { callId: head.call.id, count: before + 1 }
  return other
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
  while (draft.ring.size > 0 && auxiliaryObstacle(draft) === null) {
    if (metered && (!paceAllowsDrain(draft) || (wanted && quantumSpent(draft)))) return
    const chosen = chooseAuxiliary(draft, (waiting) => auxiliaryMisfit(draft, waiting) === null)
    if (chosen === null) return
    served(draft, chosen)
    if (draft.foregroundActive) passTurn(draft)
    if (draft.bypass?.callId === chosen.call.id) draft.bypass = null
    const cost = Math.max(1, chosen.call.inputTokens)
    const { windowStartMs, windowTokens, servedTokens } = draft.drain
    if (metered) {
      draft.drain = { windowStartMs, windowTokens: windowTokens + cost, servedTokens: servedTokens + cost }
    }
    grant(draft, chosen, metered ? (wanted ? 'fairness' : 'drain') : 'open')
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
    if (!chosen.urgent) leaveBacklog(draft, chosen.call.principal)
    enterFlight(draft, chosen.call.principal)
  }
  draft.nested = HashMap.set(draft.nested, parentId, { queue, lent: chosen.call.id })
  grant(draft, chosen, 'nested', true)
}

/** Looks at the head primary again, and lets auxiliaries warm the ceiling up for it where the ramp plans so. */
const passQuiet = (draft: Draft): void => {
  draft.ramp = ramp.review(draft.ramp, draft.at)
  const fits = (waiting: Waiting) => auxiliaryMisfit(draft, waiting) === null
  for (let warmth = ramp.warmth(draft.ramp, draft.at); warmth !== null; ) {
    if (draft.ring.size === 0 || auxiliaryObstacle(draft) !== null) break
    const chosen = warmth === 'warm-up' ? chooseWarmUp(draft) : chooseAuxiliary(draft, fits)
    if (chosen === null) break
    served(draft, chosen)
    grant(draft, chosen, warmth)
    draft.ramp = ramp.review(draft.ramp, draft.at)
    warmth = ramp.warmth(draft.ramp, draft.at)
  }
  const next = nextPrimary(draft)
  const quietUntilMs = next === null ? 0 : primaryFitsAt(draft, next.waiting)
  draft.phase = { ...draft.phase, quietUntilMs }
}

/** Grants everything that may go in its state now. */
export const pass = (draft: Draft): void => {
  passUrgent(draft)
  if (draft.state === 'quietRamp.admitting' || draft.state === 'quietRamp.active') passPrimaries(draft)
  else if (draft.state === 'quietRamp.quiet') passQuiet(draft)
  else if (draft.state !== 'primaryPending') passAuxiliaries(draft)
}
