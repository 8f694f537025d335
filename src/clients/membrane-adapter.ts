/**
 * Decorates a Membrane-shaped provider adapter with admission: every attempt of the layer above enters the
 * lanes again. Nothing of Membrane is imported; the shapes are matched.
 *
 * Calls wait here, inside the adapter, also after a refusal of the provider. The layer above sees a
 * `LaneRefusal`, which it treats neither as the provider's rate limit nor as a fault of the request.
 * `deferring` turns it into the error that the host's queue understands.
 */
import { randomUUID } from 'node:crypto'
import type { Evidence, Usage } from '../../machines/index.ts'
import { currentAmbient } from '../carrier/ambient.ts'
import { evidenceOfError } from '../evidence/error-evidence.ts'
import { Attempts, type Sender } from '../host/attempts.ts'
import { AdmissionError } from '../host/errors.ts'
import type { LaneScope } from '../host/host.ts'
import { runnerOf } from '../host/internal.ts'
import type { Disposition, Permit, Settlement } from '../host/permit.ts'
import { type CallRequest, callOf } from '../host/request.ts'
import { currentCall } from './call-context.ts'

/**
 * The usage that a provider adapter reports. Providers differ in whether `inputTokens` includes the cache.
 */
export interface AdapterUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheCreationTokens?: number
  readonly cacheReadTokens?: number
}

export interface AdapterRequest {
  readonly model: string
}

export interface AdapterOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** Fires right before the request leaves. */
  readonly onRequest?: (request: unknown) => void
}

export interface AdapterResponse {
  readonly usage?: AdapterUsage
}

/** The decorated part of an adapter; every other part passes through. */
export interface ProviderAdapter<Request extends AdapterRequest, Response extends AdapterResponse> {
  readonly name: string
  supportsModel(id: string): boolean
  complete(request: Request, options?: AdapterOptions): Promise<Response>
  stream(request: Request, callbacks: object, options?: AdapterOptions): Promise<Response>
}

export interface LanedAdapterOptions<Request extends AdapterRequest> {
  /** The scope of a request: by default one per credential and model. */
  readonly scope: (request: Request) => LaneScope
  /** Size of a request in input tokens, estimated; settled usage corrects it. Default: 0. */
  readonly estimate?: (request: Request) => number
  /** How usage counts against the provider's limit. Default: input plus cache writes, as Anthropic counts. */
  readonly usage?: (usage: AdapterUsage) => Usage
  /** Reads the evidence in an adapter's error. Default: normalised errors, and errors of SDKs inside them. */
  readonly evidence?: (provider: string, error: unknown) => Evidence | null
}

/** The lanes did not let a call through, in the shape of the host's own errors. */
export class LaneRefusal extends Error {
  /**
   * Not `rate_limit`, which would be retried below, and never `invalid_request`, which would cost history.
   */
  readonly type: 'server' | 'abort'
  readonly retryable = false
  readonly providerAdmission = 'refused'
  /** `DeadlineExceeded`, `PendingTimeout` and so on. */
  readonly tag: AdmissionError['_tag']
  readonly callId: string
  readonly rawError: AdmissionError

  constructor(error: AdmissionError) {
    // The message uses words of its own: a host that searches messages for hints must find none.
    super(`provider lane: ${error._tag} (call ${error.callId})`)
    this.name = 'LaneRefusal'
    this.type = error._tag === 'HostClosed' || error._tag === 'Preempted' ? 'abort' : 'server'
    this.tag = error._tag
    this.callId = error.callId
    this.rawError = error
  }
}

/** Fresh input and cache writes; cache reads do not count against the limit. */
export const cacheApart = ({ inputTokens, outputTokens, cacheCreationTokens = 0 }: AdapterUsage): Usage => ({
  inputTokens: inputTokens + cacheCreationTokens,
  outputTokens,
})

/** `inputTokens` holds the whole prompt, as OpenAI and Gemini count. */
export const cacheIncluded = ({ inputTokens, outputTokens }: AdapterUsage): Usage => ({
  inputTokens,
  outputTokens,
})

