/** A call's place in its scope: asked for, waited for, held as a permit, and left. */
import { HashMap } from 'effect'
import { endingOf } from '../../machines/collections/ended-log.ts'
import type { Call } from '../../machines/index.ts'
import type { Clock } from '../clock.ts'
import { Alarm } from '../host/alarm.ts'
import { type AdmissionError, errorOf } from '../host/errors.ts'
import type { Disposition, Permit, Settlement } from '../host/permit.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'

/** Whose place it is. */
export interface PlaceHolder {
  /** Whether somebody wants the answer. The place of an absent one is kept, but nothing is sent for it. */
  readonly isPresent: boolean
  granted(permit: Permit): void
  refused(error: AdmissionError): void
  /** Its turn came while it was absent; the place is gone. */
  missed(): void
}

export class Place {
  readonly #runner: ScopeRunner
  readonly #clock: Clock
  readonly #holder: PlaceHolder
  #call: Call
  #permit: Permit | null = null
  #attempts = 0
  #waitedMs = 0
  /** Since when it waits for a permit, epoch milliseconds; null while it does not. */
  #waitsSinceMs: number | null = null
  #alarm: Alarm | null = null

  constructor(runner: ScopeRunner, call: Call, clock: Clock, holder: PlaceHolder) {
    this.#runner = runner
    this.#call = call
    this.#clock = clock
    this.#holder = holder
  }

  /** As the scope knows it. */
  get call(): Call {
    return this.#call
  }

  /** Dispatches so far. */
  get attempts(): number {
    return this.#attempts
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
  get ending(): string | undefined {
    return endingOf(this.#runner.context, this.#call.id)
  }

  /** Asks for a permit; `call` is another one from now on when it is given. */
  ask(call: Call = this.#call): void {
    this.#call = call
    this.#waitsSinceMs = this.#clock.now()
    const holder = this.#holder
    this.#runner.submit(call, {
      // The request leaves as soon as the permit is here, so it waits for both facts at once.
      get dispatch() {
        return holder.isPresent ? 'onDelivery' : 'byOwner'
      },
      granted: (permit) => this.#granted(permit),
      refused: (error) => {
        this.#countWait()
        holder.refused(error)
      },
    })
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
    return this.#permit !== null
  }

  holds(permit: Permit): boolean {
    return this.#permit === permit
  }

  accepted(): void {
    this.#permit?.accepted()
  }

  /** Settles the present permit. `waiting` also when its place was granted again in the same breath. */
  settle(settlement: Settlement): Disposition {
    const permit = this.#permit
    this.#permit = null
    if (permit === null || permit.settled) return 'ended'
    if (permit.settle(settlement) === 'waiting') return 'waiting'
    return HashMap.has(this.#runner.context.inFlight, this.#call.id) ? 'waiting' : 'ended'
  }

  /** Leaves while it waits for a permit. */
  withdraw(why: string): void {
    this.#countWait()
    this.#runner.withdraw(this.#call.id, new Error(why))
  }

  /** Leaves a place that was taken again by a settlement. Asked for first, so that a permit on its way is given back. */
  giveUp(): void {
    const granted = (permit: Permit): void => void permit.settle({ outcome: 'cancelled' })
    this.#runner.submit(this.#call, { dispatch: 'byOwner', granted, refused: () => {} })
    this.withdraw('nobody waits for it any more')
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
    } else this.#permit?.abort(error)
    return null
  }

  #granted(permit: Permit): void {
    this.#countWait()
    if (!this.#holder.isPresent) {
      // Kept for a client that may never come, a permit would stop those behind it.
      this.#runner.giveBack(permit)
      return this.#holder.missed()
    }
    this.#permit = permit
    this.#attempts = permit.attempt
    this.#holder.granted(permit)
  }

  #countWait(): void {
    if (this.#waitsSinceMs !== null) this.#waitedMs += this.#clock.now() - this.#waitsSinceMs
    this.#waitsSinceMs = null
  }
}
