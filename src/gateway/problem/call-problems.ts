/** How a call ended without an answer of the provider, as problem documents. */
import type { AdmissionError } from '../../host/errors.ts'
import type { Problem } from './problem.ts'

/** `what` is the system's own code, such as `ECONNREFUSED`: messages may hold addresses. */
export const unreachable = (upstream: string, what: string): Problem => ({
  name: 'upstream-unreachable',
  status: 502,
  title: 'The upstream did not answer',
  detail: `no answer from upstream ${upstream}: ${what}`,
  retryAfterS: 1,
  retryable: true,
})

/** The head of an event stream was sent with comments, and what the provider answers is none. */
export const notAStream = (upstream: string): Problem => ({
  name: 'no-event-stream',
  status: 502,
  title: 'The upstream did not answer with an event stream',
  detail: `upstream ${upstream} answered otherwise than by a plain event stream, which is what keepAlive = comments promised to the client`,
  retryAfterS: null,
  retryable: false,
})

/** Where a call stood when its time was over. */
export type Standing = 'never-sent' | 'refused' | 'cut'

const standings: Readonly<Record<Standing, string>> = {
  'never-sent': 'it was never sent to the provider',
  refused: 'the provider had refused it, and it was not under way',
  cut: 'it had been sent, and was cut',
}

/** A 504 says which of the two happened: nobody has to pay for what was never sent. */
export const whereItStood = (problem: Problem, standing: Standing): Problem => ({
  ...problem,
  detail: `${problem.detail}; ${standings[standing]}`,
  members: { ...problem.members, standing },
})

/** The provider has asked for a longer wait than the call may have: known at once, and told at once. */
export const longWait = (scope: string, waitMs: number): Problem => ({
  name: 'provider-wait',
  status: 429,
  title: 'The provider asked for a longer wait',
  detail: `the provider holds ${scope} for ${Math.ceil(waitMs / 1_000)} s more, which is longer than this call may wait`,
  retryAfterS: Math.max(1, Math.ceil(waitMs / 1_000)),
  retryable: false,
})

/** The same beside the provider's own answer; null where that states the wait itself. */
export const waitFields = (waitMs: number | null): Readonly<Record<string, string>> => ({
  'x-should-retry': 'false',
  ...(waitMs === null ? {} : { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) }),
})

/** The system's own code for a failure; messages may hold addresses. */
export const codeOf = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name

interface Meaning {
  readonly status: number
  readonly title: string
  readonly retryable: boolean
}

const meanings: Readonly<Record<AdmissionError['_tag'], Meaning>> = {
  DeadlineExceeded: { status: 504, title: 'The deadline passed', retryable: false },
  PendingTimeout: { status: 503, title: 'The call waited too long', retryable: true },
  ActiveTimeout: { status: 504, title: 'The call ran too long', retryable: false },
  OutcomeUnknown: { status: 409, title: 'What became of the call is not known', retryable: false },
  AlreadySettled: { status: 409, title: 'A call of this id has ended', retryable: false },
  DuplicateCall: { status: 409, title: 'A call of this id waits or runs', retryable: false },
  ExceedsLimit: { status: 413, title: 'The call can never fit', retryable: false },
  AttemptsExhausted: { status: 503, title: 'The provider refused every attempt', retryable: true },
  NotRetryable: { status: 503, title: 'The provider refused the call', retryable: false },
  Shed: { status: 429, title: 'The scope is busy', retryable: true },
  Preempted: { status: 503, title: 'A primary took the place of the call', retryable: true },
  Abandoned: { status: 503, title: 'The call was abandoned', retryable: true },
  Unclaimed: { status: 503, title: 'Nobody asked for the call in time', retryable: true },
  Withdrawn: { status: 503, title: 'The call was withdrawn by an operator', retryable: false },
  HostClosed: { status: 503, title: 'The gateway is closing', retryable: true },
  ScopeFailed: { status: 503, title: 'The scope has stopped', retryable: true },
}

const nameOf = (tag: string): string =>
  tag.replace(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`).toLowerCase()

/** Bounds of the gateway's own `retry-after`, seconds: clients await it without a bound of their own. */
const leastRetryAfterS = 5
const mostRetryAfterS = 60

const retryAfterOf = (error: AdmissionError, waitMs: number): number => {
  // What was turned away at the door may come back as soon as the door says: the least that HTTP can say is a second.
  const [leastS, statedMs] =
    error._tag === 'Shed' ? [1, Math.max(waitMs, error.retryAfterMs)] : [leastRetryAfterS, waitMs]
  return Math.min(mostRetryAfterS, Math.max(leastS, Math.ceil(statedMs / 1_000)))
}

/** What an admission error is over HTTP. `waitMs` is what the provider asked the scope to wait still. */
export const admissionProblem = (error: AdmissionError, waitMs: number): Problem => {
  const { status, title, retryable } = meanings[error._tag]
  const { scope, callId } = error
  return {
    name: nameOf(error._tag),
    status,
    title,
    detail: error.message,
    retryAfterS: retryable ? retryAfterOf(error, waitMs) : null,
    retryable,
    members: { scope, callId, ...(error._tag === 'Shed' ? { reason: error.reason } : {}) },
  }
}
