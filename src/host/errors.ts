/**
 * Why a call got no permit, or lost it. Each error names the scope, the call and the next step. The Effect
 * face fails with these errors and the Promise face throws them.
 */
import { type Cause, Data } from 'effect'
import type { Decision, ExpireReason, RejectReason, ShedReason } from '../../machines/index.ts'

interface About {
  readonly scope: string
  readonly callId: string
  readonly message: string
}

/** The base of every error of a call that got no permit, or lost it. */
abstract class Refusal extends Data.Error<About> {
  /** Without the kind's name: an SDK that finds "timeout" in an error takes it for its own, and drops it. */
  override toString(): string {
    return `AdmissionError: ${this.message}`
  }
}

/** A kind of refusal, told apart by `_tag` as Effect's own tagged errors are. */
const refusal = <Tag extends string>(tag: Tag) => {
  class Tagged extends Refusal {
    readonly _tag = tag
  }
  Tagged.prototype.name = tag
  return Tagged as unknown as new <Facts extends About>(
    facts: Facts,
  ) => Cause.YieldableError & { readonly _tag: Tag } & Readonly<Facts>
}

/** The call's own deadline passed. */
export class DeadlineExceeded extends refusal('DeadlineExceeded')<About> {}
/** The policy's bound on waiting passed. */
export class PendingTimeout extends refusal('PendingTimeout')<About> {}
/** The policy's bound on running passed; the permit's signal was aborted. */
export class ActiveTimeout extends refusal('ActiveTimeout')<About> {}
/** The call was running when its host died: the provider may or may not have done the work. */
export class OutcomeUnknown extends refusal('OutcomeUnknown')<About> {}
/** A call of this id ended already. */
export class AlreadySettled extends refusal('AlreadySettled')<About> {}
/** A call of this id waits or runs already, for another owner. */
export class DuplicateCall extends refusal('DuplicateCall')<About> {}
/** The call is larger than a declared limit can ever hold. */
export class ExceedsLimit extends refusal('ExceedsLimit')<About> {}
/** The provider refused the call as often as the policy allows. */
export class AttemptsExhausted extends refusal('AttemptsExhausted')<About & { readonly cause?: unknown }> {}
/** The provider refused the call for a reason that waiting does not mend. */
export class NotRetryable extends refusal('NotRetryable')<About & { readonly cause?: unknown }> {}
/**
 * A scope that sheds (`policy.qos`) turned the call away. The message is `BUSY: <why>, retry with backoff`.
 * The same id may be asked for again, after `retryAfterMs` at the earliest.
 */
export class Shed extends refusal('Shed')<
  About & { readonly reason: ShedReason; readonly retryAfterMs: number }
> {}
/** The cancel policy took the permit back; the call keeps its place: submit the same id again. */
export class Preempted extends refusal('Preempted')<About> {}
/** The holder of the permit did not answer an abort in time. */
export class Abandoned extends refusal('Abandoned')<About> {}
/** The owner of a recovered call did not ask for it in time. */
export class Unclaimed extends refusal('Unclaimed')<About> {}
/** An operator took the waiting call away. */
export class Withdrawn extends refusal('Withdrawn')<About> {}
/** The host was closed; a waiting call keeps its place in the journal. */
export class HostClosed extends refusal('HostClosed')<About> {}
/** The scope stopped because its journal cannot record its decisions. It dispatches no more calls. */
export class ScopeFailed extends refusal('ScopeFailed')<About & { readonly cause: unknown }> {}

/** Every error of a call that got no permit, or lost it: `error instanceof AdmissionError`, then its `_tag` says which. */
export type AdmissionError =
  | DeadlineExceeded
  | PendingTimeout
  | ActiveTimeout
  | OutcomeUnknown
  | AlreadySettled
  | DuplicateCall
  | ExceedsLimit
  | AttemptsExhausted
  | NotRetryable
  | Shed
  | Preempted
  | Abandoned
  | Unclaimed
  | Withdrawn
  | HostClosed
  | ScopeFailed

/** The base class of them all. It makes none: each kind has its own class. */
export const AdmissionError = Refusal as unknown as abstract new (about: About) => AdmissionError

const next: Readonly<
  Record<
    Exclude<RejectReason, ShedReason> | ExpireReason,
    readonly [string, new (about: About) => AdmissionError]
  >
