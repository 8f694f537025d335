/**
 * A `fetch` that asks for a permit before it sends: it makes any SDK that takes a `fetch` lane-aware.
 * A refusal of the provider goes back to its place and is sent again when its turn comes; usage,
 * limits and errors are read from the answer as it passes; the permit is held until the body ends.
 */
import { randomUUID } from 'node:crypto'
import type { PolicyInput } from '../../machines/index.ts'
import { systemClock } from '../clock.ts'
import { type BytesEstimator, makeBytesEstimator } from '../gateway/estimator.ts'
import { admissionProblem } from '../gateway/problem.ts'
import { capacityEvidence, LimitReader } from '../gateway/reading.ts'
import type { AdmissionError } from '../host/errors.ts'
import { LaneHost, type LaneScope } from '../host/host.ts'
import type { Permit, Settlement } from '../host/permit.ts'
import type { CallRequest } from '../host/request.ts'
import type { ScopeKey } from '../host/scope-name.ts'
import { type AskedRequest, readAsked } from './asked-request.ts'
import { currentCall } from './call-context.ts'
import { type AnswerReading, type BodyEnd, headOf, remade, watched } from './watched-response.ts'

export interface LanedFetchOptions {
  /** What a request is as a call; null lets it pass without a permit. Default: what `withCall` said, for requests that ask a model. */
  readonly call?: (asked: AskedRequest) => CallRequest | null
  /** With a host: the scope of a request. Default: its provider, its key's fingerprint and its model. */
  readonly scope?: (asked: AskedRequest) => ScopeKey
  /** With a host: the policy of scopes that it opens. */
  readonly policy?: PolicyInput
  /** Name of the provider. Default: from the scope's name, or from the address. */
  readonly provider?: string
  /** What sends. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
  /**
   * What becomes of a call that gets no permit. `respond` (default): an answer with a problem document
   * that tells SDKs not to try again; `throw`: the `AdmissionError` itself.
   */
  readonly refusals?: 'respond' | 'throw'
}

const hosts: ReadonlyArray<readonly [RegExp, string]> = [
  [/(?:^|\.)anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)openai\.com$/, 'openai'],
  [/(?:^|\.)googleapis\.com$/, 'gemini'],
]

const providerAt = ({ hostname }: URL): string =>
  hosts.find(([pattern]) => pattern.test(hostname))?.[1] ?? hostname

/** A body that is no success is kept up to here, to be read and passed on. */
const heldBytes = 1024 * 1024

const plainCall = ({ model }: AskedRequest): CallRequest | null => (model === null ? null : currentCall())

/** What the attempts of one call share. */
interface Course {
  readonly asked: AskedRequest
  readonly scope: LaneScope
  readonly request: CallRequest & { readonly id: string }
  readonly provider: string
  readonly send: typeof fetch
  readonly limits: LimitReader
  readonly estimator: BytesEstimator
}

/** The lanes of every request that goes through it. Turn the SDK's own retries off: each would be a new call. */
export const lanedFetch = (lanes: LaneScope | LaneHost, options: LanedFetchOptions = {}): typeof fetch => {
  const { call: callOf = plainCall, fetch: send = globalThis.fetch, refusals = 'respond' } = options
  const limits = new LimitReader()
  const estimator = makeBytesEstimator()
  return async (input, init) => {
    const asked = await readAsked(input, init)
    const call = callOf(asked)
    if (call === null) return send(input, init)
    const { scope, provider } = scopeOf(lanes, asked, options)
    const estimated = asked.body === null ? 0 : estimator.estimate(asked.body, asked.model ?? '', scope.name)
    const signal = call.signal ?? asked.signal
    const request = {
      inputTokens: estimated,
      ...call,
      id: call.id ?? randomUUID(),
      ...(signal === undefined ? {} : { signal }),
    }
    try {
      return await attempts({ asked, scope, request, provider, send, limits, estimator })
    } catch (error) {
      if (refusals === 'throw' || !isAdmissionError(error) || signal?.aborted) throw error
      return refusalOf(error)
    }
  }
}

const scopeOf = (
  lanes: LaneScope | LaneHost,
  asked: AskedRequest,
  options: LanedFetchOptions,
): { readonly scope: LaneScope; readonly provider: string } => {
  if (!(lanes instanceof LaneHost))
    return { scope: lanes, provider: options.provider ?? (lanes.name.split('/')[0] as string) }
  const provider = options.provider ?? providerAt(asked.url)
  const { credential, model } = asked
  const key = options.scope?.(asked) ?? { provider, credential, ...(model === null ? {} : { model }) }
  return { scope: lanes.scope(key, options.policy), provider }
}

