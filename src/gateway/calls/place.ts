/** A call's place in its scope: asked for, waited for, held as a permit, and left. */
import { HashMap } from 'effect'
import type { Call } from '../../../machines/index.ts'
import { endingOf } from '../../../machines/scheduling/lifecycle.ts'
import type { Clock } from '../../clock.ts'
import { Alarm } from '../../host/alarm.ts'
import { Attempts, type Sender } from '../../host/attempts.ts'
import { type AdmissionError, errorOf } from '../../host/errors.ts'
import type { DispatchRecord, Disposition, Permit, Settlement } from '../../host/permit.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'

/** Whose place it is. */
export interface PlaceHolder {
  /** Whether somebody wants the answer. The place of an absent one is kept, but nothing is sent for it. */
  readonly isPresent: boolean
  granted(permit: Permit): void
  refused(error: AdmissionError): void
  /** Its turn came while it was absent; the place is gone. */
  missed(): void
}

export class Place implements Sender {
  readonly #attempts: Attempts
  readonly #runner: ScopeRunner
  readonly #clock: Clock
  readonly #holder: PlaceHolder
  #call: Call
  #attemptCount = 0
  #waitedMs = 0
  /** Since when it waits for a permit, epoch milliseconds; null while it does not. */
  #waitsSinceMs: number | null = null
  #alarm: Alarm | null = null

  constructor(runner: ScopeRunner, call: Call, clock: Clock, holder: PlaceHolder) {
    this.#runner = runner
    this.#call = call
    this.#clock = clock
    this.#holder = holder
    this.#attempts = new Attempts(runner, call, this)
  }

  /** The request leaves as soon as the permit is here, so it waits for both facts at once. */
  get dispatch(): DispatchRecord {
    return this.#holder.isPresent ? 'onDelivery' : 'byOwner'
  }

  /** As the scope knows it. */
  get call(): Call {
    return this.#call
  }

  /** Dispatches so far. */
  get attempts(): number {
    return this.#attemptCount
  }

  /** In queues, all attempts together, milliseconds. */
  get waitedMs(): number {
    return this.#waitedMs
  }

  /** A permit is waited for; it may be on its way. */
  get isAwaited(): boolean {
    return this.#waitsSinceMs !== null
  }

  /** A permit is waited for, and none is on its way. */
  get isQueued(): boolean {
    return this.isAwaited && HashMap.has(this.#runner.context.waiting, this.#call.id)
  }

  /** How a call of this id has ended, as far as the scope remembers. */
  endingOf(id: string): string | undefined {
    return endingOf(this.#runner.context, id)
  }

  /** Asks for a permit; `call` is another one from now on when it is given. */
  ask(call: Call = this.#call): void {
    this.#call = call
    this.#waitsSinceMs = this.#clock.now()
    this.#attempts.ask(call)
  }

  /**
   * A deadline beside the call's own, epoch milliseconds, instead of the one before; null for none.
   * The scope is told a call's deadline once, and never another: an earlier one is kept here.
   */
  boundBy(deadlineAt: number | null): void {
    this.#alarm?.stop()
    this.#alarm = null
    const toldAt = this.#call.deadlineAt
    if (deadlineAt === null || (toldAt !== null && toldAt <= deadlineAt)) return
    this.#alarm = new Alarm(this.#clock, () => this.#ring(deadlineAt))
    this.#alarm.set(deadlineAt)
  }

  get hasPermit(): boolean {
    return this.#attempts.permit !== null
  }

  holds(permit: Permit): boolean {
    return this.#attempts.permit === permit
  }

  accepted(): void {
    this.#attempts.permit?.accepted()
  }

  /** Settles the present permit. After `waiting` it waits for the next one. */
  settle(settlement: Settlement): Disposition {
    const disposition = this.#attempts.settle(settlement)
    if (disposition === 'waiting') this.#waitsSinceMs = this.#clock.now()
    return disposition
  }

  /** Settles the present permit, and the call ends, also where it could have gone back to its place. */
  end(settlement: Settlement): void {
    this.#attempts.end(settlement)
  }

  /** Leaves while it waits for a permit. */
  withdraw(why: string): void {
    this.#countWait()
    this.#attempts.leave(new Error(why))
  }

  #ring(deadlineAt: number): number | null {
    const at = this.#clock.now()
    if (at < deadlineAt) return deadlineAt
    const { name, context } = this.#runner
    const { state } = context
    const callId = this.#call.id
    const error = errorOf(name, { callId, verdict: 'expire', reason: 'deadline', at, state })
    if (this.isAwaited) {
      this.withdraw(error.message)
      this.#holder.refused(error)
    } else this.#attempts.permit?.leave(error)
    return null
  }

  granted(permit: Permit): void {
    this.#countWait()
    if (!this.#holder.isPresent) {
      // Kept for a client that may never come, a permit would stop those behind it.
      this.#attempts.giveBack()
      return this.#holder.missed()
    }
    this.#attemptCount = permit.attempt
    this.#holder.granted(permit)
  }

  refused(error: AdmissionError): void {
    this.#countWait()
    this.#holder.refused(error)
  }

  #countWait(): void {
    if (this.#waitsSinceMs !== null) this.#waitedMs += this.#clock.now() - this.#waitsSinceMs
    this.#waitsSinceMs = null
  }
}
