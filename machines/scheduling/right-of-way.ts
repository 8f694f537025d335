/** Primaries in their order, smaller ones past larger ones that do not fit, and auxiliaries beside them. */
import { first, peek, pop, remove } from '../collections/queue.ts'
import { sentInMinute } from '../limits/belief/charges.ts'
import { roomAt } from '../limits/belief/forecast.ts'
import { capacityOf } from '../limits/capacity.ts'
import type { TakenTurn, Waiting } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { auxiliaryObstacle, nextPrimary, primaryFit } from './admission.ts'
import {
  auxiliariesLookedAt,
  auxiliaryTryAt,
  type Choice,
  chooseBeside,
  choosePacked,
  fairnessDue,
  keeps,
} from './auxiliary-choice.ts'
import { isReady, seqOf, served } from './fairness.ts'
import { takeSeat } from './favor.ts'
import { grant } from './grant.ts'
import { forecastOf, primaryVerdict } from './planner.ts'
import { standingRank } from './primary-order.ts'
import { frontCalls } from './turns.ts'

/** Primaries behind one that does not fit that are looked at. */
const primariesLookedAt = 8
/** A head is promised its forecast and as much again of the wait, and at least this much, milliseconds. */
const leastSlackMs = 5_000

/** Time alone may let a call go then. */
export const lookAgain = (draft: Draft, atMs: number): void => {
  if (!(atMs > draft.at) || !Number.isFinite(atMs)) return
  const { lookAgainMs } = draft.phase
  if (lookAgainMs === 0 || atMs < lookAgainMs) draft.phase = { ...draft.phase, lookAgainMs: atMs }
}

/** By when the head was promised to fit, epoch milliseconds; null when no silence lets it in. */
const promisedBy = (draft: Draft, head: Waiting): number | null => {
  const fits = forecastOf(draft, head)
  if (fits === null) return null
  const { promise } = draft.phase
  if (promise?.callId === head.call.id) return promise.byMs
  const byMs = fits + Math.max(leastSlackMs, fits - draft.at)
  draft.phase = { ...draft.phase, promise: { callId: head.call.id, byMs } }
  return byMs
}

/** Primaries behind the head, in their order. */
const primariesBehind = (draft: Draft, head: Waiting): ReadonlyArray<Waiting> => {
  const found: Waiting[] = []
  for (const queue of draft.primaries) {
    for (const { id, seq } of first(queue, 2 * primariesLookedAt)) {
      const waiting = lookup(draft.waiting, id)
      if (waiting?.seq !== seq || waiting.urgent || !isReady(waiting) || seq === head.seq) continue
      found.push(waiting)
      if (found.length >= primariesLookedAt) return found
    }
  }
  return found
}

const grantPrimary = (draft: Draft, waiting: Waiting, rank: number, probe: boolean): void => {
  const queue = draft.primaries[rank]!
  draft.primaries = draft.primaries.with(
    rank,
    peek(queue)?.seq === waiting.seq ? pop(queue) : remove(queue, waiting.seq, seqOf),
  )
  grant(draft, waiting, probe ? 'probe' : 'primary')
}

/** Whether the primary at the head must wait; notes until when. */
export const headWaits = (draft: Draft): boolean => {
  const next = nextPrimary(draft)
  const tryAtMs = next === null ? 0 : primaryFit(draft, next.waiting).tryAtMs
  draft.phase = { ...draft.phase, quietUntilMs: tryAtMs }
  return tryAtMs > draft.at
}

