/** A scope's actor with the words of a gate: which calls land, which wait, and the effects of a moment. */
import { HashMap } from 'effect'
import { type Actor, createActor } from 'xstate'
import {
  type Call,
  type Decision,
  laneOfClass,
  type Policy,
  type PriorityClass,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'

type Unstamped<E> = E extends ScopeEvent ? Omit<E, 'at'> : never

export class Gate {
  readonly #actor: Actor<typeof providerScope>
  #count = 0
  at = 1_000_000

  constructor(policy: Policy) {
    this.#actor = createActor(providerScope, { input: { scope: 'gate', policy, at: this.at } }).start()
  }

  get context(): ScopeContext {
    return this.#actor.getSnapshot().context.scope
  }

  /** When the gate wants to be told the time, milliseconds from now; null when only an event changes anything. */
  get wakesInMs(): number | null {
    const due = wakeAt(this.context)
    return due === null ? null : due - this.at
  }

  tell(event: Unstamped<ScopeEvent>): void {
    this.#actor.send({ ...event, at: this.at } as ScopeEvent)
  }

  /** Asks for a place; answers the call's id. */
  ask(priorityClass: PriorityClass, over: Partial<Call> = {}): string {
    this.#count += 1
    const id = over.id ?? `${priorityClass}-${this.#count}`
    const call: Call = {
      id,
      turnId: null,
      lane: laneOfClass(priorityClass),
      priorityClass,
      principal: 'default',
      inputTokens: 0,
      outputTokens: 0,
      deadlineAt: null,
      dependsOn: [],
      parentId: null,
      ...over,
    }
    this.tell({ type: 'call.submitted', call })
    return id
  }

  /** Whether a call of this class lands at once. It stays. */
  lands(priorityClass: PriorityClass, over: Partial<Call> = {}): boolean {
    return this.holds(this.ask(priorityClass, over))
  }

  /** Asks `count` times; answers how many landed. */
  flood(count: number, priorityClass: PriorityClass = 'background_ingestion', principal = 'default'): number {
    let landed = 0
    for (let call = 0; call < count; call++) landed += this.lands(priorityClass, { principal }) ? 1 : 0
    return landed
  }

  /** Longer than any deferral. By then the waiting background is owed quanta, and they must take no reserved place. */
  outlivesDeferrals(): void {
    this.passes(3 * this.context.policy.maxDeferralMs)
  }

  holds(id: string): boolean {
    return HashMap.has(this.context.inFlight, id)
  }

  waits(id: string): boolean {
    return HashMap.has(this.context.waiting, id)
  }

  /** Why the newest call waits. */
  get lastReason(): Decision['reason'] | null {
    const decision = this.context.decisions.at(-1)
    return decision?.verdict === 'defer' ? decision.reason : null
  }

  /** In flight, in order of their grants. */
  get inFlight(): ReadonlyArray<string> {
    return [...HashMap.values(this.context.inFlight)]
      .sort((one, other) => one.grantedAt - other.grantedAt || one.seq - other.seq)
      .map(({ call }) => call.id)
  }

  inFlightOf(priorityClass: PriorityClass): number {
    return [...HashMap.values(this.context.inFlight)].filter(
      ({ call }) => call.priorityClass === priorityClass,
    ).length
  }

  leaves(id: string): void {
    this.tell({ type: 'call.settled', callId: id, outcome: 'completed' })
  }

  withdraws(id: string): void {
    this.tell({ type: 'call.withdrawn', callId: id })
  }

  /** Lets time pass, waking the gate whenever it wanted to be woken. */
  passes(ms: number): void {
    const endMs = this.at + ms
    for (let due = wakeAt(this.context); due !== null && due <= endMs; due = wakeAt(this.context)) {
      if (due <= this.at && due <= this.context.at) break
      this.at = Math.max(this.at, due)
      this.tell({ type: 'clock.woke' })
    }
    this.at = endMs
  }
}
