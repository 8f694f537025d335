/** Grants everything that may go: one pass per event and per state entered, and loans of a parent's place. */
import { HashMap } from 'effect'
import { empty, peek, pop, push, toArray } from '../collections/queue.ts'
import { capacityOf } from '../limits/capacity.ts'
import * as ramp from '../limits/ramp.ts'
import { lookup, type Place, type TakenTurn, type Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import {
  auxiliaryObstacle,
  type Choice,
  chooseAuxiliary,
  fairnessDue,
  nextPrimary,
  overdue,
  primaryFitsAt,
  primaryWanted,
  quantumSpent,
  waitsForProvider,
} from './admission.ts'
import { costOf, enterFlight, isReady, leaveBacklog, passTurn, served } from './fairness.ts'
import { grant } from './grant.ts'
import { takeTurn } from './turns.ts'
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
    draft.rankServedAt = draft.rankServedAt.with(next.rank, draft.at)
    if (next.aged) draft.passedBefore = draft.nextSeq
    grant(draft, next.waiting, 'primary')
  }
}

/** Takes a chosen call out of its queue; answers the turn that it took. */
const take = (draft: Draft, { pick, chosen }: Choice): TakenTurn => {
  takeTurn(draft, pick)
  if (chosen === pick.head) {
    if (draft.bypass?.callId === chosen.call.id) draft.bypass = null
    return served(draft, chosen, true)
  }
  const before = draft.bypass?.callId === pick.head.call.id ? draft.bypass.count : 0
  draft.bypass = { callId: pick.head.call.id, count: before + 1 }
  return served(draft, chosen, false)
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
    const choice = chooseAuxiliary(draft)
    if (choice === null) return
    const turn = take(draft, choice)
    if (draft.foregroundActive) passTurn(draft)
    const { chosen } = choice
    const cost = costOf(chosen)
    const { windowStartMs, windowTokens, servedTokens } = draft.drain
    if (metered) {
      draft.drain = { windowStartMs, windowTokens: windowTokens + cost, servedTokens: servedTokens + cost }
    }
    grant(draft, chosen, metered ? (wanted ? 'fairness' : 'drain') : 'open', { turn })
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
  grant(draft, chosen, 'nested', { borrowed: true })
}

/** Looks at the head primary again, and lets auxiliaries warm the ceiling up for it where the ramp plans so. */
const passQuiet = (draft: Draft): void => {
  draft.ramp = ramp.review(draft.ramp, draft.at)
  for (let warmth = ramp.warmth(draft.ramp, draft.at); warmth !== null; ) {
    if (draft.ring.size === 0 || auxiliaryObstacle(draft) !== null) break
    const choice = warmth === 'warm-up' ? null : chooseAuxiliary(draft, true)
    const chosen = warmth === 'warm-up' ? chooseWarmUp(draft) : (choice?.chosen ?? null)
    if (chosen === null) break
    const turn = choice === null ? served(draft, chosen, false) : take(draft, choice)
    grant(draft, chosen, warmth, { turn })
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
