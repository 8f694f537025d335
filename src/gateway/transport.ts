/**
 * The way to the provider, behind a seam: one request out, one answer back, pushed to a listener
 * chunk by chunk. Pushed, because a stream object per answer costs more than the answer itself.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'

export interface TransportRequest {
  readonly method: string
  /** `https://api.anthropic.com`, without a path. */
  readonly origin: string
  /** Path and query, beginning with `/`. */
  readonly path: string
  /** Names and values in turn, as in `rawHeaders`. */
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer | Readable | null
  /** Longest wait for the head of the answer, milliseconds; 0 for none: then the caller bounds it. */
  readonly headTimeoutMs: number
}

export interface AnswerHead {
  /** [200, 599]. */
  readonly status: number
  /** Lower-cased. */
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as the provider wrote them. */
  readonly rawHeaders: ReadonlyArray<string>
}

/** Hears one answer: `head`, then any number of `bytes`, then `end`; or `failed` at any time, and then nothing more. */
export interface AnswerListener {
  head(head: AnswerHead): void
  /** False asks for no more until `Exchange.resume`. */
  bytes(chunk: Buffer): boolean
  end(): void
  failed(error: Error): void
}

/** A request on its way. */
export interface Exchange {
  /** Breaks it off. The listener hears nothing any more. */
  abort(reason: Error): void
  /** Goes on after `bytes` answered false. */
  resume(): void
}

export interface Transport {
  send(request: TransportRequest, listener: AnswerListener): Exchange
  /** Breaks off what is under way and closes every connection. */
  close(): Promise<void>
}

/** Head of an answer at most, bytes. */
const maxHeadBytes = 64 * 1024

/** HTTP/1.1 through undici's dispatcher, with as many connections as calls are in flight. */
export const makeTransport = (): Transport => {
  const pools = new Map<string, Pool>()
  const poolOf = (origin: string): Pool => {
    let pool = pools.get(origin)
    if (pool === undefined) {
      // Silence inside an answer is bounded by the permit, not here: a model may think for minutes.
      pool = new Pool(origin, { allowH2: false, bodyTimeout: 0, maxHeaderSize: maxHeadBytes })
      pools.set(origin, pool)
    }
    return pool
  }
  return {
    send: (request, listener) => {
      const exchange = new UndiciExchange(listener)
      try {
        poolOf(request.origin).dispatch(optionsOf(request), exchange)
      } catch (error) {
        exchange.onResponseError(null, error instanceof Error ? error : new Error(String(error)))
      }
      return exchange
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      pools.clear()
    },
  }
}

const optionsOf = (request: TransportRequest): Dispatcher.DispatchOptions => ({
  path: request.path,
  method: request.method,
  headers: request.headers as Array<string>,
  body: request.body,
  headersTimeout: request.headTimeoutMs,
})

class UndiciExchange implements Exchange, Dispatcher.DispatchHandler {
  readonly #listener: AnswerListener
  #controller: Dispatcher.DispatchController | null = null
  #aborted: Error | null = null

  constructor(listener: AnswerListener) {
    this.#listener = listener
  }

  abort(reason: Error): void {
    if (this.#aborted !== null) return
    this.#aborted = reason
    this.#controller?.abort(reason)
  }

  resume(): void {
    this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted !== null) controller.abort(this.#aborted)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx only announces the answer.
    if (status < 200 || this.#aborted !== null) return
    this.#listener.head({ status, headers, rawHeaders: namesAndValues(controller.rawHeaders) })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#aborted === null && !this.#listener.bytes(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#aborted === null) this.#listener.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#aborted !== null) return
    this.#aborted = error
    this.#listener.failed(error)
  }
}

const namesAndValues = (raw: Dispatcher.DispatchController['rawHeaders']): ReadonlyArray<string> =>
  // Header bytes are Latin-1 on the wire, whatever they mean.
  Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : []
