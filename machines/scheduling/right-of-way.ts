/** Primaries in their order, smaller ones past larger ones that do not fit, and auxiliaries beside them. */
import { first, peek, pop, remove } from '../collections/queue.ts'
import { roomAt } from '../limits/belief/belief.ts'
import { capacityOf } from '../limits/capacity.ts'
import { lookup, type Waiting } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import {
  auxiliaryFit,
  auxiliaryObstacle,
  fairnessDue,
  nextPrimary,
  primaryFit,
} from './admission.ts'
import { frontCalls, isReady, seqOf, served } from './fairness.ts'
import { grant } from './grant.ts'
import { buildingVerdict, forecastAfter, forecastOf, trustOf } from './planner.ts'

/** Primaries behind one that does not fit that are looked at. */
const primariesLookedAt = 8
/** Auxiliaries that are looked at; every choice of them is tried. */
const auxiliariesLookedAt = 8
/** A head is promised its forecast and half as much again of the wait, and at least this much, milliseconds. */
const leastSlackMs = 1_000

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
  const byMs = fits + Math.max(leastSlackMs, Math.ceil((fits - draft.at) / 2))
  draft.phase = { ...draft.phase, promise: { callId: head.call.id, byMs } }
  return byMs
}

/** Whether the head still fits in time when `tokens` are sent now. */
const keeps = (draft: Draft, head: Waiting, byMs: number | null, tokens: number): boolean => {
  if (byMs === null) return true
  const after = forecastAfter(draft, head, tokens)
  return after !== null && after <= byMs
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

const rankIn = (draft: Draft, { seq, call }: Waiting): number =>
  draft.primaries.findIndex((queue) =>
    first(queue, 4 * primariesLookedAt).some((place) => place.seq === seq && place.id === call.id),
  )

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
    draft.primaries = draft.primaries.with(next.rank, next.queue)
    grantPrimary(draft, next.waiting, next.rank, probe)
  }
}

const passSmaller = (draft: Draft, head: Waiting): void => {
  const byMs = promisedBy(draft, head)
  for (const waiting of primariesBehind(draft, head)) {
    if (draft.counts.places >= capacityOf(draft)) return
    if (waiting.call.inputTokens >= head.call.inputTokens) continue
    const { tryAtMs, probe } = primaryFit(draft, waiting)
    if (tryAtMs > draft.at) lookAgain(draft, tryAtMs)
    else if (keeps(draft, head, byMs, waiting.call.inputTokens))
      grantPrimary(draft, waiting, rankIn(draft, waiting), probe)
  }
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

/** Auxiliaries while a primary waits for its ceiling: those that do not delay it, or all that fit when no silence lets it in. */
export const auxiliariesBeside = (draft: Draft): void => {
  const { strategy } = draft.policy
  if (strategy === 'quiet' || draft.counts.primaryReady === 0) return
  for (;;) {
    const next = nextPrimary(draft)
    if (next === null || draft.ring.size === 0 || auxiliaryObstacle(draft) !== null) return
    const fits = forecastOf(draft, next.waiting)
    if (fits !== null && fits <= draft.at) return
    const builds = fits === null
    if (builds && strategy === 'backfill') return
    const chosen = builds ? choosePacked(draft, true) : chooseBeside(draft, next.waiting, fits)
    if (chosen === null) return
    served(draft, chosen)
    grant(draft, chosen, builds ? 'warm-up' : 'backfill')
  }
}

/**
 * Whole minutes are packed as full as their ceiling permits, for what is used in one is what the next
 * grows from: of the first calls the choice that fills what is left, its smallest first. Null when none fits.
 */
export const choosePacked = (draft: Draft, builds: boolean): Waiting | null => {
  const calls = frontCalls(draft, auxiliariesLookedAt).filter((waiting) => {
    const { reason, tryAtMs } = auxiliaryFit(draft, waiting)
    if (reason === null) return true
    if (reason !== 'forecast') return false
    const verdict = builds ? buildingVerdict(draft, waiting) : null
    lookAgain(draft, Math.min(tryAtMs, verdict?.tryAtMs ?? tryAtMs))
    return verdict !== null && verdict.tryAtMs <= draft.at
  })
  const trust = Math.max(builds ? 1 : 0, trustOf(draft.belief, 'auxiliary'))
  const sizes = calls.map(({ call }) => call.inputTokens)
  const packed = pack(sizes, roomAt(draft.belief, draft.at, trust)).map((index) => calls[index]!)
  return (packed.length > 0 ? packed : calls).reduce<Waiting | null>(
    (least, waiting) =>
      least === null || waiting.call.inputTokens < least.call.inputTokens ? waiting : least,
    null,
  )
}

/** An auxiliary that goes while the one whose turn it is does not fit, without delaying it; in a bucket every token delays it. */
export const besideHead = (draft: Draft, head: Waiting): Waiting | null => {
  const fitsMs = auxiliaryFit(draft, head).tryAtMs
  return chooseBeside(draft, head, forecastOf(draft, head) === null ? null : fitsMs)
}

const chooseBeside = (draft: Draft, head: Waiting, fitsMs: number | null): Waiting | null => {
  let best: Waiting | null = null
  for (const waiting of frontCalls(draft, auxiliariesLookedAt)) {
    const { tryAtMs } = auxiliaryFit(draft, waiting)
    if (waiting.seq === head.seq) continue
    if (tryAtMs > draft.at) lookAgain(draft, tryAtMs)
    else if (keeps(draft, head, fitsMs, waiting.call.inputTokens)) {
      if (best === null || waiting.call.inputTokens > best.call.inputTokens) best = waiting
    }
  }
  return best
}
