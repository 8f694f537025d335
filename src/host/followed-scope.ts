/**
 * A scope whose record and this version differ: an older version decided otherwise. What was recorded is what was
 * done, so every call stands where the record has it. What the scope has learned follows from the events.
 */
import { HashMap } from 'effect'
import { advance, type Decision, type ScopeContext, type ScopeEvent } from '../../machines/index.ts'
import { withStandings } from '../../machines/snapshot/standing.ts'
import type { Record } from './read-record.ts'
import { RecordedCalls } from './recorded-calls.ts'

/** Putting all calls where the record has them costs as much as so many entries for each of them. */
const entriesPerCall = 1 / 16

export class FollowedScope {
  #context: ScopeContext
  readonly #calls: RecordedCalls
  /** Calls that may stand elsewhere in `#context` than by the record. */
  readonly #astray = new Set<string>()
  #entriesSince = Number.POSITIVE_INFINITY

  /** Begins at the last state on which record and version agree. */
  constructor(agreed: ScopeContext) {
    this.#context = agreed
    this.#calls = new RecordedCalls(agreed)
  }

  /** The scope with its calls where the record has them. */
  get context(): ScopeContext {
    if (this.#astray.size > 0) this.#align()
    return this.#context
  }

  /** Takes the next entry; answers what this version would have decided. Throws `RecordContradicts`. */
  take({ event, decisions: was }: Record): ReadonlyArray<Decision> {
    if (this.#concernsAstray(event) && this.#mayAlign()) this.#align()
    this.#calls.take(event, was, this.#context)
    const is = this.#advance(event)
    for (const id of touched(event, was, is)) if (this.#isAstray(id, was, is)) this.#astray.add(id)
    this.#entriesSince += 1
    return is
  }

  /** An event that does not fit where this version has its calls tells it nothing. */
  #advance(event: ScopeEvent): ReadonlyArray<Decision> {
    try {
      this.#context = advance(this.#context, event)
      return this.#context.decisions
    } catch {
      return []
    }
  }

  #concernsAstray(event: ScopeEvent): boolean {
    if (event.type === 'host.recovered') return this.#astray.size > 0
    const id = idOf(event)
    return id !== null && this.#astray.has(id)
  }

  #mayAlign(): boolean {
    const { waiting, inFlight, ended } = this.#calls
    return this.#entriesSince >= (waiting.size + inFlight.size + ended.size) * entriesPerCall
  }

  #align(): void {
    this.#context = withStandings(this.#context, this.#calls)
    this.#astray.clear()
    this.#calls.ended.clear()
    this.#entriesSince = 0
  }

  #isAstray(id: string, was: ReadonlyArray<Decision>, is: ReadonlyArray<Decision>): boolean {
    const { waiting, inFlight } = this.#context
    return (
      this.#calls.waiting.has(id) !== HashMap.has(waiting, id) ||
      this.#calls.inFlight.has(id) !== HashMap.has(inFlight, id) ||
      movesOf(id, was) !== movesOf(id, is)
    )
  }
}

const idOf = (event: ScopeEvent): string | null =>
  event.type === 'call.submitted' ? event.call.id : 'callId' in event ? event.callId : null

const touched = (
  event: ScopeEvent,
  was: ReadonlyArray<Decision>,
  is: ReadonlyArray<Decision>,
): ReadonlySet<string> => {
  const ids = new Set([...was, ...is].map(({ callId }) => callId))
  const own = idOf(event)
  return own === null ? ids : ids.add(own)
}

/** Where decisions move a call: reasons and times move nothing. */
const movesOf = (id: string, decisions: ReadonlyArray<Decision>): string =>
  decisions
    .filter(({ callId }) => callId === id)
    .map(({ verdict, dispatched }) => `${verdict}${dispatched === true ? ' and sent' : ''}`)
    .join(', ')
