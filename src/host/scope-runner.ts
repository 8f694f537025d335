/**
 * Runs one scope's actor: stamps and journals every event, carries the decisions out once they
 * are durable, keeps the permits and the one timer.
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

/** What others may see of a scope: every event with its decisions, once durable. */
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
  /** Taken while somebody waits. */
  readonly hold: ProcessHold
  readonly observe: (observation: Observation) => void
  /** Whether anybody observes: most hosts have nobody who does. */
  readonly isObserved: () => boolean
  /** An entry was written; a checkpoint may be due. */
  readonly written: (runner: ScopeRunner, episodeEnded: boolean) => void
  /** Evidence that speaks of more than this scope. */
  readonly spread: (from: ScopeRunner, evidence: Evidence) => void
}

/** Events as they are told to a runner: it stamps the time. */
export type Unstamped<E> = E extends ScopeEvent ? Omit<E, 'at'> : never

export class ScopeRunner implements PermitOwner {
  readonly name: string
  readonly #ports: RunnerPorts
  readonly #actor: Actor<typeof providerScope>
  readonly #alarm: Alarm
  readonly #waiters = new Map<string, Waiter>()
  readonly #permits = new Map<string, Permit>()
  /** The call that is being settled: its owner learns from the settlement itself how that went. */
  #settling: string | null = null
  #failure: unknown = null
  /** Why the actor refused the event that it was sent just now. */
  #refusal: InvalidInput | null = null
  #refusing = false
  #closed = false
  /** Position of the newest entry, 0 before the first. */
  position = 0
  entriesSinceCheckpoint = 0
  /** Results and errors at which a reader of usage or evidence threw. */
  readerFailures = 0

  constructor(name: string, actor: Actor<typeof providerScope>, ports: RunnerPorts) {
    this.name = name
    this.#actor = actor
    this.#ports = ports
    this.#alarm = new Alarm(ports.clock, () => this.#wake())
    // A broken invariant stops the scope; without a listener XState would throw it at the process.
    actor.subscribe({ error: (error) => this.fail(error) })
    actor.on('refused', ({ error }) => {
      this.#refusal = error
    })
  }

  get context(): ScopeContext {
    return this.#actor.getSnapshot().context.scope
  }

  /** What the scope is doing, by the host's clock. */
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

  /** Permits that somebody holds and has not settled. */
  get openPermits(): number {
    return this.#permits.size
  }

  get hold(): ProcessHold {
    return this.#ports.hold
  }

