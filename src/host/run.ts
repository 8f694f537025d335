/** A function run with a permit: settled by what it gives or throws, and run again after a refusal or a preemption. */
import type { Call, Evidence, Usage } from '../../machines/index.ts'
import { Attempts, type Sender } from './attempts.ts'
import { type AdmissionError, AttemptsExhausted, Preempted } from './errors.ts'
import type { Permit, Settlement } from './permit.ts'
import type { ScopeRunner } from './scope-runner.ts'

/** How to read what a run gave or failed with. */
export interface Reading<A> {
  /** What the provider says that it used; null when the result does not tell. */
  readonly usage: (result: A) => Usage | null
  /** What an error says about capacity; null when it says nothing. */
  readonly evidence: (error: unknown) => Evidence | null
}

/** How one attempt ended. */
export type Ending<A> =
  | { readonly value: A }
  /** `interrupted`: it did not fail by itself. */
  | { readonly error: unknown; readonly interrupted: boolean }

/** What differs between the faces of a host: how an attempt is run, and how its outcome is told. */
export interface RunFace<A> {
  /** Runs one attempt and tells its end once. */
  begin(permit: Permit, ended: (ending: Ending<A>) => void): void
  succeeded(value: A): void
  /** The last attempt's own failure. */
  failed(error: unknown): void
  /** The scope's word on the call. */
  refused(error: AdmissionError): void
  /** Its owner left while it waited, or before its attempt failed. */
  left(reason: unknown): void
}

const exhausted = (permit: Permit, cause: unknown): AttemptsExhausted =>
  new AttemptsExhausted({
    scope: permit.scope,
    callId: permit.callId,
    cause,
    message: `call ${permit.callId} in ${permit.scope} was refused by the provider for its size as often as policy.maxAttempts allows, and sent ${permit.attempt} times in all`,
  })

export class Run<A> implements Sender {
  readonly dispatch = 'withGrant'
  readonly #runner: ScopeRunner
  readonly #attempts: Attempts
  readonly #reading: Reading<A>
  readonly #face: RunFace<A>
  readonly #signal: AbortSignal | undefined
  readonly #callId: string
  #hasLeft = false
  #isOver = false

  constructor(
    runner: ScopeRunner,
    call: Call,
    reading: Reading<A>,
    face: RunFace<A>,
    signal: AbortSignal | undefined,
  ) {
    this.#runner = runner
    this.#attempts = new Attempts(runner, call, this, signal)
    this.#reading = reading
    this.#face = face
    this.#signal = signal
    this.#callId = call.id
  }

  start(): void {
    this.#attempts.ask()
  }

  /** The owner wants no answer any more. */
  leave(reason: unknown): void {
    this.#hasLeft = true
    this.#attempts.leave(reason)
  }

  granted(permit: Permit): void {
    let hasEnded = false
    const ended = (ending: Ending<A>): void => {
      if (hasEnded) return
      hasEnded = true
      this.#ended(permit, ending)
    }
    try {
      this.#face.begin(permit, ended)
    } catch (error) {
      ended({ error, interrupted: false })
    }
  }

  refused(error: AdmissionError): void {
    this.#finish(() => this.#face.refused(error))
  }

  revoked(error: AdmissionError): void {
    this.#finish(() => this.#face.refused(error))
  }

  left(reason: unknown): void {
    this.#finish(() => this.#face.left(reason))
  }

  #finish(tell: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    tell()
  }

  #ended(permit: Permit, ending: Ending<A>): void {
    if (this.#isOver) return
    if ('value' in ending) {
      this.#succeed(permit, ending.value)
      return this.#finish(() => this.#face.succeeded(ending.value))
    }
    // Its function settled it by itself and went on: the attempt that came after it decides.
    if (this.#attempts.permit !== permit) return
    this.#fail(permit, ending.error, ending.interrupted)
  }

  #succeed(permit: Permit, value: A): void {
    // Its function settled it by itself: an answer ends the call all the same.
    if (permit.settled) return this.#attempts.end({ outcome: 'completed' })
    const usage = this.#attempts.read(() => this.#reading.usage(value))
    this.#attempts.settle(usage === null ? { outcome: 'completed' } : { outcome: 'completed', usage })
  }

  #fail(permit: Permit, error: unknown, interrupted: boolean): void {
    const { isAborted } = permit
    const evidence =
      permit.settled || isAborted || interrupted
        ? null
        : this.#attempts.read(() => this.#reading.evidence(error))
    if (interrupted && !isAborted) permit.leave()
    const disposition = this.#attempts.settle(settlementOf(isAborted || interrupted, evidence))
    const hasLeft = this.#hasLeft || this.#signal?.aborted === true
    if (disposition === 'waiting') {
      if (hasLeft) {
        this.#attempts.leave(error)
        this.left(error)
      }
      return
    }
    if (hasLeft) return this.left(error)
    if (this.#runner.stopped(this.#callId) === null) {
      if (evidence?.retryable === true) return this.refused(exhausted(permit, error))
      // An attempt that was stopped from outside has no word of its own.
      if (interrupted && isAborted) return this.refused(permit.signal.reason as AdmissionError)
    } else if (permit.isAborted && permit.signal.reason instanceof Preempted) {
      return this.refused(this.#runner.stopped(this.#callId) as AdmissionError)
    }
    this.#finish(() => this.#face.failed(error))
  }
}

const settlementOf = (isCancelled: boolean, evidence: Evidence | null): Settlement => {
  if (isCancelled) return { outcome: 'cancelled' }
  return evidence === null ? { outcome: 'failed' } : { outcome: 'throttled', evidence }
}
