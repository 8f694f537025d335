/** Every plan on a coarse grid of times, for cases so small that all of them can be tried. */
import { allOf, type CompositeState, makeRule, type RuleSpec } from '../../src/emulator/index.ts'

export interface TinyCall {
  readonly lane: 'primary' | 'auxiliary'
  readonly atMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

export interface TinyCase {
  readonly rules: ReadonlyArray<RuleSpec>
  readonly calls: ReadonlyArray<TinyCall>
  readonly firstTokenMs: number
  readonly perOutputTokenMs: number
  readonly gridMs: number
  /** Calls are sent before this. */
  readonly horizonMs: number
}

export interface Achieved {
  readonly unserved: number
  /** Sum of the waits of the served primaries, ms. */
  readonly waitMs: number
  readonly auxiliaryTokens: number
}

/** Fewest unserved, then shortest waits, then most auxiliary tokens. */
export const isBetter = (one: Achieved, other: Achieved): boolean =>
  one.unserved !== other.unserved
    ? one.unserved < other.unserved
    : one.waitMs !== other.waitMs
      ? one.waitMs < other.waitMs
      : one.auxiliaryTokens > other.auxiliaryTokens

interface Running extends TinyCall {
  readonly endsAtMs: number
}

/** The best that any plan on the grid achieves. */
export const exhaustive = (tiny: TinyCase): Achieved => {
  const rules = allOf(tiny.rules.map((spec) => makeRule(spec)))
  let best: Achieved = { unserved: Number.POSITIVE_INFINITY, waitMs: 0, auxiliaryTokens: 0 }

  const finished = (state: CompositeState, running: ReadonlyArray<Running>, atMs: number) => {
    let after = state
    for (const { endsAtMs, inputTokens, outputTokens } of running) {
      if (endsAtMs > atMs) continue
      after = rules.complete(after, {
        atMs: endsAtMs,
        inputTokens,
        actualInputTokens: inputTokens,
        outputTokens,
        maxOutputTokens: null,
        failed: false,
      })
    }
    return { state: after, running: running.filter(({ endsAtMs }) => endsAtMs > atMs) }
  }

  const search = (
    atMs: number,
    from: number,
    left: ReadonlyArray<TinyCall>,
    state: CompositeState,
    running: ReadonlyArray<Running>,
    done: Achieved,
  ): void => {
    const primaries = left.filter(({ lane }) => lane === 'primary')
    if (left.length === 0 || atMs >= tiny.horizonMs) {
      const end = { ...done, unserved: primaries.length }
      if (isBetter(end, best)) best = end
      return
    }
    // Nothing that is still to come can make this plan better than the best.
    const pending = primaries.reduce((sum, call) => sum + Math.max(0, atMs - call.atMs), 0)
    if (best.unserved === 0 && done.waitMs + pending > best.waitMs) return
    for (let index = from; index < left.length; index += 1) {
      const call = left[index]!
      if (call.atMs > atMs) continue
      const answer = rules.check(state, {
        atMs,
        inputTokens: call.inputTokens,
        maxOutputTokens: null,
      })
      if (!answer.accepted) continue
      const endsAtMs = atMs + tiny.firstTokenMs + tiny.perOutputTokenMs * call.outputTokens
      const flying = [...running, { ...call, endsAtMs }].sort((one, other) => one.endsAtMs - other.endsAtMs)
      const primary = call.lane === 'primary'
      search(atMs, index, left.toSpliced(index, 1), answer.state, flying, {
        ...done,
        waitMs: done.waitMs + (primary ? atMs - call.atMs : 0),
        auxiliaryTokens: done.auxiliaryTokens + (primary ? 0 : call.inputTokens),
      })
    }
    const later = atMs + tiny.gridMs
    const over = finished(state, running, later)
    search(later, 0, left, over.state, over.running, done)
  }

  search(0, 0, tiny.calls, rules.initial(1), [], { unserved: 0, waitMs: 0, auxiliaryTokens: 0 })
  return best
}
