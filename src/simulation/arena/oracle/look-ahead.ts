/**
 * Warming up with few auxiliaries. Sent all at once they may be used up before the ceiling has grown,
 * or before the minute that keeps a climb alive; so plans are tried that keep some for later.
 */
import type { Load, Mirror, MirrorRules } from './mirror.ts'
import { pack } from './packing.ts'
import { isWorse, type Planned, planPrimaries } from './plan.ts'

/** With more auxiliaries than this there is enough for every minute, and sending what fits is best. */
export const scarce = 8
/** Plans that are tried at most. */
const mostNodes = 240
/** How far ahead plans go, ms. */
const horizonMs = 15 * 60_000
const minuteMs = 60_000

export interface LookAhead<Call extends Load> {
  /** What to send now; the rest is kept. */
  readonly send: ReadonlyArray<Call>
  /** When the plan goes on. */
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
    // The fewer are kept the more is sent now, and of equal plans the first one found counts.
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

  /** Sends the chosen, and lets time pass to the next moment that changes something; primaries go when they can. */
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
 * How to spend few auxiliaries so that primaries which never get in by waiting do. Null when nothing
 * that was tried is better than `plan`, the plan without any of them.
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
