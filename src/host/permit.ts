import { settlementOf } from './door.ts'
import type { AdmissionError } from './errors.ts'
import type { Settlement } from './settlement.ts'

export type { Settlement } from './settlement.ts'

/** What became of the call: it `ended`, or it is `waiting` in its place again (submit the same id). */
export type Disposition = 'ended' | 'waiting'

/**
 * When a call is recorded as dispatched. `withGrant`: its owner is sure to send, so the grant says
 * it. `onDelivery`: when the permit is handed over, which waits for both. `byOwner`: when the owner says so.
 */
export type DispatchRecord = 'withGrant' | 'onDelivery' | 'byOwner'

/** The owner of a call while it waits for a permit. */
export interface Waiter {
  readonly granted: (permit: Permit) => void
  readonly refused: (error: AdmissionError) => void
  readonly dispatch: DispatchRecord
  /** It waits on by itself for the next permit where a settlement returns the call to its place. */
  readonly stays: boolean
  /** The scope took its permit away for good. */
  readonly revoked?: (error: AdmissionError) => void
}

/** What a permit needs of its scope. */
export interface PermitOwner {
  readonly dispatched: (callId: string) => Promise<void>
  readonly accepted: (callId: string) => void
  readonly settle: (permit: Permit, settlement: Settlement) => Disposition
  readonly settledTwice: (callId: string) => void
}

/** The identified, abortable right to one dispatch. It is settled exactly once; a second settle does nothing and is counted. */
export class Permit implements AsyncDisposable {
  readonly scope: string
  readonly callId: string
  /** Unique among all permits: the call's id and the number of its attempt. */
  readonly id: string
  /** 1 for the first dispatch of this call. */
  readonly attempt: number
  // Made when somebody asks for a signal or aborts one: most permits are settled before that.
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

  /** Aborted when the policy takes the permit back (`Preempted`), when a timeout passes, or when the caller's own signal is. */
  get signal(): AbortSignal {
    return this.#controller().signal
  }

  /** Aborted when the scope took the permit away for good; its reason is the call's error. A signal aborts once, so this is another. */
  get lost(): AbortSignal {
    return this.#loss().signal
  }

  /** Whether `signal` is aborted, at no cost where nobody asked for it. */
  get isAborted(): boolean {
    return this.#aborting?.signal.aborted ?? false
  }

  get settled(): boolean {
    return this.#disposition !== null
  }

  /** What its settlement made of the call; null before. */
  get disposition(): Disposition | null {
    return this.#disposition
  }

  /** Who gets the next permit of the call where a settlement returns it to its place; null when its holder has to ask. */
  get successor(): Waiter | null {
    return this.#waiter.stays && !this.#isLeft ? this.#waiter : null
  }

  /** Its owner does not come back: a settlement ends the call. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  /** Say this right before the request leaves and await it: only then a restart knows that it may have been sent. */
  dispatched(): Promise<void> {
    // Another permit of the same call may be out by now.
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

  /** Left without a settlement: the dispatch counts as cancelled. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposition === null) this.settle({ outcome: 'cancelled' })
  }

  /** The scope ended it; nothing that the holder says later counts. */
  revoke(reason: AdmissionError): void {
    this.#unfollow()
    this.#disposition = 'ended'
    this.#revocation = reason
    this.#controller().abort(reason)
    this.#losing?.abort(reason)
    this.#waiter.revoked?.(reason)
  }

  /** Passes the abort of its caller's signal on while the permit is out. */
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

  /** The call ends with its settlement, also where it could have gone back to its place; with a reason, the holder is asked to stop. */
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
