/**
 * The owners of a scope's calls: those that wait for a permit, and the permits that are handed out. The
 * scope's decisions are delivered to them once they are durable.
 */
import type { Decision, InFlight } from '../../machines/index.ts'
import { type AdmissionError, errorOf, preempted, scopeFailed } from './errors.ts'
import type { Outbox } from './outbox.ts'
import { Permit, type PermitOwner, type Waiter } from './permit.ts'

/** The parts of a scope that its owners need. */
export interface OwnersScope {
  /** Every permit reports to it. */
  readonly holder: PermitOwner
  readonly name: string
  readonly outbox: Outbox
  readonly flight: (callId: string) => InFlight | undefined
  /** Records that the call is dispatched. Returns the entry's position, or null when the scope has stopped. */
  readonly recordDispatch: (callId: string) => number | null
}

export class CallOwners {
  readonly waiters = new Map<string, Waiter>()
  readonly permits = new Map<string, Permit>()
  /**
   * The id of the call that is being settled. Its owner gets the result from `settle`, so no decision about
   * it is delivered.
   */
  settling: string | null = null
  readonly #scope: OwnersScope

  constructor(scope: OwnersScope) {
    this.#scope = scope
  }

  /** Some owner waits for the call or runs it. */
  has(callId: string): boolean {
    return this.waiters.has(callId) || this.permits.has(callId)
  }

  get isEmpty(): boolean {
    return this.waiters.size === 0 && this.permits.size === 0
  }

  /** Calls that were granted to owners that have not heard of it yet. */
  get unusedGrants(): ReadonlyArray<string> {
    return [...this.waiters.keys()].filter((callId) => this.permits.has(callId))
  }

  releaseWaiters(error: (callId: string) => AdmissionError): void {
    const waiters = [...this.waiters]
    this.waiters.clear()
    for (const [callId, waiter] of waiters) {
      this.permits.delete(callId)
      if (callId !== this.settling) waiter.refused(error(callId))
    }
  }

  carryOut(decision: Decision, position: number): void {
    const { callId } = decision
    const { name, outbox } = this.#scope
    switch (decision.verdict) {
      case 'admit':
      case 'release':
        return this.#grant(callId, position)
      case 'cancel':
        return outbox.after(position, () => this.permits.get(callId)?.abort(preempted(name, callId)))
      case 'reject':
      case 'expire':
        return this.#end(decision, position)
      case 'defer':
        return
    }
  }

  /** The call ended without a settlement by its owner. */
  #end(decision: Decision, position: number): void {
    const { callId } = decision
    const { name, outbox } = this.#scope
    const permit = this.permits.get(callId)
    this.permits.delete(callId)
    const waiter = callId === this.settling ? undefined : this.waiters.get(callId)
    this.waiters.delete(callId)
    const tell = (error: AdmissionError) => {
      permit?.revoke(error)
      waiter?.refused(error)
    }
    outbox.after(
      position,
      () => tell(errorOf(name, decision)),
      (failure) => tell(scopeFailed(name, callId, failure)),
    )
  }

  #grant(callId: string, grantedIn: number): void {
    const waiter = this.waiters.get(callId)
    // A closing host has released the waiter; the next host takes the call up again.
    if (waiter === undefined) return
    const attempt = this.#scope.flight(callId)?.attempts ?? 1
    const permit = new Permit(this.#scope.name, callId, attempt, this.#scope.holder, waiter)
    this.permits.set(callId, permit)
    this.#deliver(permit, waiter, grantedIn)
  }

  #deliver(permit: Permit, waiter: Waiter, grantedIn: number): void {
    const { callId } = permit
    // A call that came back to its place may have been granted before its owner asked again.
    const isMissing = waiter.dispatch !== 'byOwner' && this.#scope.flight(callId)?.stage === 'admitted'
    const position = isMissing ? this.#scope.recordDispatch(callId) : grantedIn
    if (position === null) return
    this.#scope.outbox.after(position, () => {
      // The call was withdrawn, expired or failed while its entry was on the way to the disk.
      if (this.waiters.get(callId) !== waiter || this.permits.get(callId) !== permit) return
      this.waiters.delete(callId)
      waiter.granted(permit)
    })
  }
}
