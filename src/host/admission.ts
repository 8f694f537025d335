/** Waits for a permit that its holder settles: one waiter gets one answer. */
import type { Call } from '../../machines/index.ts'
import type { AdmissionError } from './errors.ts'
import type { DispatchRecord, Permit, Waiter } from './permit.ts'
import type { ScopeRunner } from './scope-runner.ts'

export interface Applicant {
  granted(permit: Permit): void
  refused(error: AdmissionError): void
  /** The signal aborted: the permit is no longer wanted. */
  left(reason: unknown): void
}

/** Asks for a permit. Returns a function that leaves: the call ends, and the applicant gets no more calls. */
export const askForPermit = (
  runner: ScopeRunner,
  call: Call,
  dispatch: DispatchRecord,
  applicant: Applicant,
  signal?: AbortSignal,
): ((reason: unknown) => void) => {
  if (signal?.aborted) {
    // The call may already wait in its place, after a refusal, a preemption or a restart.
    runner.forsake(call.id)
    applicant.left(signal.reason)
    return () => {}
  }
  let waits = true
  const finish = (): void => {
    waits = false
    signal?.removeEventListener('abort', aborted)
    runner.hold.drop()
  }
  const leave = (reason: unknown): void => {
    if (!waits) return
    finish()
    runner.leave(call.id, waiter, reason)
  }
  const aborted = (): void => {
    leave(signal?.reason)
    applicant.left(signal?.reason)
  }
  const waiter: Waiter = {
    dispatch,
    stays: false,
    granted: (permit) => {
      finish()
      if (signal !== undefined) permit.follow(signal)
      applicant.granted(permit)
    },
    refused: (error) => {
      finish()
      applicant.refused(error)
    },
  }
  runner.hold.take()
  signal?.addEventListener('abort', aborted)
  runner.submit(call, waiter)
  return leave
}
