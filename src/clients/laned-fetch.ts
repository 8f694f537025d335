/**
 * A `fetch` that asks for a permit before it sends: any SDK that takes a `fetch` then keeps to its lane. A
 * call that the provider refuses goes back to its place and is sent again in its turn. Usage, limits and
 * errors are read from the answer as it passes. The permit is held until the provider has ended the body,
 * whether or not anybody has read it by then.
 */
import { type Call, InvalidInput, type PolicyInput } from '../../machines/index.ts'
import { currentAmbient } from '../carrier/ambient.ts'
import { systemClock } from '../clock.ts'
import { capacityEvidence, LimitReader } from '../gateway/answers/reading.ts'
import {
  isProblems,
  readCallHeaders,
  requestOfHeaders,
  unknownPriorityWarning,
} from '../gateway/entrance/call-headers.ts'
import { type BytesEstimator, makeBytesEstimator } from '../gateway/identity/estimator.ts'
import { maxOutputIn } from '../gateway/identity/max-output.ts'
import { fieldsOf } from '../gateway/passage/answer.ts'
import { admissionProblem } from '../gateway/problem/call-problems.ts'
import { badRequest, documentOf, type Problem } from '../gateway/problem/problem.ts'
import { Attempts, type Sender } from '../host/attempts.ts'
import { AdmissionError, answerUnread } from '../host/errors.ts'
import { LaneHost, type LaneScope } from '../host/host.ts'
import { kernelOf, runnerOf } from '../host/internal.ts'
import type { Permit, Settlement } from '../host/permit.ts'
import { type CallRequest, callOf } from '../host/request.ts'
import { type ScopeKey, scopeName } from '../host/scope-name.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'
import type { EffectScope } from '../host/service.ts'
import { checkUnreadTimeout } from '../host/unread-timeout.ts'
import { type AskedRequest, headersOf, readAsked, withoutOwn } from './asked-request.ts'
import { currentCall } from './call-context.ts'
import { ThrownRefusals } from './thrown-refusals.ts'
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
   * try again; `throw`: the `AdmissionError` itself, which the SDKs show as the `cause` of their own
   * connection error. A retry by the SDK after it gets the same error and is not submitted again.
   */
  readonly refusals?: 'respond' | 'throw'
  /**
   * An answer is read ahead of its reader, up to 4 MiB. A larger one whose reader stops for this long
   * is broken off, its reader gets `AnswerUnread`, and its place is free. Milliseconds, 1 to 2147483647;
   * default 60000.
   */
  readonly unreadTimeoutMs?: number
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

/** The state that all attempts of one call share. */
interface Course {
  readonly asked: AskedRequest
  readonly runner: ScopeRunner
  readonly call: Call
  readonly signal: AbortSignal | undefined
  readonly provider: string
  readonly send: typeof fetch
  readonly limits: LimitReader
  readonly estimator: BytesEstimator
  readonly unreadTimeoutMs: number
  /** Shown to the caller with the answer; null when there is nothing to say. */
  readonly warning: string | null
}

/**
 * A `fetch` whose every request goes through the lanes. Turn the SDK's own retries off: each retry would be a
 * new call. The headers of a request mean the same as to the gateway (`x-resource-priority`,
 * `x-rightofway-*`, `idempotency-key`); they win over `withCall`, and the provider does not see those of the
 * lanes. Throws `InvalidInput` for an option out of its range.
 */
export const lanedFetch = (
  lanes: LaneScope | LaneHost | EffectScope,
  options: LanedFetchOptions = {},
): typeof fetch => {
  const { call: describe, fetch: send = globalThis.fetch, refusals = 'respond' } = options
  const unreadTimeoutMs = checkUnreadTimeout(options.unreadTimeoutMs)
  const limits = new LimitReader()
  const estimator = makeBytesEstimator()
  const thrown = new ThrownRefusals()
  return async (input, init) => {
    const asked = await readAsked(input, init)
    const described = describe?.(asked)
    if (described === null || (describe === undefined && asked.model === null)) {
      return send(input, { ...init, headers: withoutOwn(asked.headers) })
    }
    const said = readCallHeaders(headersOf(asked.headers))
    if (isProblems(said)) {
      if (refusals === 'throw') throw new InvalidInput(said)
      return problemAnswer(badRequest(said), {})
    }
    const retried = thrown.of(asked, said.sdkRetries)
    if (retried !== null) throw retried
    const { runner, provider } = runnerFor(lanes, asked, options)
    const maxOutputTokens = asked.body === null ? null : maxOutputIn(asked.body)
    const request = {
      inputTokens: asked.body === null ? 0 : estimator.estimate(asked.body, asked.model ?? '', runner.name),
      ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
      ...(describe === undefined ? currentCall() : {}),
      ...requestOfHeaders(said, runner.clock.now()),
      ...described,
    }
    const signal = request.signal ?? asked.signal
    // A header counts from now on the host's own clock; any other deadline is by the machine's.
    const isByHost = said.deadlineMs !== null && described?.deadlineAt === undefined
    const call = callOf(request, runner.name, currentAmbient(), isByHost ? undefined : runner.clock)
    const warning = said.unknownPriority ? unknownPriorityWarning : null
    const course = {
      ...{ asked, runner, call, signal, provider, send, limits, estimator, unreadTimeoutMs, warning },
    }
    try {
      return await new Promise((resolve, reject) => new LanedRequest(course, resolve, reject).start())
    } catch (error) {
      if (!(error instanceof AdmissionError) || signal?.aborted) throw error
      if (refusals === 'throw') throw thrown.keep(asked, error)
      return problemAnswer(admissionProblem(error, 0), { 'x-rightofway-call-id': error.callId })
    }
  }
}

