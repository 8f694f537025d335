/**
 * The way of one call through a scope: it waits for its permit, is sent, and waits again where the
 * provider refused it or a primary took its place. Callbacks, because a fiber for each call costs
 * more than the call.
 */
import type { Call } from '../../machines/index.ts'
import { providerSettlement } from './door.ts'
import type { AdmissionError } from './errors.ts'
import type { DispatchRecord, Disposition, Permit, Settlement, Waiter } from './permit.ts'
import type { ScopeRunner } from './scope-runner.ts'

/** Sends the call, each time that it may go. */
export interface Sender {
  readonly dispatch: DispatchRecord
  /** An attempt begins; it ends with `settle`. */
  granted(permit: Permit): void
  /** The call ended without another permit. */
  refused(error: AdmissionError): void
  /** The scope took the permit of the present attempt away for good. */
  revoked?(error: AdmissionError): void
  /** The signal said that nobody wants the call any more, while it waited. */
  left?(reason: unknown): void
}

export class Attempts implements Waiter {
  readonly stays = true
  readonly #runner: ScopeRunner
  readonly #sender: Sender
  readonly #signal: AbortSignal | undefined
  #call: Call
  #permit: Permit | null = null
  #isHolding = false

  constructor(runner: ScopeRunner, call: Call, sender: Sender, signal?: AbortSignal) {
    this.#runner = runner
    this.#call = call
    this.#sender = sender
    this.#signal = signal
  }

  get dispatch(): DispatchRecord {
    return this.#sender.dispatch
  }

  get permit(): Permit | null {
    return this.#permit
  }

  /** Asks for the first permit; `call` is another one from now on when it is given. */
  ask(call: Call = this.#call): void {
    this.#call = call
    if (this.#signal?.aborted) {
      // It may wait in its place since a restart.
      this.#runner.forsake(call.id)
      return this.#sender.left?.(this.#signal.reason)
    }
    if (!this.#isHolding) {
      this.#isHolding = true
      this.#runner.hold.take()
      this.#signal?.addEventListener('abort', this.#aborted)
    }
    this.#runner.submit(call, this)
  }

  /** Settles the present permit. After `waiting` the sender hears again; after `ended` it does not. */
  settle(settlement: Settlement): Disposition {
    const permit = this.#permit
    if (permit === null) return 'ended'
    const disposition = permit.disposition ?? this.#settle(permit, settlement)
    if (disposition === 'ended') this.#finish()
    else this.#permit = null
    return disposition
  }

  /** What a reader of usage or evidence says. The outcome and the answer count also where it throws; that is counted. */
  read<A>(reader: () => A | null): A | null {
    try {
      return reader()
    } catch {
      this.#runner.readerFailures += 1
      return null
    }
  }

  #settle(permit: Permit, settlement: Settlement): Disposition {
    // Its numbers are the provider's, and what a reader made of them: the place is free whatever they are.
    const { value, corrections } = providerSettlement(settlement)
    this.#runner.correctedValues += corrections
    return permit.settle(value)
  }

  /** Settles the present permit, and the call ends, also where it could have gone back to its place. */
  end(settlement: Settlement): void {
    const permit = this.#permit
    // It waits for its next permit, perhaps since it was settled by its own holder.
    if (permit === null || permit.disposition === 'waiting') return this.leave('the call has ended')
    permit.leave()
    this.settle(settlement)
  }

  /** Nobody wants the call any more. One that waits ends; one that runs is asked to stop, and ends when it is settled. */
  leave(reason: unknown): void {
    if (this.#permit !== null && this.#permit.disposition === null) return this.#permit.leave(reason)
    this.#finish()
    this.#runner.leave(this.#call.id, this, reason)
  }

  /** The present permit is not used: nothing reached the provider, and the id may come again. */
  giveBack(): void {
    const permit = this.#permit
    this.#finish()
    if (permit !== null) this.#runner.giveBack(permit)
  }

  granted(permit: Permit): void {
    this.#permit = permit
    this.#sender.granted(permit)
  }

  refused(error: AdmissionError): void {
    this.#finish()
    this.#sender.refused(error)
  }

  revoked(error: AdmissionError): void {
    this.#finish()
    this.#sender.revoked?.(error)
  }

  readonly #aborted = (): void => {
    const reason = this.#signal?.reason
    // A permit that its own holder settled is over, whatever the holder still does.
    const waited = this.#permit === null || this.#permit.disposition !== null
    this.leave(reason)
    if (waited) this.#sender.left?.(reason)
  }

  #finish(): void {
    this.#permit = null
    if (!this.#isHolding) return
    this.#isHolding = false
    this.#signal?.removeEventListener('abort', this.#aborted)
    this.#runner.hold.drop()
  }
}
