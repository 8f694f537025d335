/** Refusals of the gateway's own, as problem documents (RFC 9457). What a provider answers is never one of these. */
import type { ServerResponse } from 'node:http'
import type { AdmissionError } from '../../host/errors.ts'
import { echo, type FieldProblem } from './field-problem.ts'

export interface Problem {
  /** Last part of the type's URN, for example `deadline-exceeded`. */
  readonly name: string
  /** [400, 599]. */
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Seconds after which the same request may do better; null when that is not known or never. */
  readonly retryAfterS: number | null
  /** False tells SDKs not to send the same request again by themselves. */
  readonly retryable: boolean
  /** Further members of the document. */
  readonly members?: Readonly<Record<string, unknown>>
}

const json = 'application/problem+json'

/**
 * The document. `error` repeats the detail where the SDKs of both wires look for a message, under a
 * type that no host takes for a fault of its own request.
 */
export const documentOf = ({ name, status, title, detail, members }: Problem): string =>
  JSON.stringify({
    type: `urn:rightofway:problem:${name}`,
    title,
    status,
    detail,
    ...members,
    error: { type: `rightofway_${name.replaceAll('-', '_')}`, message: detail },
  })

/** Answers with a problem, unless an answer has begun. `own` are further header fields. */
export const sendProblem = (
  response: ServerResponse,
  problem: Problem,
  own: Readonly<Record<string, string>> = {},
): void => {
  if (response.headersSent || response.destroyed) return
  const body = documentOf(problem)
  const { retryAfterS, retryable, status } = problem
  response.writeHead(status, {
    'content-type': json,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    ...(retryable ? {} : { 'x-should-retry': 'false' }),
    ...own,
  })
  response.end(body)
}

/** Fields that are named, of those that cannot be. */
const mostProblems = 10

export const badRequest = (found: ReadonlyArray<FieldProblem>): Problem => {
  const problems = found
    .slice(0, mostProblems)
    .map(({ field, expected, got }) => ({ field: echo(field), expected, got: echo(got, 120) }))
  return badFields(problems)
}

const badFields = (problems: ReadonlyArray<FieldProblem>): Problem => ({
  name: 'bad-field',
  status: 400,
  title: 'The request says something that cannot be',
  detail: problems.map(({ field, expected, got }) => `${field}: expected ${expected}, got ${got}`).join('; '),
  retryAfterS: null,
  retryable: false,
  members: { problems },
})

export const badTarget: Problem = {
  name: 'bad-target',
  status: 400,
  title: 'The target of the request names no path',
  detail: 'the target has to be a path that begins with /, or an absolute http URL, without a fragment',
  retryAfterS: null,
  retryable: false,
}

/** Its answer would repeat the key. */
export const noTrace: Problem = {
  name: 'no-trace',
  status: 405,
  title: 'TRACE is not served',
  detail: 'method: expected any but TRACE, whose answer repeats what was sent, keys and all',
  retryAfterS: null,
  retryable: false,
}

export const unclearLength: Problem = {
  name: 'unclear-length',
  status: 400,
  title: 'The length of the body is not clear',
  detail: 'transfer-encoding: expected none in a request of HTTP/1.0',
  retryAfterS: null,
  retryable: false,
}

export const twoHosts: Problem = {
  name: 'two-hosts',
  status: 400,
  title: 'The request has more than one Host field',
  detail: 'host: expected once, got several; which of them counts is for nobody to guess',
  retryAfterS: null,
  retryable: false,
}

export const notFound = (routes: ReadonlyArray<string>): Problem => ({
  name: 'no-route',
  status: 404,
  title: 'No such route',
  detail: `nothing is served under this path; the routes are ${routes.join(', ')}`,
  retryAfterS: null,
  retryable: false,
  members: { routes },
})

export const notOperator: Problem = {
  name: 'not-operator',
  status: 403,
  title: 'Only the operator may do this',
  detail: "x-rightofway-operator does not carry this installation's token; 'rightofway release' sends it",
  retryAfterS: null,
  retryable: false,
}

const mostNames = 20

const knownNames = (known: ReadonlyArray<string>): string => {
  if (known.length === 0) return 'none yet'
  const rest = known.length - mostNames
  return known.slice(0, mostNames).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

export const unknownScope = (scope: string, known: ReadonlyArray<string>): Problem => ({
  name: 'no-scope',
  status: 404,
  title: 'No such scope',
  detail: `no scope is named ${JSON.stringify(scope.slice(0, 200))}; there are ${knownNames(known)}`,
  retryAfterS: null,
  retryable: false,
})

export const journalFailed = (problem: string): Problem => ({
  name: 'journal-failed',
  status: 503,
  title: 'The journal has failed',
  detail: `nothing is admitted any more: ${problem}; make room or mend the disk, and start the gateway again ('rightofway serve' ends by itself with code 75, for a supervisor to start it)`,
  retryAfterS: null,
  retryable: false,
})

export const tooLarge = (limitBytes: number): Problem => ({
  name: 'body-too-large',
  status: 413,
  title: 'The request body is too large',
  detail: `the body is larger than bodyLimitBytes = ${limitBytes}`,
  retryAfterS: null,
  retryable: false,
  members: { limitBytes },
})

export const encodedBody = (encoding: string): Problem => ({
  name: 'encoded-body',
  status: 415,
  title: 'The request body is encoded',
  detail: `content-encoding: expected identity, got ${echo(encoding)}; the gateway has to see which model is asked`,
  retryAfterS: null,
  retryable: false,
})

export const closing: Problem = {
  name: 'closing',
  status: 503,
  title: 'The gateway is closing',
  detail: 'the gateway takes no new calls; send it again to the next one',
  retryAfterS: 1,
  retryable: true,
}

export const full = (limitBytes: number): Problem => ({
  name: 'full',
  status: 503,
  title: 'Too much is waiting',
  detail: `the bodies of the calls that wait or run would exceed heldBodiesLimitBytes = ${limitBytes}`,
  retryAfterS: 5,
  retryable: true,
})

/** A call of a key and a model that nobody has used yet, while every scope that there is waits, runs or is held back. */
export const tooManyScopes = (limit: number): Problem => ({
  name: 'too-many-scopes',
  status: 503,
  title: 'Too many keys and models',
  detail: `this key and model would be scope ${limit + 1}, scopesLimit = ${limit}, and none of the others may be forgotten now`,
  retryAfterS: 5,
  retryable: true,
})

/** What went wrong may quote the request, so it is neither told nor kept. */
export const fault: Problem = {
  name: 'internal',
  status: 500,
  title: 'The gateway failed',
  detail: 'the gateway met a fault of its own while it handled this request',
  retryAfterS: null,
  retryable: false,
}

/** `what` is the system's own code, such as `ECONNREFUSED`: messages may hold addresses. */
export const unreachable = (upstream: string, what: string): Problem => ({
  name: 'upstream-unreachable',
  status: 502,
  title: 'The upstream did not answer',
  detail: `no answer from upstream ${upstream}: ${what}`,
  retryAfterS: 1,
  retryable: true,
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
