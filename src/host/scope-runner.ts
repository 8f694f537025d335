/**
 * Runs one scope's actor: stamps and journals every event, carries the decisions out once they are durable,
 * and keeps the permits and the one timer.
 */
import { HashMap, Option } from 'effect'
import { type Actor, createActor } from 'xstate'
import {
  type Call,
  checkEvent,
  contextFrom,
  type Decision,
  type EpisodeSummary,
  type Evidence,
  type InFlight,
  type InvalidInput,
  type LimitReading,
  type LiveScope,
  type OwnerStance,
  type Policy,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'
import type { Clock } from '../clock.ts'
import { Alarm } from './alarm.ts'
import { providerLimits } from './door.ts'
import {
  type AdmissionError,
  duplicateCall,
  errorOf,
  hostClosed,
  preempted,
  scopeFailed,
  withdrawn,
} from './errors.ts'
import { holdsOthers, withHold } from './holding.ts'
import type { Outbox } from './outbox.ts'
import { type Disposition, Permit, type PermitOwner, type Settlement, type Waiter } from './permit.ts'
import type { ProcessHold } from './process-hold.ts'
import { recordText } from './record-text.ts'
import { scopeStatus } from './scope-facts.ts'
import type { ScopeStatus } from './status.ts'

/** One event of a scope with its decisions, published once durable. */
export interface Observation {
  readonly scope: string
  readonly position: number
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
  readonly episode: EpisodeSummary | null
}

export interface RunnerPorts {
  readonly clock: Clock
  readonly outbox: Outbox
  /** Taken while a caller waits. */
  readonly hold: ProcessHold
  readonly observe: (observation: Observation) => void
  /** Whether an observer is attached; most hosts have none. */
  readonly isObserved: () => boolean
  /** An entry was written; a checkpoint may be due. */
  readonly written: (runner: ScopeRunner, episodeEnded: boolean) => void
  /** Evidence that reaches beyond this scope. */
  readonly spread: (from: ScopeRunner, evidence: Evidence) => void
}

/** Events as a runner receives them: the runner stamps the time. */
export type Unstamped<E> = E extends ScopeEvent ? Omit<E, 'at'> : never

export class ScopeRunner implements PermitOwner {
  readonly name: string
  readonly #ports: RunnerPorts
  readonly #actor: Actor<typeof providerScope>
  readonly #alarm: Alarm
  readonly #waiters = new Map<string, Waiter>()
  readonly #permits = new Map<string, Permit>()
  /**
   * The id of the call that is being settled. Its owner gets the result from `settle`, so no decision about
   * it is delivered.
   */
  #settling: string | null = null
  #failure: unknown = null
  /** Why the actor refused the last event. */
  #refusal: InvalidInput | null = null
  #refusing = false
  #closed = false
  /** Position of the newest entry, 0 before the first. */
  position = 0
  entriesSinceCheckpoint = 0
  /** Position of the first entry that no durable checkpoint stands for; null when there is none. */
  uncoveredFrom: number | null = null
  /** Rises with every use: the least recently used leave memory first. */
  usedAt = 0
  /** Whoever goes on for it, once it has left memory. */
  #successor: (() => ScopeRunner) | null = null
  /** Results and errors whose reader of usage or evidence threw. */
  readerFailures = 0
  /** Values that a provider stated and that were out of range: brought into it, or left out. */
  correctedValues = 0

  constructor(name: string, actor: Actor<typeof providerScope>, ports: RunnerPorts) {
    this.name = name
    this.#actor = actor
    this.#ports = ports
    this.#alarm = new Alarm(ports.clock, () => this.#wake())
    // A broken invariant stops the scope. Without a listener XState would throw the error at the process.
    actor.subscribe({ error: (error) => this.fail(error) })
    actor.on('refused', ({ error }) => {
      this.#refusal = error
    })
  }

  get context(): ScopeContext {
    if (this.#successor !== null) return this.#successor().context
    return this.#actor.getSnapshot().context.scope
  }

  /** The scope's status by the host's clock. */
  get status(): ScopeStatus {
    return scopeStatus(this.context, this.#ports.clock.now())
  }

  get actor(): Actor<typeof providerScope> {
    return this.#actor
  }

  /** Calls that wait or run. */
  get liveCalls(): number {
    const { counts } = this.context
    return counts.primaryWaiting + counts.auxiliaryWaiting + counts.primaryInFlight + counts.auxiliaryInFlight
  }

  /** No call waits, runs or is due, and no permit or waiter is out: the snapshot holds the whole scope. */
  get isResting(): boolean {
    const isHeld = this.#permits.size > 0 || this.#waiters.size > 0
    return this.#failure === null && !isHeld && restsIn(this.context)
  }

  /**
   * The scope leaves memory: its journal has a checkpoint of its present state. `successor` serves callers
   * that still have this runner.
   */
  rest(successor: () => ScopeRunner): void {
    this.#alarm.stop()
    this.#actor.stop()
    this.#successor = successor
  }

  /** Permits that are handed out and not settled. */
  get openPermits(): number {
    return this.#permits.size
  }

  /** Why it has stopped; null while it runs. */
  get failure(): unknown {
    return this.#failure
  }

  get clock(): Clock {
    return this.#ports.clock
  }

  get hold(): ProcessHold {
    return this.#ports.hold
  }

  /** Why the scope takes no call, as the error of `callId`; null while it takes calls. */
  stopped(callId: string): AdmissionError | null {
    if (this.#successor !== null) return this.#successor().stopped(callId)
    if (this.#failure !== null) return scopeFailed(this.name, callId, this.#failure)
    return this.#refusing ? hostClosed(this.name, callId) : null
  }

  /** Asks for a permit. The waiter gets exactly one answer, unless it leaves first. */
  submit(call: Call, waiter: Waiter): void {
    if (this.#successor !== null) return this.#successor().submit(call, waiter)
    const stopped = this.stopped(call.id)
    if (stopped !== null) return waiter.refused(stopped)
    if (this.#isOwned(call.id)) return waiter.refused(duplicateCall(this.name, call.id))
    this.#waiters.set(call.id, waiter)
    this.tell(
      waiter.dispatch === 'withGrant'
        ? { type: 'call.submitted', call, dispatchAtOnce: true }
        : { type: 'call.submitted', call },
    )
  }

  #isOwned(callId: string): boolean {
    return this.#waiters.has(callId) || this.#permits.has(callId)
  }

  /**
   * Ends the call of `waiter`, which waits no longer. A permit on its way to `waiter` is taken back. Another
   * owner's call stays.
   */
  leave(callId: string, waiter: Waiter, reason: unknown): void {
    if (this.#successor !== null) return this.#successor().leave(callId, waiter, reason)
    if (this.#waiters.get(callId) !== waiter) return
    this.#waiters.delete(callId)
    const permit = this.#permits.get(callId)
    if (permit === undefined) this.tell({ type: 'call.withdrawn', callId })
    else {
      permit.leave(reason)
      permit.settle({ outcome: 'cancelled' })
    }
  }

  /** Ends a call that waits without an owner, because its owner does not come back. */
  forsake(callId: string): void {
    if (this.#successor !== null) return this.#successor().forsake(callId)
    if (!this.#isOwned(callId) && HashMap.has(this.context.waiting, callId))
      this.tell({ type: 'call.withdrawn', callId })
  }

  /**
   * The permit was never used. The provider got no request, so the call counts as withdrawn: its id may be
   * used again.
   */
  giveBack({ callId }: Permit): void {
    this.#permits.delete(callId)
    this.tell({ type: 'call.withdrawn', callId })
  }

  /**
   * Takes the call away on another party's request. The owner is told; when the call runs, by its permit's
   * signal.
   */
  takeAway(callId: string): void {
    if (this.#successor !== null) return this.#successor().takeAway(callId)
    const error = withdrawn(this.name, callId)
    const waiter = this.#waiters.get(callId)
    if (waiter !== undefined) {
      this.leave(callId, waiter, error)
      return waiter.refused(error)
    }
    const permit = this.#permits.get(callId)
    if (permit === undefined) this.forsake(callId)
    else permit.leave(error)
  }

  dispatched(callId: string): Promise<void> {
    if (this.#failure === null && this.#flight(callId)?.stage !== 'admitted') return Promise.resolve()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const position = this.tell({ type: 'call.dispatched', callId })
    if (position === null) reject(this.stopped(callId))
    else {
      this.#ports.outbox.after(position, resolve, (failure) =>
        reject(scopeFailed(this.name, callId, failure)),
      )
    }
    return promise
  }

  accepted(callId: string): void {
    this.tell({ type: 'call.accepted', callId })
  }

  settle(permit: Permit, { outcome, usage, evidence: heard, cause }: Settlement): Disposition {
    const evidence = heard === undefined ? undefined : withHold(heard, this.context.policy)
    const { callId, successor } = permit
    const stays = successor !== null && !this.#refusing ? successor : null
    const owner = this.#stance(permit, outcome, stays)
    const event = this.#stamped({
      type: 'call.settled',
      callId,
      outcome,
      ...(usage === undefined ? {} : { usage }),
      ...(evidence === undefined ? {} : { evidence }),
      ...(owner === undefined ? {} : { owner }),
      ...(cause === undefined ? {} : { cause }),
    })
    // Invalid numbers from the holder leave the permit unsettled.
    checkEvent(event)
    this.#permits.delete(callId)
    this.#waiters.delete(callId)
    // Set before the event, which may grant the next permit.
    if (stays !== null) this.#waiters.set(callId, stays)
    this.#settling = callId
    const position = this.#take(event)
    this.#settling = null
    if (heard !== undefined && evidence !== undefined && holdsOthers(evidence))
      this.#ports.spread(this, heard)
    // The event that returned the call to its place may have granted it again.
    const { waiting, inFlight } = this.context
    const lives = position !== null && (HashMap.has(waiting, callId) || HashMap.has(inFlight, callId))
    if (!lives) {
      this.#waiters.delete(callId)
      return 'ended'
    }
    if (successor !== null && stays === null) {
      const error = hostClosed(this.name, callId)
      const tell = () => successor.refused(error)
      this.#ports.outbox.after(position, tell, tell)
    }
    return 'waiting'
  }

  /**
   * The owner's plan if the call goes back to its place. Undefined when the call cannot go back, or when the
   * owner waits on and reports its dispatch.
   */
  #stance(permit: Permit, outcome: Settlement['outcome'], stays: Waiter | null): OwnerStance | undefined {
    const mayReturn =
      outcome === 'throttled' || (outcome === 'cancelled' && this.#flight(permit.callId)?.preempted === true)
    if (!mayReturn) return undefined
    if (permit.isLeft) return 'left'
    if (stays === null) return 'away'
    return stays.dispatch === 'withGrant' ? 'sends' : undefined
  }

  settledTwice(callId: string): void {
    // The same call may already run under its next permit, and a late settlement must not settle that one.
    const isLate = HashMap.has(this.context.inFlight, callId)
    this.tell({ type: 'call.settled', callId, outcome: 'cancelled', ...(isLate ? { late: true } : {}) })
  }

  /** Evidence that another scope met and that holds this one too. */
  hear(evidence: Evidence): void {
    const held = evidence.holdMs === undefined ? withHold(evidence, this.context.policy) : evidence
    this.tell({ type: 'provider.evidence', evidence: held })
  }

  /** Limits that a provider's headers show. Values out of range are corrected and counted. */
  learn(limits: ReadonlyArray<LimitReading>): void {
    const { value, corrections } = providerLimits(limits)
    this.correctedValues += corrections
    if (value.length > 0) this.tell({ type: 'provider.evidence', limits: value })
  }

  changePolicy(policy: Policy): void {
    this.tell({ type: 'policy.changed', policy })
  }

  /**
   * Sends an event to the actor. Returns its position in the journal, or null when the scope has stopped.
   * Throws `InvalidInput` for a malformed event: nothing is written, and the scope continues.
   */
  tell(fact: Unstamped<ScopeEvent>): number | null {
    if (this.#successor !== null) return this.#successor().tell(fact)
    return this.#take(this.#stamped(fact))
  }

  #stamped(fact: Unstamped<ScopeEvent>): ScopeEvent {
    return { ...fact, at: this.#ports.clock.now() } as ScopeEvent
  }

  #take(event: ScopeEvent): number | null {
    if (this.#failure !== null || this.#closed) return null
    this.#actor.send(event)
    if (this.#failure !== null) return null
    const refusal = this.#refusal
    this.#refusal = null
    if (refusal !== null) {
      if (event.type === 'call.submitted') this.#waiters.delete(event.call.id)
      throw refusal
    }
    const { decisions, summary: episode } = this.context
    try {
      const record = recordText(event, decisions)
      this.position = this.#ports.outbox.write({ scope: this.name, at: event.at, record })
    } catch (error) {
      this.fail(error)
      return null
    }
    this.entriesSinceCheckpoint += 1
    this.uncoveredFrom ??= this.position
    const { position } = this
    if (this.#ports.isObserved()) {
      const observation = { scope: this.name, position, event, decisions, episode }
      this.#ports.outbox.after(position, () => this.#ports.observe(observation))
    }
    for (const decision of decisions) this.#carryOut(decision, position)
    this.#alarm.set(wakeAt(this.context))
    this.#ports.written(this, episode !== null)
    return position
  }

  /** Stops deciding and dispatching, because the journal cannot record it. Running work is left alone. */
  fail(cause: unknown): void {
    if (this.#failure !== null) return
    this.#failure = cause
    this.#alarm.stop()
    this.#releaseWaiters((callId) => scopeFailed(this.name, callId, cause))
  }

  /** Refuses new calls and releases every waiter. The calls keep their places in the journal. */
  refuseWaiters(): void {
    if (!this.#refusing && this.#waiters.size > 0) {
      // These calls are no longer sent by anyone: the next host must not take them for sent.
      const unused = [...this.#waiters.keys()].filter((callId) => this.#permits.has(callId))
      this.tell({ type: 'host.closing', unused })
    }
    this.#refusing = true
    this.#releaseWaiters((callId) => hostClosed(this.name, callId))
  }

  /** Takes no more events. */
  close(): void {
    this.refuseWaiters()
    this.#closed = true
    this.#alarm.stop()
  }

  #releaseWaiters(error: (callId: string) => AdmissionError): void {
    const waiters = [...this.#waiters]
    this.#waiters.clear()
    for (const [callId, waiter] of waiters) {
      this.#permits.delete(callId)
      if (callId !== this.#settling) waiter.refused(error(callId))
    }
  }

  #carryOut(decision: Decision, position: number): void {
    const { callId } = decision
    switch (decision.verdict) {
      case 'admit':
      case 'release':
        return this.#grant(callId, position)
      case 'cancel':
        return this.#ports.outbox.after(position, () =>
          this.#permits.get(callId)?.abort(preempted(this.name, callId)),
        )
      case 'reject':
      case 'expire': {
        const permit = this.#permits.get(callId)
        this.#permits.delete(callId)
        const waiter = callId === this.#settling ? undefined : this.#waiters.get(callId)
        this.#waiters.delete(callId)
        const tell = (error: AdmissionError) => {
          permit?.revoke(error)
          waiter?.refused(error)
        }
        return this.#ports.outbox.after(
          position,
          () => tell(errorOf(this.name, decision)),
          (failure) => tell(scopeFailed(this.name, callId, failure)),
        )
      }
      case 'defer':
        return
    }
  }

  #flight(callId: string): InFlight | undefined {
    return Option.getOrUndefined(HashMap.get(this.context.inFlight, callId))
  }

  #grant(callId: string, grantedIn: number): void {
    const waiter = this.#waiters.get(callId)
    // A closing host has released the waiter; the next host takes the call up again.
    if (waiter === undefined) return
    const attempt = this.#flight(callId)?.attempts ?? 1
    const permit = new Permit(this.name, callId, attempt, this, waiter)
    this.#permits.set(callId, permit)
    this.#deliver(permit, waiter, grantedIn)
  }

  #deliver(permit: Permit, waiter: Waiter, grantedIn: number): void {
    const { callId } = permit
    // A call that came back to its place may have been granted before its owner asked again.
    const isMissing = waiter.dispatch !== 'byOwner' && this.#flight(callId)?.stage === 'admitted'
    const position = isMissing ? this.tell({ type: 'call.dispatched', callId }) : grantedIn
    if (position === null) return
    this.#ports.outbox.after(position, () => {
      // The call was withdrawn, expired or failed while its entry was on the way to the disk.
      if (this.#waiters.get(callId) !== waiter || this.#permits.get(callId) !== permit) return
      this.#waiters.delete(callId)
      waiter.granted(permit)
    })
  }

  #wake(): number | null {
    if (this.#failure !== null || this.#closed) return null
    const due = wakeAt(this.context)
    // The core's clock stands at its newest event. Only a time that has come needs an event.
    if (due === null || due > this.#ports.clock.now()) return due
    this.tell({ type: 'clock.woke' })
    return wakeAt(this.context)
  }
}

/** Whether nothing in a scope waits, runs or is due: what time alone still does to it, its next event finds done. */
export const restsIn = (context: ScopeContext): boolean =>
  HashMap.isEmpty(context.waiting) &&
  HashMap.isEmpty(context.inFlight) &&
  HashMap.isEmpty(context.turns) &&
  (context.state === 'idle' || context.state === 'settled')

/** A scope's actor that continues from a context. It is started, so that it accepts events. */
export const startScope = (name: string, live = contextFrom(name)): Actor<typeof providerScope> => {
  const from: LiveScope = { status: 'active', live }
  // The refusal is thrown to the sender of the event, so it is not logged as well.
  const logger = () => {}
  return createActor(providerScope, { input: { scope: name }, snapshot: from as never, logger }).start()
}
