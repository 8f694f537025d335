/** The way of one call through a scope: wait for a permit, use it, settle it; again after a refusal or a preemption. */
import { Cause, Effect, Exit } from 'effect'
import type { Call, Evidence, Usage } from '../../machines/index.ts'
import { type AdmissionError, AttemptsExhausted, Preempted } from './errors.ts'
import type { Disposition, Permit } from './permit.ts'
import type { DispatchRecord, ScopeRunner } from './scope-runner.ts'

/** How to read what `use` gave or failed with. */
export interface Reading<A> {
  /** What the provider says that it used; null when the result does not tell. */
  readonly usage: (result: A) => Usage | null
  /** What an error says about capacity; null when it says nothing. */
  readonly evidence: (error: unknown) => Evidence | null
}

/** Waits for a permit. Interruption, or `signal`, withdraws the call. */
export const awaitPermit = (
  runner: ScopeRunner,
  call: Call,
  dispatch: DispatchRecord,
  signal?: AbortSignal,
): Effect.Effect<Permit, AdmissionError> =>
  Effect.callback<Permit, AdmissionError>((resume) => {
    const abort = () => {
      runner.withdraw(call.id, signal?.reason)
      resume(Effect.die(signal?.reason))
    }
    // It may wait in its place already, after a refusal or a preemption.
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort, { once: true })
    runner.submit(call, {
      dispatch,
      granted: (permit) => {
        signal?.removeEventListener('abort', abort)
        if (signal !== undefined) permit.follow(signal)
        resume(Effect.succeed(permit))
      },
      refused: (error) => {
        signal?.removeEventListener('abort', abort)
        resume(Effect.fail(error))
      },
    })
    return Effect.sync(() => runner.withdraw(call.id, new Error(`call ${call.id} was interrupted`)))
  })

const settleFailure = <A>(permit: Permit, error: unknown, reading: Reading<A>): Disposition => {
  if (permit.signal.aborted) return permit.settle({ outcome: 'cancelled' })
  const evidence = reading.evidence(error)
  if (evidence === null) return permit.settle({ outcome: 'failed' })
  return permit.settle({ outcome: 'throttled', evidence })
}

const exhausted = (permit: Permit, cause: unknown): AttemptsExhausted =>
  new AttemptsExhausted({
    scope: permit.scope,
    callId: permit.callId,
    cause,
    message: `call ${permit.callId} in ${permit.scope} was refused by the provider for its size as often as policy.maxAttempts allows, and sent ${permit.attempt} times in all`,
  })

/**
 * Runs `use` with a permit. It is run again when the provider refused it before acceptance or the
 * permit was preempted; each time from its own place in the queue.
 */
export const runCall = <A, E, R>(
  runner: ScopeRunner,
  call: Call,
  use: (permit: Permit) => Effect.Effect<A, E, R>,
  reading: Reading<A>,
  signal?: AbortSignal,
): Effect.Effect<A, E | AdmissionError, R> =>
  Effect.uninterruptibleMask((restore) => {
    const attempt: Effect.Effect<A, E | AdmissionError, R> = Effect.flatMap(
      restore(awaitPermit(runner, call, 'withGrant', signal)),
      (permit) => Effect.flatMap(Effect.exit(restore(use(permit))), (exit) => conclude(permit, exit)),
    )
    const conclude = (permit: Permit, exit: Exit.Exit<A, E>): Effect.Effect<A, E | AdmissionError, R> => {
      if (Exit.isSuccess(exit)) {
        const usage = reading.usage(exit.value)
        permit.settle(usage === null ? { outcome: 'completed' } : { outcome: 'completed', usage })
        return exit
      }
      if (permit.settled) return exit
      if (Cause.hasInterrupts(exit.cause) && !(permit.signal.reason instanceof Preempted)) {
        permit.settle({ outcome: 'cancelled' })
        return exit
      }
      const error = Cause.squash(exit.cause)
      const disposition = settleFailure(permit, error, reading)
      if (disposition === 'waiting') return attempt
      const refusedOnce = !permit.signal.aborted && reading.evidence(error)?.retryable === true
      return refusedOnce ? Effect.fail(exhausted(permit, error)) : exit
    }
    return attempt
  })

/** Ends with the permit's error when it is asked back or taken away: an Effect is interrupted rather than asked by a signal. */
export const interruption = (permit: Permit): Effect.Effect<never, AdmissionError> =>
  Effect.callback<never, AdmissionError>((resume) => {
    const asked = () => resume(Effect.fail(permit.signal.reason as AdmissionError))
    if (permit.signal.aborted) return asked()
    permit.signal.addEventListener('abort', asked, { once: true })
    return Effect.sync(() => permit.signal.removeEventListener('abort', asked))
  })

/** A promise function as an Effect that ends when its promise does, or when the permit is revoked. */
export const promised = <A>(permit: Permit, fn: () => PromiseLike<A>): Effect.Effect<A, unknown> =>
  Effect.callback<A, unknown>((resume) => {
    permit.lost.addEventListener('abort', () => resume(Effect.fail(permit.lost.reason)), { once: true })
    try {
      fn().then(
        (result) => resume(Effect.succeed(result)),
        (error: unknown) => resume(Effect.fail(error)),
      )
    } catch (error) {
      resume(Effect.fail(error))
    }
  })
