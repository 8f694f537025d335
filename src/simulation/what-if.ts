/**
 * Plays a scope's history again under another policy. Events from outside (calls, withdrawals, turns,
 * evidence of others) keep their times. The provider's events about a call keep their distance from the
 * call's grant.
 */
import { HashMap } from 'effect'
import {
  advance,
  contextFrom,
  type Decision,
  type PolicyInput,
  parsePolicy,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'
import type { Record } from '../host/read-record.ts'
import { Timeline } from './timeline.ts'

/** The decisions about one call, as a list of verdicts in order. */
export interface CallStory {
  readonly callId: string
  readonly was: ReadonlyArray<Decision>
  readonly would: ReadonlyArray<Decision>
}

/** The events after a grant, in milliseconds after it. */
interface Attempt {
  readonly followed: Array<{ readonly afterMs: number; readonly event: ScopeEvent; readonly place: number }>
  /**
   * When a primary took the call's place, ms after the grant: the call would have run longer. Null when no
   * primary did.
   */
  stoppedAfterMs: number | null
}

const granted: ReadonlySet<Decision['verdict']> = new Set(['admit', 'release'])
const followUps: ReadonlySet<ScopeEvent['type']> = new Set([
  'call.dispatched',
  'call.accepted',
  'call.settled',
])

/** How long the attempt ran, ms; null when it was stopped, or never ended. */
const ranFor = ({ followed, stoppedAfterMs }: Attempt): number | null =>
  stoppedAfterMs !== null
    ? null
    : (followed.find(({ event }) => event.type === 'call.settled')?.afterMs ?? null)

/** The duration of a call that never ran in the record: the median of the recorded ones, ms. */
const medianRun = (attempts: Iterable<ReadonlyArray<Attempt>>): number => {
  const times = [...attempts]
    .flat()
    .map(ranFor)
    .filter((ms) => ms !== null)
    .sort((one, other) => one - other)
  return times[times.length >> 1] ?? 1_000
}

const attemptsOf = (history: ReadonlyArray<Record>): ReadonlyMap<string, Attempt[]> => {
  const attempts = new Map<string, Attempt[]>()
  const grantedAt = new Map<string, number>()
  for (const [place, { event, decisions }] of history.entries()) {
    if (followUps.has(event.type) && 'callId' in event) {
      const since = grantedAt.get(event.callId)
      const attempt = attempts.get(event.callId)?.at(-1)
      if (since !== undefined) attempt?.followed.push({ afterMs: event.at - since, event, place })
    }
    for (const { callId, verdict, at } of decisions) {
      const attempt = attempts.get(callId)?.at(-1)
      if (verdict === 'cancel' && attempt !== undefined) {
        attempt.stoppedAfterMs ??= at - (grantedAt.get(callId) ?? at)
      }
      if (!granted.has(verdict)) continue
      grantedAt.set(callId, at)
      attempts.set(callId, [...(attempts.get(callId) ?? []), { followed: [], stoppedAfterMs: null }])
    }
  }
  return attempts
}

class Alternative {
  #context: ScopeContext
  readonly #timeline = new Timeline()
  readonly #policy: PolicyInput
  readonly #history: ReadonlyArray<Record>
  readonly #attempts: ReadonlyMap<string, Attempt[]>
  readonly #medianMs: number
  readonly #used = new Map<string, number>()
  readonly decisions: Decision[] = []
  /** Until a decision differs, the recorded wake-ups are the right ones. */
  #differs = false

  constructor(scope: string, history: ReadonlyArray<Record>, policy: PolicyInput, snapshot?: unknown) {
    this.#context = contextFrom(scope, snapshot)
    this.#policy = policy
    this.#history = history
    this.#attempts = attemptsOf(history)
    this.#medianMs = medianRun(this.#attempts.values())
  }

  play(): ReadonlyArray<Decision> {
    const firstAt = this.#history[0]?.event.at ?? 0
    const lastAt = this.#history.at(-1)?.event.at ?? 0
    const base = this.#context.policy
    const changed = parsePolicy(this.#policy, base)
    if (JSON.stringify(changed) !== JSON.stringify(base)) {
      this.#feed({ type: 'policy.changed', at: firstAt, policy: changed }, null)
    }
    for (const [place, record] of this.#history.entries()) {
      if (!followUps.has(record.event.type))
        this.#at(record.event.at, place, () => this.#external(place, record))
    }
    for (let next = this.#timeline.nextAt(); next !== null && next <= lastAt + 1; ) {
      const wake = this.#differs ? wakeAt(this.#context) : null
      if (wake !== null && wake < next) this.#feed({ type: 'clock.woke', at: wake }, null)
      else this.#timeline.step()
      next = this.#timeline.nextAt()
    }
    return this.decisions
  }

  /** In order of time, then of the record. */
  #at(atMs: number, place: number, work: () => void): void {
    this.#timeline.at(atMs + place / (this.#history.length + 1), work)
  }

  #external(place: number, { event }: Record): void {
    if (event.type !== 'policy.changed') return this.#feed(event, place)
    this.#feed({ ...event, policy: parsePolicy(this.#policy, event.policy) }, place)
  }

  #feed(event: ScopeEvent, place: number | null): void {
    this.#context = advance(this.#context, event)
    const { decisions } = this.#context
    this.decisions.push(...decisions)
    const recorded = place === null ? [] : this.#history[place]!.decisions
    this.#differs ||= JSON.stringify(recorded) !== JSON.stringify(decisions)
    for (const { callId, verdict, at, dispatched = false } of decisions) {
      if (granted.has(verdict)) this.#follow(callId, at, place, dispatched)
      if (verdict === 'cancel') this.#stop(callId, at, place)
    }
  }

  /** Plays the events after the call's grant. */
  #follow(callId: string, at: number, place: number | null, dispatched: boolean): void {
    const attempts = this.#attempts.get(callId) ?? []
    const nth = this.#used.get(callId) ?? 0
    this.#used.set(callId, nth + 1)
    const attempt = attempts[nth]
    const later = (place ?? 0) + 1
    if (attempt === undefined && !dispatched)
      this.#at(at, later, () => this.#feed({ type: 'call.dispatched', at, callId }, null))
    for (const { afterMs, event, place: then } of attempt?.followed ?? []) {
      this.#at(at + afterMs, then, () => {
        // The record stopped this call for a primary that does not stop it now.
        if (attempt?.stoppedAfterMs != null && event.type === 'call.settled' && !this.#isPreempted(callId))
          return
        this.#feed({ ...event, at: at + afterMs } as ScopeEvent, then)
      })
    }
    if (attempt !== undefined && attempt.stoppedAfterMs === null) return
    const known = attempts.map(ranFor).findLast((ms) => ms !== null) ?? this.#medianMs
    const ranMs = Math.max(known, (attempt?.stoppedAfterMs ?? 0) + 1)
    this.#at(at + ranMs, later, () => {
      if (this.#used.get(callId) === nth + 1 && !this.#isPreempted(callId))
        this.#settle(callId, at + ranMs, 'completed')
    })
  }

  /** Stops a call that only this policy preempts: it stops at once. */
  #stop(callId: string, at: number, place: number | null): void {
    const attempt = this.#attempts.get(callId)?.[(this.#used.get(callId) ?? 1) - 1]
    if (attempt?.stoppedAfterMs == null)
      this.#at(at, (place ?? 0) + 1, () => this.#settle(callId, at, 'cancelled'))
  }

  #isPreempted(callId: string): boolean {
    const { inFlight } = this.#context
    return HashMap.has(inFlight, callId) && HashMap.getUnsafe(inFlight, callId).preempted
  }

  #settle(callId: string, at: number, outcome: 'completed' | 'cancelled'): void {
    if (HashMap.has(this.#context.inFlight, callId))
      this.#feed({ type: 'call.settled', at, callId, outcome }, null)
  }
}

