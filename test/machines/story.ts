/** One scope's actor: it takes events in the words of a story, and returns its decisions. */
import { HashMap } from 'effect'
import { type Actor, createActor } from 'xstate'
import {
  type Call,
  type Decision,
  type EpisodeSummary,
  type Evidence,
  type EvidenceKind,
  type Outcome,
  type PolicyInput,
  parsePolicy,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  type Usage,
  waitReason,
  wakeAt,
} from '../../machines/index.ts'

type Unstamped<E> = E extends ScopeEvent ? Omit<E, 'at'> : never

/** A decision as it is written in a table: `admit a: open`. */
export const shown = ({ verdict, callId, reason }: Decision): string => `${verdict} ${callId}: ${reason}`

/** A refusal by the provider. */
export const refusalOf = (kind: EvidenceKind, over: Partial<Evidence> = {}): Evidence => ({
  kind,
  scope: 'model',
  retryAfterMs: null,
  retryable: true,
  facts: {},
  ...over,
})

/** A call that says nothing of itself but its id. */
export const blankCall: Call = {
  id: 'a',
  turnId: null,
  lane: 'auxiliary',
  priorityClass: 'background_ingestion',
  principal: 'a',
  inputTokens: 0,
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
}

export class Story {
  readonly actor: Actor<typeof providerScope>
  readonly episodes: EpisodeSummary[] = []
  at = 1_000_000

  constructor(policy: PolicyInput = {}, snapshot?: unknown) {
    const input = { scope: 'test', policy, at: this.at }
    this.actor =
      snapshot === undefined
        ? createActor(providerScope, { input })
        : createActor(providerScope, { input, snapshot: snapshot as never })
    this.actor.on('decided', ({ episode }) => {
      if (episode !== null) this.episodes.push(episode)
    })
    this.actor.start()
    this.at = this.context.at
  }

  /** The same scope after its process ended and another took its journal up. */
  restarted(): Story {
    return new Story({}, JSON.parse(JSON.stringify(this.actor.getPersistedSnapshot())))
  }

  get context(): ScopeContext {
    return this.actor.getSnapshot().context.scope
  }

  get state(): ScopeContext['state'] {
    return this.context.state
  }

  /** The decisions of the newest event. */
  get decided(): ReadonlyArray<string> {
    return this.context.decisions.map(shown)
  }

  /** Ids in flight, by their places. */
  get running(): ReadonlyArray<string> {
    return [...HashMap.values(this.context.inFlight)]
      .sort((one, other) => one.seq - other.seq)
      .map(({ call }) => call.id)
  }

  get waiting(): ReadonlyArray<string> {
    return [...HashMap.values(this.context.waiting)]
      .sort((one, other) => one.seq - other.seq)
      .map(({ call }) => call.id)
  }

  /** Why a call waits now; null when it does not. */
  reasonOf(id: string): string | null {
    const waiting = [...HashMap.values(this.context.waiting)].find(({ call }) => call.id === id)
    return waiting === undefined ? null : waitReason(this.context, waiting).reason
  }

  tell(event: Unstamped<ScopeEvent>): ReadonlyArray<string> {
    this.actor.send({ ...event, at: this.at } as ScopeEvent)
    return this.decided
  }

  submit(call: Partial<Call>): ReadonlyArray<string> {
    return this.tell({ type: 'call.submitted', call: { ...blankCall, ...call } })
  }

  auxiliary(id: string, over: Partial<Call> = {}): ReadonlyArray<string> {
    return this.submit({ id, ...over })
  }

  primary(id: string, over: Partial<Call> = {}): ReadonlyArray<string> {
    return this.submit({ id, lane: 'primary', priorityClass: 'interactive', ...over })
  }

  settle(callId: string, outcome: Outcome = 'completed', usage?: Usage): ReadonlyArray<string> {
    return this.tell({ type: 'call.settled', callId, outcome, ...(usage === undefined ? {} : { usage }) })
  }

  refuse(callId: string, evidence: Evidence = refusalOf('overloaded')): ReadonlyArray<string> {
    return this.tell({ type: 'call.settled', callId, outcome: 'throttled', evidence })
  }

  accept(callId: string): ReadonlyArray<string> {
    return this.tell({ type: 'call.accepted', callId })
  }

  dispatch(callId: string): ReadonlyArray<string> {
    return this.tell({ type: 'call.dispatched', callId })
  }

  withdraw(callId: string): ReadonlyArray<string> {
    return this.tell({ type: 'call.withdrawn', callId })
  }

  change(policy: PolicyInput): ReadonlyArray<string> {
    return this.tell({ type: 'policy.changed', policy: parsePolicy(policy, this.context.policy) })
  }

  /** Milliseconds until the scope wants to be told the time; null when only an event changes anything. */
  get wakesInMs(): number | null {
    const due = wakeAt(this.context)
    return due === null ? null : due - this.at
  }

  /** Lets time pass, waking the scope whenever it asked to be; answers everything that was decided on the way. */
  pass(ms: number): ReadonlyArray<string> {
    const endMs = this.at + ms
    const decided: string[] = []
    for (let due = wakeAt(this.context); due !== null && due <= endMs; due = wakeAt(this.context)) {
      this.at = Math.max(this.at, due)
      decided.push(...this.tell({ type: 'clock.woke' }))
    }
    this.at = endMs
    return decided
  }
}