/** One request of the layer above: how it is sent, and whether its reader has had a part of the answer. */
interface Dispatch<Response> {
  readonly send: (permit: Permit) => Promise<Response>
  delivered: boolean
}

type Adapter = ProviderAdapter<AdapterRequest, AdapterResponse>

/** The adapter with lanes. Members other than `complete` and `stream` are the adapter's own. */
export const lanedAdapter = <
  Request extends AdapterRequest,
  Response extends AdapterResponse,
  Laned extends ProviderAdapter<Request, Response>,
>(
  adapter: Laned & ProviderAdapter<Request, Response>,
  options: LanedAdapterOptions<Request>,
): Laned => {
  const lanes = new Lanes(
    adapter as unknown as Adapter,
    options as unknown as LanedAdapterOptions<AdapterRequest>,
  )
  const bound = new Map<PropertyKey, unknown>([
    ['complete', lanes.complete],
    ['stream', lanes.stream],
  ])
  return new Proxy(adapter, {
    get: (target, property) => {
      if (bound.has(property)) return bound.get(property)
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      // The adapter's private members work only on the adapter itself, not on its proxy.
      const own = (value as (...args: unknown[]) => unknown).bind(target)
      bound.set(property, own)
      return own
    },
  })
}

class Lanes {
  readonly #adapter: Adapter
  readonly #options: LanedAdapterOptions<AdapterRequest>

  constructor(adapter: Adapter, options: LanedAdapterOptions<AdapterRequest>) {
    this.#adapter = adapter
    this.#options = options
  }

  readonly complete = (request: AdapterRequest, options: AdapterOptions = {}): Promise<AdapterResponse> =>
    this.#run(request, options, {
      delivered: false,
      send: (permit) => this.#adapter.complete(request, { ...options, signal: permit.signal }),
    })

  readonly stream = (
    request: AdapterRequest,
    callbacks: object,
    options: AdapterOptions = {},
  ): Promise<AdapterResponse> => {
    const dispatch: Dispatch<AdapterResponse> = {
      delivered: false,
      send: (permit) => {
        const noted = noting(callbacks, () => {
          dispatch.delivered = true
          permit.accepted()
        })
        return this.#adapter.stream(request, noted, { ...options, signal: permit.signal })
      },
    }
    return this.#run(request, options, dispatch)
  }

  async #run(
    request: AdapterRequest,
    { signal }: AdapterOptions,
    dispatch: Dispatch<AdapterResponse>,
  ): Promise<AdapterResponse> {
    const scope = this.#options.scope(request)
    const asked: CallRequest = {
      ...currentCall(),
      id: randomUUID(),
      inputTokens: this.#options.estimate?.(request) ?? 0,
    }
    const call = callOf(asked, scope.name, currentAmbient(), runnerOf(scope).clock)
    const reading = {
      provider: this.#adapter.name,
      usage: cacheApart,
      evidence: evidenceOfError,
      ...this.#options,
    }
    try {
      return await new Promise((resolve, reject) => {
        const sender = new AdapterCall(dispatch, reading, resolve, reject)
        sender.start(new Attempts(runnerOf(scope), call, sender, signal))
      })
    } catch (error) {
      throw error instanceof AdmissionError && !signal?.aborted ? new LaneRefusal(error) : error
    }
  }
}

type AdapterReading = Required<Pick<LanedAdapterOptions<AdapterRequest>, 'usage' | 'evidence'>> & {
  readonly provider: string
}

/** One request of the layer above, sent until there is an answer. The adapter's promise settles it. */
class AdapterCall implements Sender {
  // The dispatch is recorded before the request is sent, so that a restart can tell "not sent" from
  // "unknown".
  readonly dispatch = 'withGrant'
  readonly #dispatch: Dispatch<AdapterResponse>
  readonly #reading: AdapterReading
  readonly #answered: (response: AdapterResponse) => void
  readonly #failed: (error: unknown) => void
  #attempts: Attempts | null = null

