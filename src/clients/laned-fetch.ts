/**
 * A `fetch` that asks for a permit before it sends: any SDK that takes a `fetch` then keeps to its lane. A
 * call that the provider refuses goes back to its place and is sent again in its turn. Usage, limits and
 * errors are read from the answer as it passes. The permit is held until the body ends.
 */
import { randomUUID } from 'node:crypto'
import type { PolicyInput } from '../../machines/index.ts'
import { currentAmbient } from '../carrier/ambient.ts'
import { systemClock } from '../clock.ts'
import { capacityEvidence, LimitReader } from '../gateway/answers/reading.ts'
import { type BytesEstimator, makeBytesEstimator } from '../gateway/identity/estimator.ts'
import { maxOutputIn } from '../gateway/identity/max-output.ts'
import { admissionProblem } from '../gateway/problem/call-problems.ts'
import { Attempts, type Sender } from '../host/attempts.ts'
import type { AdmissionError } from '../host/errors.ts'
import { LaneHost, type LaneScope } from '../host/host.ts'
import { runnerOf } from '../host/internal.ts'
import type { Permit, Settlement } from '../host/permit.ts'
import { type CallRequest, callOf } from '../host/request.ts'
import type { ScopeKey } from '../host/scope-name.ts'
import { type AskedRequest, readAsked } from './asked-request.ts'
import { currentCall } from './call-context.ts'
import { type AnswerReading, type BodyEnd, headOf, remade, watched } from './watched-response.ts'

