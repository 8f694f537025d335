/** Which auxiliary goes next, and whether a quantum of the lane goes before a primary. */
import { roomAt } from '../limits/belief/forecast.ts'
import type { Waiting } from '../state/calls.ts'
import type { ScopeContext } from '../state/context.ts'
import {
  auxiliaryFit,
  auxiliaryMisfit,
  auxiliaryObstacle,
  isPaced,
  nextInTurn,
  overdue,
  primaryWanted,
  turnFront,
} from './admission.ts'
import {
  bindsByWindow,
  buildingTrust,
  buildingVerdict,
  forecastAfter,
  forecastOf,
  trustOf,
} from './planner.ts'
import { frontCalls, type NextTurn, nextThatFits } from './turns.ts'

/** How often a head that does not fit yet is passed over before its room is kept for it. */
const maxBypass = 2
/** Auxiliaries that are looked at; every choice of them is tried. */
export const auxiliariesLookedAt = 8

/** The next call of the auxiliary lane, and the call whose turn it is: the same call, unless that one does not fit yet. */
export interface Choice {
  readonly pick: NextTurn
  readonly chosen: Waiting
}

/**
 * Beside a primary or a foreground, the first call of a quantum belongs to the principal that was held longest.
 * The other calls of the quantum go by their tags.
 */
const beginsQuantum = (context: ScopeContext, mayBypass: boolean): boolean =>
  context.foregroundActive ||
  (!mayBypass && !(context.state === 'auxiliaryDraining' && context.drain.heldServed) && overdue(context))

/**
 * Whose turn it is, or another that fits. In a bucket every token that passes delays the one whose turn
 * it is, so nobody passes; in a limit by windows whole windows are packed; a head that waits for another
 * limit is passed at most `maxBypass` times. A quantum is for the principal that was held: beside a
 * primary nobody has one in its stead. Looks only.
 */
export const chooseAuxiliary = (
  context: ScopeContext,
  mayBypass = !primaryWanted(context),
): Choice | null => {
  const byAge = beginsQuantum(context, mayBypass)
  const head = byAge ? turnFront(context) : nextInTurn(context)
  if (head === null) return null
  const pick = { head, byAge }
  const passes = context.bypass?.callId === head.call.id ? context.bypass.count : 0
  const passed = (chosen: Waiting | null): Choice | null => (chosen === null ? null : { pick, chosen })
  if (mayBypass && passes < maxBypass && bindsByWindow(context.belief)) {
    const packed = choosePacked(context, false)
    if (packed !== null) return { pick, chosen: packed }
  }
  const { reason } = auxiliaryFit(context, head)
  if (reason === null) return { pick, chosen: head }
  if (!mayBypass) return null
  if (reason === 'forecast')
    return bindsByWindow(context.belief)
      ? passed(chooseBeside(context, head, forecastOf(context, head), false))
      : null
  if (passes >= maxBypass) return null
  return passed(nextThatFits(context, (waiting) => auxiliaryMisfit(context, waiting) === null))
}

/** Calls that may go next: of each principal the first, or some that stand behind it where they go out of their turn for a primary. */
const candidates = (context: ScopeContext, outOfTurn: boolean): ReadonlyArray<Waiting> => {
  const calls = frontCalls(context, auxiliariesLookedAt)
  if (outOfTurn) return calls
  const principals = new Set<string>()
  return calls.filter(({ call: { principal } }) => {
    const isFirst = !principals.has(principal)
    principals.add(principal)
    return isFirst
  })
}

/** The largest of the first calls that fits and does not delay `head`, which is expected to fit at `byMs`. */
export const chooseBeside = (
  context: ScopeContext,
  head: Waiting,
  byMs: number | null,
  outOfTurn: boolean,
): Waiting | null => {
  let best: Waiting | null = null
  for (const waiting of candidates(context, outOfTurn)) {
    const { inputTokens } = waiting.call
    if (waiting.seq === head.seq || (best !== null && inputTokens <= best.call.inputTokens)) continue
    if (auxiliaryMisfit(context, waiting) !== null || !keeps(context, head, byMs, inputTokens)) continue
    best = waiting
  }
  return best
}

/** Whether `head` still fits in time when `tokens` are sent now. */
export const keeps = (context: ScopeContext, head: Waiting, byMs: number | null, tokens: number): boolean => {
  if (byMs === null) return true
  const after = forecastAfter(context, head, tokens)
  return after !== null && after <= byMs
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

/** When an auxiliary may go. With `builds` it is to lift a ceiling, so that at least the best guess is tried. */
export const auxiliaryTryAt = (context: ScopeContext, waiting: Waiting, builds: boolean): number => {
  const { reason, tryAtMs } = auxiliaryFit(context, waiting)
  if (reason !== 'forecast' || !builds) return tryAtMs
  return Math.min(tryAtMs, buildingVerdict(context, waiting).tryAtMs)
}

/**
 * Packs a whole minute as full as its ceiling permits, because the next ceiling grows from this minute's use. Of the
 * first calls it takes the choice that fills the rest of the minute, and of that choice the smallest call. Null when
 * none fits.
 */
export const choosePacked = (context: ScopeContext, builds: boolean): Waiting | null => {
  const calls = candidates(context, builds).filter(
    (waiting) => !isPaced(context, waiting) && auxiliaryTryAt(context, waiting, builds) <= context.at,
  )
  if (calls.length === 0) return null
  const trust = Math.max(builds ? buildingTrust(context.belief) : 0, trustOf(context.belief, 'auxiliary'))
  const sizes = calls.map(({ call }) => call.inputTokens)
  const packed = pack(sizes, roomAt(context.belief, context.at, trust)).map((index) => calls[index]!)
  return (packed.length > 0 ? packed : calls).reduce((least, waiting) =>
    waiting.call.inputTokens < least.call.inputTokens ? waiting : least,
  )
}

/**
 * Whether a principal's quantum comes before the next primary, and can be served now. A primary does not wait for a
 * quantum of which nothing can be served: places and tokens that auxiliaries may not have stay the primaries'.
 */
export const fairnessDue = (context: ScopeContext): boolean =>
  context.lines.size > 0 &&
  primaryWanted(context) &&
  overdue(context) &&
  auxiliaryObstacle(context) === null &&
  chooseAuxiliary(context) !== null

/** A quantum is spent: enough for a turn that began while a primary was pending. */
export const quantumSpent = ({ drain, policy }: ScopeContext): boolean =>
  drain.servedTokens >= policy.quantumTokens

/** The drain makes way for a primary: its quantum is spent, or none is due. */
export const primaryDue = (context: ScopeContext): boolean =>
  primaryWanted(context) && (quantumSpent(context) || !fairnessDue(context))