  constructor(
    dispatch: Dispatch<AdapterResponse>,
    reading: AdapterReading,
    answered: (response: AdapterResponse) => void,
    failed: (error: unknown) => void,
  ) {
    this.#dispatch = dispatch
    this.#reading = reading
    this.#answered = answered
    this.#failed = failed
  }

  start(attempts: Attempts): void {
    this.#attempts = attempts
    attempts.ask()
  }

  granted(permit: Permit): void {
    this.#send(permit).then(
      (response) => {
        this.#settle(permit, this.#completed(response))
        this.#answered(response)
      },
      (error: unknown) => this.#attemptFailed(permit, error),
    )
  }

  refused(error: AdmissionError): void {
    this.#failed(error)
  }

  /** Runs also when the adapter does not answer the abort. */
  revoked(error: AdmissionError): void {
    this.#failed(error)
  }

  left(reason: unknown): void {
    this.#failed(reason)
  }

  async #send(permit: Permit): Promise<AdapterResponse> {
    return this.#dispatch.send(permit)
  }

  #completed({ usage }: AdapterResponse): Settlement {
    if (usage === undefined) return { outcome: 'completed' }
    const used = this.#attempts?.read(() => this.#reading.usage(usage)) ?? null
    return used === null ? { outcome: 'completed' } : { outcome: 'completed', usage: used }
  }

  #settle(permit: Permit, settlement: Settlement): Disposition {
    return permit.disposition ?? this.#attempts?.settle(settlement) ?? 'ended'
  }

  #attemptFailed(permit: Permit, error: unknown): void {
    const lost = permit.isAborted ? (permit.signal.reason as unknown) : null
    // The reader has a part of the answer, which cannot be taken back.
    if (this.#dispatch.delivered && !permit.settled) permit.leave()
    if (this.#settle(permit, this.#failure(permit, error)) === 'waiting') return
    this.#failed(lost instanceof AdmissionError ? lost : error)
  }

  #failure(permit: Permit, error: unknown): Settlement {
    if (permit.isAborted) return { outcome: 'cancelled' }
    const { provider } = this.#reading
    const evidence = this.#attempts?.read(() => this.#reading.evidence(provider, error)) ?? null
    return evidence === null ? { outcome: 'failed' } : { outcome: 'throttled', evidence }
  }
}

/** Wraps the callbacks and notes the first call; later calls cost one comparison. */
const noting = (callbacks: object, first: () => void): object => {
  let fresh = true
  const noted: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(callbacks)) {
    if (typeof value !== 'function') {
      noted[name] = value
      continue
    }
    noted[name] = (...args: unknown[]): unknown => {
      if (fresh) {
        fresh = false
        first()
      }
      return (value as (...args: unknown[]) => unknown).apply(callbacks, args)
    }
  }
  return noted
}

/** The `LaneRefusal` inside `error`, at any depth of wrapping; null when there is none. */
export const laneRefusalIn = (error: unknown): LaneRefusal | null => {
  let inner: unknown = error
  for (let depth = 0; depth < 8 && typeof inner === 'object' && inner !== null; depth += 1) {
    if (inner instanceof LaneRefusal) return inner
    const { rawError, cause } = inner as { readonly rawError?: unknown; readonly cause?: unknown }
    inner = rawError ?? cause
  }
  return null
}

/** The host's queue keeps the item and counts no failure for background work that could not go yet. */
export class Deferred extends Error {
  readonly type = 'rate_limit'
  readonly retryable = true
  readonly providerAdmission = 'deferred'
  readonly rawError: LaneRefusal

  constructor(refusal: LaneRefusal) {
    super(`provider lane: deferred (call ${refusal.callId})`)
    this.name = 'Deferred'
    this.rawError = refusal
  }
}

/**
 * Runs background work, above every layer that retries. When the lanes did not let one of its calls through,
 * it rejects with `Deferred`. Other errors pass unchanged.
 */
export const deferring = async <A>(fn: () => Promise<A>): Promise<A> => {
  try {
    return await fn()
  } catch (error) {
    const refusal = laneRefusalIn(error)
    throw refusal === null ? error : new Deferred(refusal)
  }
}
