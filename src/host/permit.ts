import type { Evidence, Outcome, Usage } from '../../machines/index.ts'
import type { AdmissionError } from './errors.ts'

/** How the holder of a permit says that its dispatch ended. */
export interface Settlement {
  readonly outcome: Exclude<Outcome, 'unknown' | 'abandoned'>
  readonly usage?: Usage
  /** What the provider said; needed for `throttled`. */
  readonly evidence?: Evidence
}

/** What became of the call: it `ended`, or it is `waiting` in its place again (submit the same id). */
export type Disposition = 'ended' | 'waiting'

/** What a permit needs of its scope. */
export interface PermitOwner {
  readonly dispatched: (callId: string) => Promise<void>
  readonly accepted: (callId: string) => void
  readonly settle: (callId: string, settlement: Settlement) => Disposition
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
  #disposition: Disposition | null = null
  #unfollow: () => void = () => {}

  constructor(scope: string, callId: string, attempt: number, owner: PermitOwner) {
    this.scope = scope
    this.callId = callId
    this.id = `${callId}#${attempt}`
    this.attempt = attempt
    this.#owner = owner
  }

  /** Aborted when the policy takes the permit back (`Preempted`), when a timeout passes, or when the caller's own signal is. */
  get signal(): AbortSignal {
    return this.#controller().signal
  }

  /** Aborted when the scope took the permit away for good; its reason is the call's error. A signal aborts once, so this is another. */
  get lost(): AbortSignal {
    return this.#loss().signal
  }

  get settled(): boolean {
    return this.#disposition !== null
  }

  /** Say this right before the request leaves and await it: only then a restart knows that it may have been sent. */
  dispatched(): Promise<void> {
    return this.#owner.dispatched(this.callId)
  }

  /** The provider began to answer. */
  accepted(): void {
    if (this.#disposition === null) this.#owner.accepted(this.callId)
  }

  /** Ends the dispatch. The first settlement counts. */
  settle(settlement: Settlement): Disposition {
    if (this.#disposition !== null) {
      this.#owner.settledTwice(this.callId)
      return this.#disposition
    }
    this.#unfollow()
    this.#disposition = this.#owner.settle(this.callId, settlement)
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
    this.#controller().abort(reason)
    this.#loss().abort(reason)
  }

  /** Passes the abort of its caller's signal on while the permit is out. */
  follow(signal: AbortSignal): void {
    const pass = () => this.abort(signal.reason)
    signal.addEventListener('abort', pass, { once: true })
    this.#unfollow = () => signal.removeEventListener('abort', pass)
  }

  /** Asks the holder to stop; it still settles. */
  abort(reason: unknown): void {
    if (this.#disposition === null) this.#controller().abort(reason)
  }

  #controller(): AbortController {
    this.#aborting ??= new AbortController()
    return this.#aborting
  }

  #loss(): AbortController {
    this.#losing ??= new AbortController()
    return this.#losing
  }
}