  /** Why it takes no call, as the error of `callId`; null while it does. */
  stopped(callId: string): AdmissionError | null {
    if (this.#failure !== null) return scopeFailed(this.name, callId, this.#failure)
    return this.#refusing ? hostClosed(this.name, callId) : null
  }

  /** Asks for a permit. The waiter hears exactly once, unless it leaves first. */
  submit(call: Call, waiter: Waiter): void {
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

  /** `waiter` waits no longer: its call ends. A permit that is on its way to it is taken back; another owner's call is left alone. */
  leave(callId: string, waiter: Waiter, reason: unknown): void {
    if (this.#waiters.get(callId) !== waiter) return
    this.#waiters.delete(callId)
    const permit = this.#permits.get(callId)
    if (permit === undefined) this.tell({ type: 'call.withdrawn', callId })
    else {
      permit.leave(reason)
      permit.settle({ outcome: 'cancelled' })
    }
  }

  /** Its owner does not come back for a call that waits in its place for being asked for. */
  forsake(callId: string): void {
    if (!this.#isOwned(callId) && HashMap.has(this.context.waiting, callId))
      this.tell({ type: 'call.withdrawn', callId })
  }

  /** The permit was never used. Nothing reached the provider, so the call counts as withdrawn: its id may come again. */
  giveBack({ callId }: Permit): void {
    this.#permits.delete(callId)
    this.tell({ type: 'call.withdrawn', callId })
  }

  /** Somebody other than its owner takes the call away: its owner hears of it, on the permit's signal when it runs. */
  takeAway(callId: string): void {
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

  settle(permit: Permit, { outcome, usage, evidence: heard }: Settlement): Disposition {
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
    })
    // Bad numbers of its holder leave the permit as it was.
    checkEvent(event)
    this.#permits.delete(callId)
    this.#waiters.delete(callId)
    // Before the event, which may grant the next permit.
    if (stays !== null) this.#waiters.set(callId, stays)
    this.#settling = callId
    const position = this.#take(event)
    this.#settling = null
    if (heard !== undefined && evidence !== undefined && holdsOthers(evidence))
      this.#ports.spread(this, heard)
    // Its place may have come up again by the very event that returned it.
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

  /** What the owner does should the call go back to its place; left out where it does not, or waits on and says when it sends. */
  #stance(permit: Permit, outcome: Settlement['outcome'], stays: Waiter | null): OwnerStance | undefined {
    const mayReturn =
      outcome === 'throttled' || (outcome === 'cancelled' && this.#flight(permit.callId)?.preempted === true)
    if (!mayReturn) return undefined
    if (permit.isLeft) return 'left'
    if (stays === null) return 'away'
    return stays.dispatch === 'withGrant' ? 'sends' : undefined
  }

  settledTwice(callId: string): void {
    // The same call may run again under its next permit, which a late word must not settle.
    const isLate = HashMap.has(this.context.inFlight, callId)
    this.tell({ type: 'call.settled', callId, outcome: 'cancelled', ...(isLate ? { late: true } : {}) })
  }

  /** Evidence that another scope met and that holds this one too. */
  hear(evidence: Evidence): void {
    const held = evidence.holdMs === undefined ? withHold(evidence, this.context.policy) : evidence
    this.tell({ type: 'provider.evidence', evidence: held })
  }

  learn(limits: ReadonlyArray<LimitReading>): void {
    if (limits.length > 0) this.tell({ type: 'provider.evidence', limits })
  }

  changePolicy(policy: Policy): void {
    this.tell({ type: 'policy.changed', policy })
  }

  /**
   * Takes an event in. Answers its position in the journal, or null when the scope has stopped.
   * Throws `InvalidInput` for one that is not well-formed: nothing is written, and the scope goes on.
   */
  tell(fact: Unstamped<ScopeEvent>): number | null {
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

  /** Nothing is decided or dispatched any more: the journal cannot keep it. Work that runs is left alone. */
  fail(cause: unknown): void {
    if (this.#failure !== null) return
    this.#failure = cause
    this.#alarm.stop()
    this.#releaseWaiters((callId) => scopeFailed(this.name, callId, cause))
  }

  /** Takes no more calls and releases every waiter; the calls keep their places in the journal. */
  refuseWaiters(): void {
    if (!this.#refusing && this.#waiters.size > 0) {
      // Nobody sends them any more: the next host must not take them for sent.
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
    // A host that closes has released it; the next host takes the call up again.
    if (waiter === undefined) return
    const attempt = this.#flight(callId)?.attempts ?? 1
    const permit = new Permit(this.name, callId, attempt, this, waiter)
    this.#permits.set(callId, permit)
    this.#deliver(permit, waiter, grantedIn)
  }

  #deliver(permit: Permit, waiter: Waiter, grantedIn: number): void {
    const { callId } = permit
    // One that came back to its place may have been granted before its owner asked again.
    const isMissing = waiter.dispatch !== 'byOwner' && this.#flight(callId)?.stage === 'admitted'
    const position = isMissing ? this.tell({ type: 'call.dispatched', callId }) : grantedIn
    if (position === null) return
    this.#ports.outbox.after(position, () => {
      // Withdrawn, expired or failed while its entry was on the way to the disk.
      if (this.#waiters.get(callId) !== waiter || this.#permits.get(callId) !== permit) return
      this.#waiters.delete(callId)
      waiter.granted(permit)
    })
  }

  #wake(): number | null {
    if (this.#failure !== null || this.#closed) return null
    const due = wakeAt(this.context)
    // The clock of the core stands at its newest event; only a time that has come is worth an event.
    if (due === null || due > this.#ports.clock.now()) return due
    this.tell({ type: 'clock.woke' })
    return wakeAt(this.context)
  }
}

/** A scope's actor that goes on from what the scope knows. Started, so that it can be fed. */
export const startScope = (name: string, live = contextFrom(name)): Actor<typeof providerScope> => {
  const from: LiveScope = { status: 'active', live }
  // What the actor refuses is thrown to whoever told it.
  const logger = () => {}
  return createActor(providerScope, { input: { scope: name }, snapshot: from as never, logger }).start()
}