const isAdmissionError = (error: unknown): error is AdmissionError =>
  error instanceof Error && 'callId' in error && '_tag' in error

/** Sends until there is an answer for the caller: again after a refusal, or after a primary took the place. */
const attempts = async (course: Course): Promise<Response> => {
  for (;;) {
    const permit = await course.scope.admit(course.request, { dispatchAtOnce: true })
    const answer = await attempt(course, permit)
    if (answer !== null) return answer
  }
}

/** One dispatch; null when the call waits in its place again. */
const attempt = async (course: Course, permit: Permit): Promise<Response | null> => {
  const { asked, scope, provider, send, limits } = course
  let response: Response
  try {
    response = await asked.send(send, permit.signal)
  } catch (error) {
    if (!permit.signal.aborted) {
      permit.settle({ outcome: 'failed' })
      throw error
    }
    return again(course, permit, { outcome: 'cancelled' }, () => {
      throw permit.signal.reason
    })
  }
  const receivedAtMs = systemClock.now()
  scope.learn(limits.read(scope.name, provider, headOf(response), receivedAtMs))
  if (response.status >= 300) return refused(course, permit, response, receivedAtMs)
  permit.accepted()
  return watched({ provider, response, receivedAtMs, signal: permit.signal }, (end, reading) =>
    settle(course, permit, end, reading),
  )
}

/** Settles; null when the call may be sent again from its place, else what `otherwise` gives. */
const again = (
  { asked, scope, request }: Course,
  permit: Permit,
  settlement: Settlement,
  otherwise: () => Response,
): Response | null => {
  if (permit.settled || permit.settle(settlement) === 'ended') return otherwise()
  if (asked.repeatable) return null
  scope.withdraw(request.id)
  return otherwise()
}

/** Any answer but a success: evidence sends the call back to its place, all else is the caller's. */
const refused = async (
  course: Course,
  permit: Permit,
  response: Response,
  receivedAtMs: number,
): Promise<Response | null> => {
  let body: Uint8Array<ArrayBuffer>
  try {
    body = new Uint8Array(await response.arrayBuffer())
  } catch (error) {
    permit.settle({ outcome: permit.signal.aborted ? 'cancelled' : 'failed' })
    throw error
  }
  const evidence = capacityEvidence(
    course.provider,
    headOf(response),
    Buffer.from(body.subarray(0, heldBytes)),
    receivedAtMs,
  )
  if (evidence === null) {
    permit.settle({ outcome: 'failed' })
    return remade(response, body)
  }
  // The scope has tried as often as its policy allows; an SDK that tries on would only add to the load.
  const passedOn = (): Response => remade(response, body, { 'x-should-retry': 'false' })
  return again(course, permit, { outcome: 'throttled', evidence }, passedOn)
}

/** The body of a success has ended. */
const settle = (course: Course, permit: Permit, end: BodyEnd, reading: AnswerReading): void => {
  if (permit.settled) return
  const { usage } = reading
  const disposition = permit.settle(settlementOf(end, permit, reading))
  // A primary took the place in the middle of the answer: the reader has a part of it, and asks anew if it likes.
  if (disposition === 'waiting') course.scope.withdraw(course.request.id)
  const { estimator, asked, scope, request } = course
  if (end === 'complete' && usage !== null && asked.body !== null)
    estimator.learn(asked.body.byteLength, usage, scope.name, request.inputTokens ?? 0)
}

const settlementOf = (end: BodyEnd, permit: Permit, { usage, evidence }: AnswerReading): Settlement => {
  const said = usage === null ? {} : { usage }
  if (evidence !== null) {
    const outcome = evidence.kind === 'not-capacity' ? 'failed' : 'throttled'
    return { outcome, evidence, ...said }
  }
  if (end === 'complete') return { outcome: 'completed', ...said }
  return { outcome: end === 'dropped' || permit.signal.aborted ? 'cancelled' : 'failed', ...said }
}

/** A call that got no permit, as an answer in the shape that SDKs read, and do not try again. */
const refusalOf = (error: AdmissionError): Response => {
  const { name, status, title, detail, retryAfterS } = admissionProblem(error, 0)
  const document = {
    type: `urn:rightofway:problem:${name}`,
    title,
    status,
    detail,
    error: { type: `rightofway_${name.replaceAll('-', '_')}`, message: detail },
  }
  return new Response(JSON.stringify(document), {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'x-should-retry': 'false',
      // For whoever stands above the SDK.
      ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    },
  })
}
