/**
 * Runs one scope for its host: takes calls, gives permits and takes them back, and hears of evidence, limits
 * and policies.
 */
import { HashMap, Option } from 'effect'
import {
  type Call,
  checkEvent,
  type Evidence,
  type InFlight,
  type LimitReading,
  type OwnerStance,
  type Policy,
  type ScopeContext,
  type ScopeEvent,
} from '../../machines/index.ts'
import type { Clock } from '../clock.ts'
import { CallOwners } from './call-owners.ts'
import { providerLimits } from './door.ts'
import { type AdmissionError, duplicateCall, hostClosed, scopeFailed, withdrawn } from './errors.ts'
import { holdsOthers, withHold } from './holding.ts'
import type { Disposition, Permit, PermitOwner, Settlement, Waiter } from './permit.ts'
import type { ProcessHold } from './process-hold.ts'
import { restsIn, type ScopeActor } from './scope-actor.ts'
import { scopeStatus } from './scope-facts.ts'
import { type RecordPorts, ScopeRecord, type Unstamped } from './scope-record.ts'
import type { ScopeStatus } from './status.ts'

export interface RunnerPorts extends RecordPorts {
  /** Taken while a caller waits. */
  readonly hold: ProcessHold
  /** An entry was written; a checkpoint may be due. */
  readonly written: (runner: ScopeRunner, episodeEnded: boolean) => void
  /** The scope has stopped. */
  readonly failed: (runner: ScopeRunner, cause: unknown) => void
  /** Evidence that reaches beyond this scope. */
  readonly spread: (from: ScopeRunner, evidence: Evidence) => void
}

export class ScopeRunner implements PermitOwner {
  readonly name: string
  readonly #ports: RunnerPorts
  /** The scope's actor, and its place in the journal. */
  readonly record: ScopeRecord
  readonly #owners: CallOwners
  #refusing = false
  /** Rises with every use: the least recently used leave memory first. */
  usedAt = 0
  /** The runner that goes on for this one, once it has left memory. */
  #successor: (() => ScopeRunner) | null = null
  /** Results and errors whose reader of usage or evidence threw. */
  readerFailures = 0
  /** Values that a provider stated and that were out of range: brought into it, or left out. */
  correctedValues = 0