export interface LanedFetchOptions {
  /**
   * Describes a request as a call; null lets it pass without a permit. Default: for requests that ask a
   * model, the description of `withCall`.
   */
  readonly call?: (asked: AskedRequest) => CallRequest | null
  /** With a host: the scope of a request. Default: its provider, its key's fingerprint and its model. */
  readonly scope?: (asked: AskedRequest) => ScopeKey
  /** With a host: the policy of scopes that it opens. */
  readonly policy?: PolicyInput
  /** Name of the provider. Default: from the scope's name, or from the address. */
  readonly provider?: string
  /** The `fetch` that sends. Default: the global one. */
  readonly fetch?: typeof fetch
  /**
   * The answer for a call that gets no permit. `respond` (default): a problem document that tells SDKs not to
   * try again; `throw`: the `AdmissionError` itself.
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

/** The most bytes of an unsuccessful answer that are kept, to be read and passed on. */
const heldBytes = 1024 * 1024

const plainCall = ({ model }: AskedRequest): CallRequest | null => (model === null ? null : currentCall())

/** The state that all attempts of one call share. */
interface Course {
  readonly asked: AskedRequest
  readonly scope: LaneScope
  readonly request: CallRequest & { readonly id: string }
  readonly provider: string
  readonly send: typeof fetch
  readonly limits: LimitReader
  readonly estimator: BytesEstimator
}

/**
 * A `fetch` whose every request goes through the lanes. Turn the SDK's own retries off: each retry would be a
 * new call.
 */
export const lanedFetch = (lanes: LaneScope | LaneHost, options: LanedFetchOptions = {}): typeof fetch => {
  const { call: describe = plainCall, fetch: send = globalThis.fetch, refusals = 'respond' } = options
  const limits = new LimitReader()
  const estimator = makeBytesEstimator()
  return async (input, init) => {
    const asked = await readAsked(input, init)
    const call = describe(asked)
    if (call === null) return send(input, init)
    const { scope, provider } = scopeOf(lanes, asked, options)
    const estimated = asked.body === null ? 0 : estimator.estimate(asked.body, asked.model ?? '', scope.name)
    const signal = call.signal ?? asked.signal
    const maxOutputTokens = asked.body === null ? null : maxOutputIn(asked.body)
    const request = {
      inputTokens: estimated,
      ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
      ...call,
      id: call.id ?? randomUUID(),
      ...(signal === undefined ? {} : { signal }),
    }
    try {
      const course = { asked, scope, request, provider, send, limits, estimator }
      return await new Promise((resolve, reject) => new LanedRequest(course, resolve, reject).start())
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

/** One request on its way. It is sent again until there is an answer for the caller. */
class LanedRequest implements Sender {
  readonly dispatch = 'withGrant'
  readonly #course: Course
  readonly #attempts: Attempts
  readonly #answered: (response: Response) => void
  readonly #failed: (error: unknown) => void

  constructor(course: Course, answered: (response: Response) => void, failed: (error: unknown) => void) {
    this.#course = course
    const { scope, request } = course
    const call = callOf(request, scope.name, currentAmbient(), runnerOf(scope).clock)
    this.#attempts = new Attempts(runnerOf(scope), call, this, request.signal)
    this.#answered = answered
    this.#failed = failed
  }

  start(): void {
    this.#attempts.ask()
  }

  granted(permit: Permit): void {
    this.#attempt(permit).catch((error: unknown) => {
      // After any failure the place is free again.
      if (!permit.settled) this.#attempts.end({ outcome: permit.isAborted ? 'cancelled' : 'failed' })
      this.#failed(error)
    })
  }

  refused(error: AdmissionError): void {
    this.#failed(error)
  }

  revoked(error: AdmissionError): void {
    this.#failed(error)
  }

  left(reason: unknown): void {
    this.#failed(reason)
  }

  async #attempt(permit: Permit): Promise<void> {
    const { asked, scope, provider, send, limits } = this.#course
    let response: Response
    try {
      response = await asked.send(send, permit.signal)
    } catch (error) {
      if (!permit.isAborted) {
        this.#attempts.settle({ outcome: 'failed' })
        throw error
      }
      if (!this.#waitsAgain({ outcome: 'cancelled' })) throw permit.signal.reason
      return
    }
    const receivedAtMs = systemClock.now()
    scope.learn(limits.read(scope.name, provider, headOf(response), receivedAtMs))
    if (response.status >= 300) return this.#refused(response, receivedAtMs)
    permit.accepted()
    const source = { provider, response, receivedAtMs, signal: permit.signal }
    this.#answered(watched(source, (end, reading) => this.#bodyEnded(permit, end, reading)))
  }

  /** Settles the permit; true when the request is sent again from its place. */
  #waitsAgain(settlement: Settlement): boolean {
    if (this.#course.asked.repeatable) return this.#attempts.settle(settlement) === 'waiting'
    this.#attempts.end(settlement)
    return false
  }

  /**
   * Handles an unsuccessful answer. With evidence, the call goes back to its place; any other answer is the
   * caller's.
   */
  async #refused(response: Response, receivedAtMs: number): Promise<void> {
    const body = new Uint8Array(await response.arrayBuffer())
    const head = Buffer.from(body.subarray(0, heldBytes))
    const evidence = capacityEvidence(this.#course.provider, headOf(response), head, receivedAtMs)
    if (evidence === null) {
      this.#attempts.settle({ outcome: 'failed' })
      return this.#answered(remade(response, body))
    }
    if (this.#waitsAgain({ outcome: 'throttled', evidence })) return
    // The scope has tried as often as its policy allows. More tries by the SDK would only add to the load.
    this.#answered(remade(response, body, { 'x-should-retry': 'false' }))
  }

  /**
   * The body of a success has ended. Its reader already has a part of it, so the call also ends when a
   * primary took its place.
   */
  #bodyEnded(permit: Permit, end: BodyEnd, reading: AnswerReading): void {
    if (permit.settled) return
    this.#attempts.end(settlementOf(end, permit, reading))
    const { estimator, asked, scope, request } = this.#course
    const { usage } = reading
    if (end === 'complete' && usage !== null && asked.body !== null)
      estimator.learn(asked.body.byteLength, usage, scope.name, request.inputTokens ?? 0)
  }
}

const settlementOf = (end: BodyEnd, permit: Permit, { usage, evidence }: AnswerReading): Settlement => {
  const said = usage === null ? {} : { usage }
  if (evidence !== null) {
    const outcome = evidence.kind === 'not-capacity' ? 'failed' : 'throttled'
    return { outcome, evidence, ...said }
  }
  if (end === 'complete') return { outcome: 'completed', ...said }
  if (end === 'truncated') return { outcome: 'failed', cause: 'truncated', ...said }
  return { outcome: end === 'dropped' || permit.isAborted ? 'cancelled' : 'failed', ...said }
}

/** The answer for a call that got no permit, in the shape that SDKs read and do not retry. */
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
      // For a layer above the SDK.
      ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    },
  })
}
