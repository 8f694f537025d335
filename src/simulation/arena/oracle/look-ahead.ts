/**
 * Warms up with few auxiliaries. If all are sent at once, they may be used up before the ceiling has grown,
 * or before the minute that keeps a climb alive. So plans are tried that keep some for later.
 */
import type { Load, Mirror, MirrorRules } from './mirror.ts'
import { pack } from './packing.ts'
import { isWorse, type Planned, planPrimaries } from './plan.ts'

/** With more auxiliaries than this there are enough for every minute: sending every one that fits is best. */
export const scarce = 8
/** The most plans that are tried. */
const mostNodes = 240
/** Length of a plan, ms. */
const horizonMs = 15 * 60_000
const minuteMs = 60_000

export interface LookAhead<Call extends Load> {
  /** The calls to send now; the rest is kept. */
  readonly send: ReadonlyArray<Call>
  /** When the plan continues. */
  readonly nextAtMs: number
}

interface Node<Call extends Load> {
  readonly mirror: Mirror
  readonly atMs: number
  readonly primaries: ReadonlyArray<Call>
  /** Fewest tokens first. */
  readonly auxiliaries: ReadonlyArray<Call>
  /** Sum of the times of primaries already accepted on the way here. */
  readonly sumMs: number
  readonly first: LookAhead<Call> | null
}

class Search<Call extends Load> {
  readonly #rules: MirrorRules
  readonly #endMs: number
  #nodes = 0
  #best: Planned<Load>
  found: LookAhead<Call> | null = null

  constructor(rules: MirrorRules, nowMs: number, best: Planned<Load>) {
    this.#rules = rules
    this.#endMs = nowMs + horizonMs
    this.#best = best
  }

  visit(node: Node<Call>): void {
    if (this.#nodes >= mostNodes || node.atMs > this.#endMs) return
    this.#nodes += 1
    const { mirror, atMs, primaries, auxiliaries, first } = node
    const plan = planPrimaries(this.#rules, mirror, primaries, atMs)
    const whole = { next: null, never: plan.never, sumMs: plan.sumMs + node.sumMs }
    if (first !== null && isWorse(this.#best, whole)) {
      this.#best = whole
      this.found = first
    }
    if (plan.never === 0) return
    // Keeping fewer calls sends more now, so that is tried first. Of equal plans the first one found is
    // taken.
    for (let kept = 0; kept <= auxiliaries.length; kept += 1) {
      const chosen = this.#fitting(mirror, atMs, auxiliaries.slice(kept))
      if (chosen.length === 0 && kept < auxiliaries.length) continue
      this.visit(this.#after(node, chosen))
    }
  }

  #fitting(mirror: Mirror, atMs: number, calls: ReadonlyArray<Call>): ReadonlyArray<Call> {
    const room = this.#rules.roomTokens(mirror, atMs)
    return pack(
      calls.map(({ inputTokens }) => inputTokens),
      room,
    ).map((index) => calls[index]!)
  }

  /** Sends the chosen calls, and lets time pass to the next change. Primaries go when they can. */
  #after(node: Node<Call>, chosen: ReadonlyArray<Call>): Node<Call> {
    let { mirror, sumMs, primaries } = node
    const sent: Call[] = []
    for (const call of chosen) {
      const taken = this.#rules.accept(mirror, call, node.atMs)
      if (taken === null) continue
      mirror = taken
      sent.push(call)
    }
    const auxiliaries = node.auxiliaries.filter((call) => !sent.includes(call))
    const nextAtMs = this.#nextChange(mirror, auxiliaries, node.atMs)
    for (;;) {
      const { next } = planPrimaries(this.#rules, mirror, primaries, node.atMs)
      if (next === null || next.atMs >= nextAtMs) break
      const taken = this.#rules.accept(this.#rules.advance(mirror, next.atMs), next.call, next.atMs)
      if (taken === null) break
      mirror = taken
      sumMs += next.atMs
      primaries = primaries.filter((call) => call !== next.call)
    }
    mirror = this.#rules.advance(mirror, nextAtMs)
    const first = node.first ?? { send: sent, nextAtMs }
    return { mirror, atMs: nextAtMs, primaries, auxiliaries, sumMs, first }
  }

  #nextChange(mirror: Mirror, auxiliaries: ReadonlyArray<Call>, atMs: number): number {
    let next = (Math.floor(atMs / minuteMs) + 1) * minuteMs
    for (const call of auxiliaries) {
      const fitsAt = this.#rules.acceptsAtMs(mirror, call, atMs)
      if (fitsAt !== null && fitsAt > atMs) next = Math.min(next, fitsAt)
    }
    return next
  }
}

/**
 * A plan that spends few auxiliaries so that primaries get in which would never get in by waiting. Null when
 * no tried plan is better than `plan`, which sends no auxiliary.
 */
export const lookAhead = <Call extends Load>(
  rules: MirrorRules,
  mirror: Mirror,
  waiting: { readonly primaries: ReadonlyArray<Call>; readonly auxiliaries: ReadonlyArray<Call> },
  plan: Planned<Call>,
  nowMs: number,
): LookAhead<Call> | null => {
  const search = new Search<Call>(rules, nowMs, plan)
  search.visit({ mirror, atMs: nowMs, ...waiting, sumMs: 0, first: null })
  return search.found
}