> = {
  'already-settled': ['ended already; use a new id to send it again', AlreadySettled],
  'exceeds-limit': [
    'is larger than a declared limit can ever hold; make it smaller or raise policy.limits',
    ExceedsLimit,
  ],
  'attempts-exhausted': [
    'was refused by the provider for its size as often as policy.maxAttempts allows',
    AttemptsExhausted,
  ],
  'not-retryable': ['was refused by the provider for a reason that waiting does not mend', NotRetryable],
  'outcome-unknown': [
    'was running when its host died, so the provider may have done the work; decide whether to send it again under a new id',
    OutcomeUnknown,
  ],
  deadline: ['passed its deadline', DeadlineExceeded],
  'pending-timeout': [
    'waited longer than the policy allows; see explain for what it waited for',
    PendingTimeout,
  ],
  'active-timeout': ['ran longer than the policy allows and was aborted', ActiveTimeout],
  unclaimed: ['was recovered from the journal and nobody asked for it in time', Unclaimed],
  abandoned: ['did not answer the abort that took its place back', Abandoned],
}

/** The error that a `reject` or `expire` decision means to the call's owner. */
export const errorOf = (scope: string, decision: Decision): AdmissionError => {
  const { callId, reason, retryAfterMs } = decision
  if (isShed(reason)) {
    const message = `BUSY: ${busy[reason]}, retry with backoff`
    return new Shed({ scope, callId, reason, retryAfterMs: retryAfterMs ?? 0, message })
  }
  const [sentence, Kind] = next[reason as keyof typeof next]
  return new Kind({ scope, callId, message: `call ${callId} in ${scope} ${sentence}` })
}

const busy: Readonly<Record<ShedReason, string>> = {
  'principal-quota': 'the principal has its quota of calls in use',
  'class-ceiling': 'the places left are kept for higher classes',
  'fair-share': 'the principal has its fair share of the places in use',
  'bucket-empty': 'the principal sends calls of this class too fast',
}

const isShed = (reason: Decision['reason']): reason is ShedReason => Object.hasOwn(busy, reason)

export const preempted = (scope: string, callId: string): Preempted =>
  new Preempted({
    scope,
    callId,
    message: `call ${callId} in ${scope} gave its place to a primary and keeps its turn; submit the same id again`,
  })

/** The reader has a part of the answer, so the call cannot go back to its place. */
export const preemptedWhileRead = (scope: string, callId: string): Preempted =>
  new Preempted({
    scope,
    callId,
    message: `call ${callId} in ${scope} gave its place to a primary while its answer was being read, and has ended; send it again under a new id`,
  })

/** The error for the reader of an answer whose permit is taken back for `reason` while it reads. */
export const whileRead = (reason: unknown): unknown =>
  reason instanceof Preempted ? preemptedWhileRead(reason.scope, reason.callId) : reason

/** The reader did not read on in time. The call has ended and its place is free. */
export class AnswerUnread extends Data.TaggedError('AnswerUnread')<About> {}

export const answerUnread = (scope: string, callId: string, unreadTimeoutMs: number): AnswerUnread =>
  new AnswerUnread({
    scope,
    callId,
    message: `nobody read the answer of call ${callId} in ${scope} for unreadTimeoutMs = ${unreadTimeoutMs}; its place was freed: read the stream to its end, or cancel it`,
  })

export const withdrawn = (scope: string, callId: string): Withdrawn =>
  new Withdrawn({ scope, callId, message: `call ${callId} in ${scope} was withdrawn by an operator` })

export const hostClosed = (scope: string, callId: string): HostClosed =>
  new HostClosed({ scope, callId, message: `host is closed: call ${callId} in ${scope} was released` })

export const duplicateCall = (scope: string, callId: string): DuplicateCall =>
  new DuplicateCall({
    scope,
    callId,
    message: `call ${callId} in ${scope} waits or runs already; ids are idempotency keys, use another`,
  })

export const scopeFailed = (scope: string, callId: string, cause: unknown): ScopeFailed =>
  new ScopeFailed({
    scope,
    callId,
    cause,
    message: `scope ${scope} stopped: ${cause instanceof Error ? cause.message : String(cause)}`,
  })