const runnerFor = (
  lanes: LaneScope | LaneHost | EffectScope,
  asked: AskedRequest,
  options: LanedFetchOptions,
): { readonly runner: ScopeRunner; readonly provider: string } => {
  if (!(lanes instanceof LaneHost))
    return { runner: runnerOf(lanes), provider: options.provider ?? (lanes.name.split('/')[0] as string) }
  const provider = options.provider ?? providerAt(asked.url)
  const { credential, model } = asked
  const key = options.scope?.(asked) ?? { provider, credential, ...(model === null ? {} : { model }) }
  return { runner: kernelOf(lanes).scope(scopeName(key), options.policy), provider }
}

/** One request on its way. It is sent again until there is an answer for the caller. */
class LanedRequest implements Sender {
  readonly dispatch = 'withGrant'
  readonly #course: Course
  readonly #attempts: Attempts
  readonly #answered: (response: Response) => void
  readonly #failed: (error: unknown) => void
  #waitsSinceMs: number
  /** In queues, all attempts together. */
  #waitedMs = 0
  #sent = 0

  constructor(course: Course, answered: (response: Response) => void, failed: (error: unknown) => void) {
    this.#course = course
    const { runner, call, signal } = course
    this.#attempts = new Attempts(runner, call, this, signal)
    this.#waitsSinceMs = runner.clock.now()
    this.#answered = answered
    this.#failed = failed
  }

  start(): void {
    this.#attempts.ask()
  }

  granted(permit: Permit): void {
    this.#waitedMs += this.#course.runner.clock.now() - this.#waitsSinceMs
    this.#sent += 1
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
    const { asked, runner, provider, send, limits, unreadTimeoutMs } = this.#course
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
    runner.learn(limits.read(runner.name, provider, headOf(response), receivedAtMs))
    if (response.status >= 300) return this.#refused(response, receivedAtMs)
    permit.accepted()
    const source = {
      provider,
      response,
      receivedAtMs,
      signal: permit.signal,
      clock: runner.clock,
      unreadTimeoutMs,
      unread: () => answerUnread(runner.name, permit.callId, unreadTimeoutMs),
      own: this.#tags,
    }
    this.#answered(watched(source, (end, reading) => this.#bodyEnded(permit, end, reading)))
  }

  /** The answer's header fields of its call, as the gateway's answers have them. */
  get #tags(): Readonly<Record<string, string>> {
    const { call, warning } = this.#course
    return fieldsOf({ callId: call.id, waitedMs: this.#waitedMs, attempts: this.#sent, warning })
  }

  /** Settles the permit; true when the request is sent again from its place. */
  #waitsAgain(settlement: Settlement): boolean {
    this.#waitsSinceMs = this.#course.runner.clock.now()
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
      return this.#answered(remade(response, body, this.#tags))
    }
    if (this.#waitsAgain({ outcome: 'throttled', evidence })) return
    // The scope has tried as often as its policy allows. More tries by the SDK would only add to the load.
    this.#answered(remade(response, body, { ...this.#tags, 'x-should-retry': 'false' }))
  }

  /**
   * The body of a success has ended. Its reader already has a part of it, so the call also ends when a
   * primary took its place.
   */
  #bodyEnded(permit: Permit, end: BodyEnd, reading: AnswerReading): void {
    if (permit.settled) return
    this.#attempts.end(settlementOf(end, permit, reading))
    const { estimator, asked, runner, call } = this.#course
    const { usage } = reading
    if (end === 'complete' && usage !== null && asked.body !== null)
      estimator.learn(asked.body.byteLength, usage, runner.name, call.inputTokens)
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
const problemAnswer = (problem: Problem, own: Readonly<Record<string, string>>): Response => {
  const { status, retryAfterS } = problem
  return new Response(documentOf(problem), {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'x-should-retry': 'false',
      ...own,
      // For a layer above the SDK.
      ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    },
  })
}
