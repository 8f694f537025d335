/** The work on one event. */

import type { Decision } from '../model/decision.ts'
import type { ScopeContext } from './context.ts'
import type { Counters, Counts } from './counts.ts'

/**
 * A context under construction: one shallow copy per event. Its fields are replaced while the event is worked
 * on, and never changed in depth. No other code sees the draft before it is complete.
 */
export type Draft = Omit<
  { -readonly [Key in keyof ScopeContext]: ScopeContext[Key] },
  'counts' | 'counters'
> & {
  decisions: Decision[]
  /** The draft's own copies, counted in place. */
  readonly counts: { -readonly [Key in keyof Counts]: number }
  readonly counters: { -readonly [Key in keyof Counters]: number }
}

/** Begins the work on an event. */
export const draftOf = (context: ScopeContext, at: number): Draft => ({
  ...context,
  at: Math.max(context.at, at),
  counts: { ...context.counts },
  counters: { ...context.counters },
  decisions: [],
  summary: null,
})

/** Continues the work on the same event. */
export const continued = (context: ScopeContext): Draft => ({
  ...context,
  counts: { ...context.counts },
  counters: { ...context.counters },
  decisions: [...context.decisions],
})