  constructor(name: string, actor: ScopeActor, ports: RunnerPorts) {
    this.name = name
    this.#ports = ports
    this.#owners = new CallOwners({
      holder: this,
      name,
      outbox: ports.outbox,
      flight: (callId) => this.#flight(callId),
      recordDispatch: (callId) => this.tell({ type: 'call.dispatched', callId }),
    })
    this.record = new ScopeRecord(name, actor, ports, {
      refused: (event) => {
        if (event.type === 'call.submitted') this.#owners.waiters.delete(event.call.id)
      },
      decided: (decision, position) => this.#owners.carryOut(decision, position),
      written: (episodeEnded) => ports.written(this, episodeEnded),
      failed: (cause) => {
        this.#owners.releaseWaiters((callId) => scopeFailed(name, callId, cause))
        ports.failed(this, cause)
      },
    })
  }

  get context(): ScopeContext {
    if (this.#successor !== null) return this.#successor().context
    return this.record.context
  }

  /** Position of the newest entry in the journal, 0 before the first. */
  get position(): number {
    return this.record.position
  }

  /** The scope's status by the host's clock. */
  get status(): ScopeStatus {
    return scopeStatus(this.context, this.#ports.clock.now())
  }

  /** Calls that wait or run. */
  get liveCalls(): number {
    const { counts } = this.context
    return counts.primaryWaiting + counts.auxiliaryWaiting + counts.primaryInFlight + counts.auxiliaryInFlight
  }

  /** No call waits, runs or is due, and no permit or waiter is out: the snapshot holds the whole scope. */
  get isResting(): boolean {
    return this.failure === null && this.#owners.isEmpty && restsIn(this.context)
  }

  /**
   * The scope leaves memory: its journal has a checkpoint of its present state. `successor` serves callers
   * that still have this runner.
   */
  rest(successor: () => ScopeRunner): void {
    this.record.rest()
    this.#successor = successor
  }

  /** Permits that are handed out and not settled. */
  get openPermits(): number {
    return this.#owners.permits.size
  }

  /** Why it has stopped; null while it runs. */
  get failure(): unknown {
    return this.record.failure
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
    if (this.failure !== null) return scopeFailed(this.name, callId, this.failure)
    return this.#refusing ? hostClosed(this.name, callId) : null
  }

  /** Asks for a permit. The waiter gets exactly one answer, unless it leaves first. */
  submit(call: Call, waiter: Waiter): void {
    if (this.#successor !== null) return this.#successor().submit(call, waiter)
    const stopped = this.stopped(call.id)
    if (stopped !== null) return waiter.refused(stopped)
    if (this.#owners.has(call.id)) return waiter.refused(duplicateCall(this.name, call.id))
    this.#owners.waiters.set(call.id, waiter)
    this.tell(
      waiter.dispatch === 'withGrant'
        ? { type: 'call.submitted', call, dispatchAtOnce: true }
        : { type: 'call.submitted', call },
    )
  }

  /**
   * Ends the call of `waiter`, which waits no longer. A permit on its way to `waiter` is taken back. Another
   * owner's call stays.
   */
  leave(callId: string, waiter: Waiter, reason: unknown): void {
    if (this.#successor !== null) return this.#successor().leave(callId, waiter, reason)
    if (this.#owners.waiters.get(callId) !== waiter) return
    this.#owners.waiters.delete(callId)
    const permit = this.#owners.permits.get(callId)
    if (permit === undefined) this.tell({ type: 'call.withdrawn', callId })
    else {
      permit.leave(reason)
      permit.settle({ outcome: 'cancelled' })
    }
  }

  /** Ends a call that waits without an owner, because its owner does not come back. */
  forsake(callId: string): void {
    if (this.#successor !== null) return this.#successor().forsake(callId)
    if (!this.#owners.has(callId) && HashMap.has(this.context.waiting, callId))
      this.tell({ type: 'call.withdrawn', callId })
  }

  /**
   * The permit was never used. The provider got no request, so the call counts as withdrawn: its id may be
   * used again.
   */
  giveBack({ callId }: Permit): void {
    this.#owners.permits.delete(callId)
    this.tell({ type: 'call.withdrawn', callId })
  }

  /**
   * Takes the call away on another party's request. The owner is told; when the call runs, by its permit's
   * signal.
   */
  takeAway(callId: string): void {
    if (this.#successor !== null) return this.#successor().takeAway(callId)
    const error = withdrawn(this.name, callId)
    const waiter = this.#owners.waiters.get(callId)
    if (waiter !== undefined) {
      this.leave(callId, waiter, error)
      return waiter.refused(error)
    }
    const permit = this.#owners.permits.get(callId)
    if (permit === undefined) this.forsake(callId)
    else permit.leave(error)
  }

  dispatched(callId: string): Promise<void> {
    if (this.failure === null && this.#flight(callId)?.stage !== 'admitted') return Promise.resolve()
    const position = this.tell({ type: 'call.dispatched', callId })
    if (position === null) return Promise.reject(this.stopped(callId))
    return new Promise((resolve, reject) => {
      const failed = (failure: unknown) => reject(scopeFailed(this.name, callId, failure))
      this.#ports.outbox.after(position, resolve, failed)
    })
  }

  accepted(callId: string): void {
    this.tell({ type: 'call.accepted', callId })
  }

  settle(permit: Permit, { outcome, usage, evidence: heard, cause }: Settlement): Disposition {
    const evidence = heard === undefined ? undefined : withHold(heard, this.context.policy)
    const { callId, successor } = permit
    const stays = successor !== null && !this.#refusing ? successor : null
    const owner = this.#stance(permit, outcome, stays)
    const event = this.record.stamped({
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
    this.#owners.permits.delete(callId)
    this.#owners.waiters.delete(callId)
    // Set before the event, which may grant the next permit.
    if (stays !== null) this.#owners.waiters.set(callId, stays)
    this.#owners.settling = callId
    const position = this.record.take(event)
    this.#owners.settling = null
    if (heard !== undefined && evidence !== undefined && holdsOthers(evidence))
      this.#ports.spread(this, heard)
    // The event that returned the call to its place may have granted it again.
    const { waiting, inFlight } = this.context
    const lives = position !== null && (HashMap.has(waiting, callId) || HashMap.has(inFlight, callId))
    if (!lives) {
      this.#owners.waiters.delete(callId)
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
    return this.record.take(this.record.stamped(fact))
  }

  /** Stops deciding and dispatching, because the journal cannot record it. Running work is left alone. */
  fail(cause: unknown): void {
    this.record.fail(cause)
  }

  /** Refuses new calls and releases every waiter. The calls keep their places in the journal. */
  refuseWaiters(): void {
    if (!this.#refusing && this.#owners.waiters.size > 0) {
      // The owners of these calls will not send them: the next host must not take the calls for sent.
      this.tell({ type: 'host.closing', unused: this.#owners.unusedGrants })
    }
    this.#refusing = true
    this.#owners.releaseWaiters((callId) => hostClosed(this.name, callId))
  }

  /** Takes no more events. */
  close(): void {
    this.refuseWaiters()
    this.record.close()
  }

  #flight(callId: string): InFlight | undefined {
    return Option.getOrUndefined(HashMap.get(this.context.inFlight, callId))
  }
}
