import { settlementOf } from './door.ts'
import type { AdmissionError } from './errors.ts'
import type { Settlement } from './settlement.ts'

export type { Settlement } from './settlement.ts'

/**
 * The call's state after a settlement: it `ended`, or it is `waiting` in its place again (submit the same
 * id).
 */
export type Disposition = 'ended' | 'waiting'

/**
 * When a call is recorded as dispatched. `withGrant`: the owner is sure to send, so the grant is the record.
 * `onDelivery`: when the permit is handed over, which waits for both. `byOwner`: when the owner reports it.
 */
export type DispatchRecord = 'withGrant' | 'onDelivery' | 'byOwner'

/** The owner of a call while it waits for a permit. */
export interface Waiter {
  readonly granted: (permit: Permit) => void
  readonly refused: (error: AdmissionError) => void
  readonly dispatch: DispatchRecord
  /** The waiter stays: when a settlement returns the call to its place, it waits for the next permit. */
  readonly stays: boolean
  /** The scope took the permit away for good. */
  readonly revoked?: (error: AdmissionError) => void
}

/** The parts of a scope that a permit needs. */
export interface PermitOwner {
  readonly dispatched: (callId: string) => Promise<void>
  readonly accepted: (callId: string) => void
  readonly settle: (permit: Permit, settlement: Settlement) => Disposition
  readonly settledTwice: (callId: string) => void
}

/**
 * The identified, abortable right to one dispatch. It is settled exactly once. A second settlement does
 * nothing and is counted.
 */
export class Permit implements AsyncDisposable {
  readonly scope: string
  readonly callId: string
  /** Unique among all permits: the call's id and the number of its attempt. */
  readonly id: string
  /** 1 for the first dispatch of this call. */
  readonly attempt: number
  // Made on the first use of the signal: most permits are settled without one.
  #aborting: AbortController | null = null
  #losing: AbortController | null = null
  readonly #owner: PermitOwner
  readonly #waiter: Waiter
  #disposition: Disposition | null = null
  #revocation: AdmissionError | null = null
  #isLeft = false
  #unfollow: () => void = () => {}

  constructor(scope: string, callId: string, attempt: number, owner: PermitOwner, waiter: Waiter) {
    this.scope = scope
    this.callId = callId
    this.id = `${callId}#${attempt}`
    this.attempt = attempt
    this.#owner = owner
    this.#waiter = waiter
  }

  /**
   * Aborted when the policy takes the permit back (`Preempted`), when a timeout passes, or when the caller's
   * signal aborts.
   */
  get signal(): AbortSignal {
    return this.#controller().signal
  }

  /**
   * Aborted when the scope took the permit away for good; the reason is the call's error. It is a second
   * signal because a signal aborts only once.
   */
  get lost(): AbortSignal {
    return this.#loss().signal
  }

  /** Whether `signal` is aborted. Costs nothing when the signal was never used. */
  get isAborted(): boolean {
    return this.#aborting?.signal.aborted ?? false
  }

  get settled(): boolean {
    return this.#disposition !== null
  }

  /** The disposition that the settlement gave the call; null before it. */
  get disposition(): Disposition | null {
    return this.#disposition
  }

  /**
   * The waiter for the call's next permit if a settlement returns the call to its place. Null: the holder has
   * to ask again.
   */
  get successor(): Waiter | null {
    return this.#waiter.stays && !this.#isLeft ? this.#waiter : null
  }

  /** The owner does not come back: a settlement ends the call. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  /**
   * Call and await this right before the request leaves. Only then a restart knows that the request may have
   * been sent.
   */
  dispatched(): Promise<void> {
    // The call's next permit may be out by now.
    if (this.#disposition !== null) {
      return this.#revocation === null ? Promise.resolve() : Promise.reject(this.#revocation)
    }
    return this.#owner.dispatched(this.callId)
  }

  /** The provider began to answer. */
  accepted(): void {
    if (this.#disposition === null) this.#owner.accepted(this.callId)
  }

  /** Ends the dispatch. The first settlement counts. Throws `InvalidInput`, and settles nothing, where a value is out of range. */
  settle(settlement: Settlement): Disposition {
    if (this.#disposition !== null) {
      this.#owner.settledTwice(this.callId)
      return this.#disposition
    }
    const stated = settlementOf(settlement)
    this.#unfollow()
    this.#disposition = this.#owner.settle(this, stated)
    return this.#disposition
  }

  /** A permit without a settlement counts as cancelled. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposition === null) this.settle({ outcome: 'cancelled' })
  }

  /** The scope ended the permit; later reports of the holder do not count. */
  revoke(reason: AdmissionError): void {
    this.#unfollow()
    this.#disposition = 'ended'
    this.#revocation = reason
    this.#controller().abort(reason)
    this.#losing?.abort(reason)
    this.#waiter.revoked?.(reason)
  }

  /** Passes an abort of the caller's signal on while the permit is out. */
  follow(signal: AbortSignal): void {
    const pass = () => this.leave(signal.reason)
    if (signal.aborted) return pass()
    signal.addEventListener('abort', pass, { once: true })
    this.#unfollow = () => signal.removeEventListener('abort', pass)
  }

  /** Asks the holder to stop; it still settles. */
  abort(reason: unknown): void {
    if (this.#disposition === null) this.#controller().abort(reason)
  }

  /**
   * The call ends with its settlement, even if it could go back to its place. With a reason, the holder is
   * asked to stop.
   */
  leave(reason?: unknown): void {
    this.#isLeft = true
    if (reason !== undefined) this.abort(reason)
  }

  #controller(): AbortController {
    this.#aborting ??= new AbortController()
    return this.#aborting
  }

  #loss(): AbortController {
    if (this.#losing === null) {
      this.#losing = new AbortController()
      if (this.#revocation !== null) this.#losing.abort(this.#revocation)
    }
    return this.#losing
  }
}