const byCall = (decisions: ReadonlyArray<Decision>): Map<string, Decision[]> =>
  Map.groupBy(decisions, ({ callId }) => callId)

const same = (one: ReadonlyArray<Decision>, other: ReadonlyArray<Decision>): boolean =>
  one.length === other.length &&
  one.every(({ verdict, reason, at }, index) => {
    const twin = other[index]!
    return verdict === twin.verdict && reason === twin.reason && at === twin.at
  })

/**
 * Plays `history` (one scope's, in order, from `snapshot` or from the start) under its own policy with
 * `policy` laid over it. Returns the calls with different decisions, in the order in which the differences
 * began. Empty when no decision differs.
 */
export const whatIf = (
  scope: string,
  history: ReadonlyArray<Record>,
  policy: PolicyInput,
  snapshot?: unknown,
): ReadonlyArray<CallStory> => {
  const would = byCall(new Alternative(scope, history, policy, snapshot).play())
  const was = byCall(history.flatMap(({ decisions }) => decisions))
  const ids = new Set([...was.keys(), ...would.keys()])
  return [...ids]
    .map((callId) => ({ callId, was: was.get(callId) ?? [], would: would.get(callId) ?? [] }))
    .filter((story) => !same(story.was, story.would))
    .sort((one, other) => firstAt(one) - firstAt(other))
}

const firstAt = ({ was, would }: CallStory): number => {
  const at = was.findIndex((decision, index) => !same([decision], would.slice(index, index + 1)))
  const index = at === -1 ? was.length : at
  return Math.min(was[index]?.at ?? Number.POSITIVE_INFINITY, would[index]?.at ?? Number.POSITIVE_INFINITY)
}
