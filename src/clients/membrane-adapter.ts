/**
 * Decorates a Membrane-shaped provider adapter with admission: every attempt of the layer above
 * enters the lanes again. Nothing of Membrane is imported; the shapes are matched.
 *
 * Calls are parked here, inside the adapter, also after a refusal of the provider; what the layer
 * above sees of the lanes is a `LaneRefusal`, which it takes neither for a rate limit of the provider
 * nor for a fault of the request. `deferring` makes of it, above, what the host's queue understands.
 */
import { randomUUID } from 'node:crypto'
import type { Evidence, Usage } from '../../machines/index.ts'
import { evidenceOfError } from '../evidence/error-evidence.ts'
import { type AdmissionError, Preempted } from '../host/errors.ts'
import type { LaneScope } from '../host/host.ts'
import type { Disposition, Permit } from '../host/permit.ts'
import type { CallRequest } from '../host/request.ts'
import { currentCall } from './call-context.ts'

/** What a provider adapter says it used. Providers differ in whether `inputTokens` includes the cache. */
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

/** The part of an adapter that is decorated; everything else of it passes through. */
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
  /** What an error of the adapter says of capacity. Default: normalised errors, and those of SDKs inside them. */
  readonly evidence?: (provider: string, error: unknown) => Evidence | null
}

/** A call that the lanes did not let through, in the shape of the host's own errors. */
export class LaneRefusal extends Error {
  /** Not `rate_limit` (it would be retried below), and never `invalid_request` (it would cost history). */
  readonly type: 'server' | 'abort'
  readonly retryable = false
  readonly providerAdmission = 'refused'
  /** `DeadlineExceeded`, `PendingTimeout` and so on. */
  readonly tag: AdmissionError['_tag']
  readonly callId: string
  readonly rawError: AdmissionError

  constructor(error: AdmissionError) {
    // Its own words: a host that searches messages for hints must find none.
    super(`provider lane: ${error._tag} (call ${error.callId})`)
    this.name = 'LaneRefusal'
    this.type = error._tag === 'HostClosed' || error._tag === 'Preempted' ? 'abort' : 'server'
    this.tag = error._tag
    this.callId = error.callId
    this.rawError = error
  }
}

/** Fresh input and what was written to a cache; reads from a cache are free of the limit. */
export const cacheApart = ({ inputTokens, outputTokens, cacheCreationTokens = 0 }: AdapterUsage): Usage => ({
  inputTokens: inputTokens + cacheCreationTokens,
  outputTokens,
})

/** `inputTokens` holds all of the prompt, as OpenAI and Gemini count. */
export const cacheIncluded = ({ inputTokens, outputTokens }: AdapterUsage): Usage => ({
  inputTokens,
  outputTokens,
})

const isAdmissionError = (error: unknown): error is AdmissionError =>
  error instanceof Error && '_tag' in error && 'callId' in error

/** One request of the layer above: how it is sent, and whether its reader has had a part of the answer. */
interface Dispatch<Response> {
  readonly send: (permit: Permit) => Promise<Response>
  delivered: boolean
}

type Adapter = ProviderAdapter<AdapterRequest, AdapterResponse>

/** The adapter, laned. What it has beside `complete` and `stream` is the adapter's own. */
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
      // Private members are reached through the adapter only, not through its proxy.
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
    const call: CallRequest & { readonly id: string } = {
      ...currentCall(),
      id: randomUUID(),
      inputTokens: this.#options.estimate?.(request) ?? 0,
      ...(signal === undefined ? {} : { signal }),
    }
    try {
      for (;;) {
        const permit = await scope.admit(call)
        // On record before it is sent, so that a restart can tell "not sent" from "unknown".
        await permit.dispatched()
        const answer = await this.#attempt(scope, call, permit, dispatch)
        if (answer !== null) return answer
      }
    } catch (error) {
      throw isAdmissionError(error) && !signal?.aborted ? new LaneRefusal(error) : error
    }
  }

  /** One dispatch; null when the call waits in its place again. It settles with the adapter's promise. */
  async #attempt(
    scope: LaneScope,
    call: { readonly id: string },
    permit: Permit,
    dispatch: Dispatch<AdapterResponse>,
  ): Promise<AdapterResponse | null> {
    try {
      const response = await untilLost(permit, dispatch.send(permit))
      const { usage: read = cacheApart } = this.#options
      if (!permit.settled)
        permit.settle({
          outcome: 'completed',
          ...(response.usage === undefined ? {} : { usage: read(response.usage) }),
        })
      return response
    } catch (error) {
      const lost = permit.signal.reason as unknown
      const disposition = permit.settled ? 'ended' : this.#settleFailure(permit, error)
      if (disposition === 'ended') throw isAdmissionError(lost) ? lost : error
      if (!dispatch.delivered) return null
      // Its reader has a part of the answer, which cannot be taken back.
      scope.withdraw(call.id)
      throw lost instanceof Preempted ? lost : error
    }
  }

  #settleFailure(permit: Permit, error: unknown): Disposition {
    if (permit.signal.aborted) return permit.settle({ outcome: 'cancelled' })
    const { evidence: read = evidenceOfError } = this.#options
    const evidence = read(this.#adapter.name, error)
    return evidence === null
      ? permit.settle({ outcome: 'failed' })
      : permit.settle({ outcome: 'throttled', evidence })
  }
}

/** `sent`, or the error of a permit that was taken away for good from an adapter that does not answer its abort. */
const untilLost = <A>(permit: Permit, sent: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const lost = (): void => reject(permit.lost.reason)
    permit.lost.addEventListener('abort', lost, { once: true })
    sent.then(resolve, reject).finally(() => permit.lost.removeEventListener('abort', lost))
  })

/** The callbacks, the first of which is noted; the others cost a comparison. */
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

/** A refusal of the lanes below `error`, however often it was wrapped; null when there is none. */
export const laneRefusalIn = (error: unknown): LaneRefusal | null => {
  let inner: unknown = error
  for (let depth = 0; depth < 8 && typeof inner === 'object' && inner !== null; depth += 1) {
    if (inner instanceof LaneRefusal) return inner
    const { rawError, cause } = inner as { readonly rawError?: unknown; readonly cause?: unknown }
    inner = rawError ?? cause
  }
  return null
}

/** What a host's queue does with background work that could not go yet: it counts no failure and keeps the item. */
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
 * Runs background work, above everything that retries: where the lanes did not let a call of it
 * through, it rejects with `Deferred`. Errors of any other kind pass as they are.
 */
export const deferring = async <A>(fn: () => Promise<A>): Promise<A> => {
  try {
    return await fn()
  } catch (error) {
    const refusal = laneRefusalIn(error)
    throw refusal === null ? error : new Deferred(refusal)
  }
}
