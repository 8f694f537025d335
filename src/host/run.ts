/**
 * Runs a function with a permit. The result or error settles the permit; after a refusal or a preemption the
 * function runs again.
 */
import type { Call, Evidence, Usage } from '../../machines/index.ts'
import { type ResultStream, type StreamEnd, streamIn } from '../evidence/result-stream.ts'
import { Attempts, type Sender } from './attempts.ts'
import { type AdmissionError, AttemptsExhausted, Preempted } from './errors.ts'
import { HeldStream } from './held-stream.ts'
import type { Permit, Settlement } from './permit.ts'
import type { ScopeRunner } from './scope-runner.ts'

/** How to read the result or the error of a run. */
export interface Reading<A> {
  /** The usage that the provider reports; null when the result has none. */
  readonly usage: (result: A) => Usage | null
  /** The evidence of an error; null when the error says nothing about capacity. */
  readonly evidence: (error: unknown) => Evidence | null
  /** The caller's own reader of usage, which is also asked about streams, at their end; null when there is none. */
  readonly ownUsage: ((result: A) => Usage | null) | null
  /** Name of the provider, by which the chunks of a stream are read. */
  readonly provider: string
  /** How long a stream waits for its reader, milliseconds. */
  readonly unreadTimeoutMs: number
}

/** How one attempt ended. */
export type Ending<A> =
  | { readonly value: A }
  /** `interrupted`: the attempt was stopped from outside and did not fail by itself. */
  | { readonly error: unknown; readonly interrupted: boolean }

/** The differences between the faces of a host: how an attempt is run, and how its outcome is reported. */
export interface RunFace<A> {
  /** Runs one attempt and reports its end once. */
  begin(permit: Permit, ended: (ending: Ending<A>) => void): void
  succeeded(value: A): void
  /** The last attempt's own failure. */
  failed(error: unknown): void
  /** The scope refused the call. */
  refused(error: AdmissionError): void
  /** The owner left while the call waited, or before its attempt failed. */
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

  /** The owner no longer wants the answer. */
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
      const given = this.#succeed(permit, ending.value)
      return this.#finish(() => this.#face.succeeded(given))
    }
    // The function settled its permit by itself and went on: the later attempt decides.
    if (this.#attempts.permit !== permit) return
    this.#fail(permit, ending.error, ending.interrupted)
  }

  /** Settles the permit. Returns the value for the owner; a stream settles the permit only at its end. */
  #succeed(permit: Permit, value: A): A {
    // The function settled its permit by itself: an answer still ends the call.
    if (permit.settled) {
      this.#attempts.end({ outcome: 'completed' })
      return value
    }
    const stream = streamIn(value)
    if (stream !== null) return this.#hold(permit, value, stream)
    const usage = this.#attempts.read(() => this.#reading.usage(value))
    this.#attempts.settle(usage === null ? { outcome: 'completed' } : { outcome: 'completed', usage })
    return value
  }

  #hold(permit: Permit, value: A, stream: ResultStream): A {
    const { provider, unreadTimeoutMs, ownUsage } = this.#reading
    const held = new HeldStream(permit, {
      ...{ clock: this.#runner.clock, provider, unreadTimeoutMs },
      ended: (end, chunks) => {
        if (permit.settled) return
        const usage = (ownUsage === null ? null : this.#attempts.read(() => ownUsage(value))) ?? chunks.usage
        const evidence =
          chunks.evidence ??
          (end.kind === 'broken' && !permit.isAborted
            ? this.#attempts.read(() => this.#reading.evidence(end.error))
            : null)
        // Its owner has the stream already, so the call ends also where it could have gone back to its place.
        this.#attempts.end(streamSettlement(end, permit, usage, evidence))
      },
    })
    return held.hold(value, stream)
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
      // The failure of an attempt that was stopped from outside is not a reason of its own.
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

const streamSettlement = (
  end: StreamEnd,
  permit: Permit,
  usage: Usage | null,
  evidence: Evidence | null,
): Settlement => {
  const said = usage === null ? {} : { usage }
  if (evidence !== null) return { outcome: 'throttled', evidence, ...said }
  if (end.kind === 'complete' && !permit.isAborted) return { outcome: 'completed', ...said }
  return { outcome: end.kind === 'dropped' || permit.isAborted ? 'cancelled' : 'failed', ...said }
}
