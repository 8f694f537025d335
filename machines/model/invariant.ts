import type { ScopeEventType } from './event.ts'

/** The numbers of the rules that a scope always keeps, as the docs and tests use them. */
export type InvariantNumber = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7'

/**
 * A scope found that it broke one of its own rules. The scope decides nothing any more: from an impossible
 * state it could dispatch a call twice, or hold a call for ever. Other scopes run on.
 */
export class InvariantBroken extends Error {
  readonly _tag = 'InvariantBroken'
  readonly invariant: InvariantNumber
  readonly scope: string
  /** Type of the event that the scope worked on. */
  readonly event: ScopeEventType
  /** The fault, in words. */
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

/** A broken rule at the place that found it. That place knows neither the scope nor the event. */
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

/** Runs the work on an event. Throws `InvariantBroken` when the work reports a broken rule. */
export const checked = <Result>(scope: string, event: ScopeEventType, work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    throw error instanceof Finding ? new InvariantBroken(error.invariant, scope, event, error.message) : error
  }
}
