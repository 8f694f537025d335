/** When the waiting primaries get in, if no other call is sent from now on. */
import type { Load, Mirror, MirrorRules } from './mirror.ts'

export interface Planned<Call extends Load> {
  /** The next primary to send, and its time; null when none of them ever gets in. */
  readonly next: { readonly call: Call; readonly atMs: number } | null
  /** Primaries that never get in. */
  readonly never: number
  /** Sum of the times of the other primaries. */
  readonly sumMs: number
}

/**
 * A plan covers this many waiting primaries, the smallest ones; the others are planned after those have gone.
 */
export const planDepth = 8

/** Whether `one` makes primaries wait longer than `other`. */
export const isWorse = (one: Planned<Load>, other: Planned<Load>): boolean =>
  one.never > other.never || (one.never === other.never && one.sumMs > other.sumMs)

const follow = <Call extends Load>(
  rules: MirrorRules,
  start: Mirror,
  order: ReadonlyArray<Call>,
  nowMs: number,
): Planned<Call> => {
  let mirror = start
  let fromMs = nowMs
  let next: Planned<Call>['next'] = null
  let never = 0
  let sumMs = 0
  for (const call of order) {
    const atMs = rules.acceptsAtMs(mirror, call, fromMs)
    const after = atMs === null ? null : rules.accept(rules.advance(mirror, atMs), call, atMs)
    if (atMs === null || after === null) {
      never += 1
      continue
    }
    next ??= { call, atMs }
    mirror = after
    fromMs = atMs
    sumMs += atMs
  }
  return { next, never, sumMs }
}

/**
 * The best of a few orders: first come first served, smallest first, soonest alone first, and shortest answer
 * first. The sum of waits decides, so a small call may go before a large one that has waited longer.
 */
export const planPrimaries = <Call extends Load>(
  rules: MirrorRules,
  mirror: Mirror,
  /** First come first, `planDepth` at most. */
  waiting: ReadonlyArray<Call>,
  nowMs: number,
): Planned<Call> => {
  let best = follow(rules, mirror, waiting, nowMs)
  if (waiting.length <= 1) return best
  const alone = new Map(waiting.map((call) => [call, rules.acceptsAtMs(mirror, call, nowMs) ?? Infinity]))
  const orders = [
    waiting.toSorted((one, other) => one.inputTokens - other.inputTokens),
    waiting.toSorted((one, other) => alone.get(one)! - alone.get(other)! || 0),
    waiting.toSorted((one, other) => one.outputTokens - other.outputTokens),
  ]
  for (const order of orders) {
    const plan = follow(rules, mirror, order, nowMs)
    if (isWorse(best, plan)) best = plan
  }
  return best
}
