import type { ScopeEventType } from './event.ts'

/** The rules that a scope keeps whatever happens to it, by the numbers of docs and tests. */
export type InvariantNumber = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7'

/**
 * A scope found that it broke one of its own rules. It decides nothing any more: going on from a
 * state that cannot be could dispatch a call twice, or hold one for ever. Other scopes run on.
 */
export class InvariantBroken extends Error {
  readonly _tag = 'InvariantBroken'
  readonly invariant: InvariantNumber
  readonly scope: string
  /** Type of the event that was worked on. */
  readonly event: ScopeEventType
  /** What was found. */
  readonly found: string

  constructor(invariant: InvariantNumber, scope: string, event: ScopeEventType, found: string) {
    super(`${invariant} is broken: scope ${scope}, at ${event}: ${found}`)
    this.name = 'InvariantBroken'
    this.invariant = invariant
    this.scope = scope
    this.event = event
    this.found = found
  }
}

/** A broken rule where it was found, which knows neither its scope nor the event yet. */
class Finding extends Error {
  readonly invariant: InvariantNumber
  constructor(invariant: InvariantNumber, found: string) {
    super(found)
    this.invariant = invariant
  }
}

/** Reports a broken rule. `checked` adds the scope and the event. */
export const broken = (invariant: InvariantNumber, found: string): never => {
  throw new Finding(invariant, found)
}

/** Does the work on an event. Throws `InvariantBroken` when it reports a broken rule. */
export const checked = <Result>(scope: string, event: ScopeEventType, work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    throw error instanceof Finding ? new InvariantBroken(error.invariant, scope, event, error.message) : error
  }
}