/** Sends primaries in their order; past a head that does not fit, smaller ones that do. */
export const passPrimaries = (draft: Draft): void => {
  if (fairnessDue(draft)) return
  draft.phase = { ...draft.phase, quietUntilMs: 0 }
  while (draft.counts.places < capacityOf(draft) && draft.counts.primaryReady > 0) {
    const next = nextPrimary(draft)
    if (next === null) return
    const { tryAtMs, probe } = primaryFit(draft, next.waiting)
    if (tryAtMs > draft.at) {
      draft.phase = { ...draft.phase, quietUntilMs: tryAtMs }
      return passSmaller(draft, next.waiting)
    }
    draft.rankServedAt = draft.rankServedAt.with(next.rank, draft.at)
    if (next.aged) draft.passedBefore = draft.nextSeq
    takeSeat(draft, next.rank, next)
    grant(draft, next.waiting, probe ? 'probe' : 'primary')
  }
}

/** Sends primaries that are smaller than `head`. Only the belief depends on size: a wait, a budget or a pause of the head holds every primary. */
const passSmaller = (draft: Draft, head: Waiting): void => {
  if (primaryVerdict(draft, head).tryAtMs <= draft.at) return
  const byMs = promisedBy(draft, head)
  for (const waiting of primariesBehind(draft, head)) {
    if (draft.counts.places >= capacityOf(draft)) return
    if (waiting.call.inputTokens >= head.call.inputTokens) continue
    const { tryAtMs, probe } = primaryFit(draft, waiting)
    if (tryAtMs > draft.at) lookAgain(draft, tryAtMs)
    else if (keeps(draft, head, byMs, waiting.call.inputTokens))
      grantPrimary(draft, waiting, standingRank(draft.policy, waiting), probe)
  }
}

/** Takes a chosen call out of its queue; answers the turn that it took. */
export const take = (draft: Draft, { pick, chosen }: Choice): TakenTurn => {
  if (chosen === pick.head) {
    if (draft.bypass?.callId === chosen.call.id) draft.bypass = null
    if (pick.byAge) draft.drain = { ...draft.drain, heldServed: true }
    return served(draft, chosen, !pick.byAge)
  }
  const before = draft.bypass?.callId === pick.head.call.id ? draft.bypass.count : 0
  draft.bypass = { callId: pick.head.call.id, count: before + 1 }
  return served(draft, chosen, false)
}

/** Of the auxiliaries that come next, none may go now: time alone may let one go. */
export const lookAgainAtFronts = (draft: Draft, builds: boolean): void => {
  for (const waiting of frontCalls(draft, auxiliariesLookedAt))
    lookAgain(draft, auxiliaryTryAt(draft, waiting, builds))
}

/** Whether the call would go above the sure part of the ceiling. With nothing sent there is no level to hold: the first call makes it. */
const exceedsLevel = ({ belief, at }: Draft, { call }: Waiting): boolean =>
  sentInMinute(belief.charges, at) > 0 && call.inputTokens > roomAt(belief, at, 0)

/**
 * Sends auxiliaries while a primary waits for its ceiling: those that do not delay it, or all that fit when no silence
 * lets it in. The strategies constrain this: `quiet` sends none; `holdSteady` sends none above the sure part of the
 * ceiling, and neither does `backfill` where the primary has no forecast.
 */
export const auxiliariesBeside = (draft: Draft): void => {
  const { strategy } = draft.policy
  if (strategy === 'quiet' || draft.counts.primaryReady === 0) return
  for (;;) {
    const next = nextPrimary(draft)
    if (next === null || draft.lines.size === 0 || auxiliaryObstacle(draft) !== null) return
    const fits = forecastOf(draft, next.waiting)
    if (fits !== null && fits <= draft.at) return
    const isSteady = strategy === 'holdSteady' || (strategy === 'backfill' && fits === null)
    const builds = fits === null && !isSteady
    const chosen = fits === null ? choosePacked(draft, builds) : chooseBeside(draft, next.waiting, fits, true)
    const isKept = chosen !== null && isSteady && exceedsLevel(draft, chosen)
    if (chosen === null || isKept) return lookAgainAtFronts(draft, builds)
    const turn = served(draft, chosen, false)
    grant(draft, chosen, fits === null ? 'warm-up' : 'backfill', { turn })
  }
}
