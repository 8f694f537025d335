/**
 * A double of Membrane and of one of its provider adapters, with the shapes and habits of the real ones only.
 */
import type { AdapterOptions, AdapterUsage, ProviderAdapter } from '../../src/clients/membrane-adapter.ts'

export interface MembraneRequest {
  readonly model: string
  readonly prompt: string
}

export interface MembraneResponse {
  readonly text: string
  readonly toolCalls: ReadonlyArray<string>
  readonly usage: AdapterUsage
}

export interface Callbacks {
  readonly onChunk: (token: string) => void
}

export type Adapter = ProviderAdapter<MembraneRequest, MembraneResponse>

/** The error shape of the host. */
export interface HostError {
  readonly type: string
  readonly retryable: boolean
  readonly retryAfterMs?: number
  readonly httpStatus?: number
  readonly rawError?: unknown
}

/** The behaviour of one dispatch: it answers, or it fails when the test says so. */
export interface Sent {
  readonly request: MembraneRequest
  readonly signal: AbortSignal | undefined
  readonly token: (token: string) => void
  readonly answer: (over?: Partial<MembraneResponse>) => void
  readonly fail: (error: unknown) => void
}

/** A provider that remembers the requests that reached it, in order. */
export class ScriptedAdapter implements Adapter {
  readonly name = 'anthropic'
  /** A capability field: hosts look at it. */
  readonly supportsTools = true
  readonly #models = new Set(['opus'])
  readonly sent: Sent[] = []
  /** Prompts in order of their dispatch. */
  readonly log: string[] = []
  /** An adapter that answers no abort. */
  deaf = false

  supportsModel(id: string): boolean {
    return this.#models.has(id)
  }

  complete(request: MembraneRequest, options: AdapterOptions = {}): Promise<MembraneResponse> {
    return this.#send(request, options, () => {})
  }

  stream(
    request: MembraneRequest,
    callbacks: Callbacks,
    options: AdapterOptions = {},
  ): Promise<MembraneResponse> {
    return this.#send(request, options, callbacks.onChunk)
  }

  #send(
    request: MembraneRequest,
    { signal, onRequest }: AdapterOptions,
    token: (token: string) => void,
  ): Promise<MembraneResponse> {
    onRequest?.(request)
    this.log.push(request.prompt)
    return new Promise((resolve, reject) => {
      if (!this.deaf) signal?.addEventListener('abort', () => reject(signal.reason))
      this.sent.push({
        request,
        signal,
        token,
        answer: (over = {}) =>
          resolve({ text: 'ok', toolCalls: [], usage: { inputTokens: 100, outputTokens: 10 }, ...over }),
        fail: reject,
      })
    })
  }

  /** The newest dispatch of a prompt. */
  of(prompt: string): Sent {
    const sent = this.sent.findLast(({ request }) => request.prompt === prompt)
    if (sent === undefined) throw new Error(`${prompt} was not sent; ${this.log.join(', ')} were`)
    return sent
  }
}

const maxRetries = 5

/** A plain error is judged by its words, as hosts do. */
const normalised = (error: unknown): HostError => {
  if (typeof error === 'object' && error !== null && 'type' in error) return error as HostError
  const text = String(error)
  if (/rate/i.test(text)) return { type: 'rate_limit', retryable: true, rawError: error }
  if (/invalid/i.test(text)) return { type: 'invalid_request', retryable: false, rawError: error }
  return { type: 'server', retryable: false, rawError: error }
}

export type StreamEvent =
  | { readonly type: 'tokens'; readonly text: string }
  | { readonly type: 'tool-calls'; readonly calls: ReadonlyArray<string> }
  | { readonly type: 'complete'; readonly response: MembraneResponse }
  | { readonly type: 'error'; readonly error: HostError }
  | { readonly type: 'aborted' }

export class Membrane {
  readonly #adapter: Adapter
  readonly #sleep: (ms: number) => Promise<void>
  /** How often `complete` tried again. */
  retries = 0

  constructor(adapter: Adapter, sleep: (ms: number) => Promise<void> = () => Promise.resolve()) {
    this.#adapter = adapter
    this.#sleep = sleep
  }

  /** Retries retryable errors up to five times, at 1, 2, 4, 8 s. */
  async complete(request: MembraneRequest, options: AdapterOptions = {}): Promise<MembraneResponse> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#adapter.complete(request, options)
      } catch (error) {
        const known = normalised(error)
        if (!known.retryable || attempt >= maxRetries) throw known
        this.retries += 1
        await this.#sleep(1_000 * 2 ** Math.min(attempt, 3))
      }
    }
  }

  /** Never retries. The inference starts when it is iterated. */
  streamYielding(request: MembraneRequest, options: AdapterOptions = {}): YieldingStream {
    return new YieldingStream(this.#adapter, request, options)
  }
}

export class YieldingStream implements AsyncIterable<StreamEvent> {
  readonly #adapter: Adapter
  readonly #request: MembraneRequest
  readonly #options: AdapterOptions
  readonly #cancelled = new AbortController()
  #results: PromiseWithResolvers<void> | null = null

  constructor(adapter: Adapter, request: MembraneRequest, options: AdapterOptions) {
    this.#adapter = adapter
    this.#request = request
    this.#options = options
  }

  get isWaitingForTools(): boolean {
    return this.#results !== null
  }

  provideToolResults(): void {
    this.#results?.resolve()
    this.#results = null
  }

  cancel(): void {
    this.#cancelled.abort(new Error('cancelled'))
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    const signals = [this.#cancelled.signal, ...(this.#options.signal ? [this.#options.signal] : [])]
    const signal = AbortSignal.any(signals)
    for (let round = 1; ; round += 1) {
      const tokens: string[] = []
      const request =
        round === 1 ? this.#request : { ...this.#request, prompt: `${this.#request.prompt}/${round}` }
      try {
        const response = await this.#adapter.stream(
          request,
          { onChunk: (token: string) => tokens.push(token) },
          { ...this.#options, signal },
        )
        for (const text of tokens) yield { type: 'tokens', text }
        if (response.toolCalls.length === 0) {
          yield { type: 'complete', response }
          return
        }
        this.#results = Promise.withResolvers()
        const { promise } = this.#results
        yield { type: 'tool-calls', calls: response.toolCalls }
        await promise
      } catch (error) {
        yield signal.aborted ? { type: 'aborted' } : { type: 'error', error: normalised(error) }
        return
      }
    }
  }
}
