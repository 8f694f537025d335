/**
 * The way to the provider, behind a seam: one request out, one answer back, pushed to a listener
 * chunk by chunk.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { agentEnvironment, type ProxyEnvironment } from './proxies.ts'

export interface TransportRequest {
  readonly method: string
  /** `https://api.anthropic.com`, without a path. */
  readonly origin: string
  /** Path and query, beginning with `/`. */
  readonly path: string
  /** Names and values in turn, as in `rawHeaders`; without `host`. */
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer | Readable | null
  /** Longest wait for the head of the answer, milliseconds; 0 for none: then the caller bounds it. */
  readonly headTimeoutMs: number
}

export interface AnswerHead {
  /** [200, 599], or [102, 199] for an interim answer. */
  readonly status: number
  /** Lower-cased; of a field that came several times, the values in one, with commas between. */
  readonly headers: Readonly<Record<string, string>>
  /** Names and values in turn, as the provider wrote them. */
  readonly rawHeaders: ReadonlyArray<string>
}

/** How an exchange failed. */
export interface TransportFailure {
  readonly error: Error
  /** The request, or its last part, has never left this machine: it may be sent again. */
  readonly neverSent: boolean
}

/**
 * Hears one answer: `interim` any number of times, `head`, then any number of `bytes`, then `end`; or
 * `failed` at any time, and then nothing more.
 */
export interface AnswerListener {
  /** An answer that only announces the real one: 103 and its like. Never 100, 101 or 102. */
  interim(head: AnswerHead): void
  head(head: AnswerHead): void
  /** False asks for no more until `Exchange.resume`. */
  bytes(chunk: Buffer): boolean
  /** `rawTrailers`: names and values in turn. */
  end(rawTrailers: ReadonlyArray<string>): void
  failed(failure: TransportFailure): void
}

/** A request on its way. */
export interface Exchange {
  /** Breaks it off. The listener hears nothing any more. */
  abort(): void
  /** Goes on after `bytes` answered false. */
  resume(): void
  /** All of the request has been handed to the operating system: its body is needed no more. */
  readonly isSent: boolean
}

export interface Transport {
  /** The agent of its connections to an origin, for others that connect there. */
  agentFor?(origin: string): HttpAgent
  send(request: TransportRequest, listener: AnswerListener): Exchange
  /** Breaks off what is under way and closes every connection. */
  close(): Promise<void>
}

export interface TransportOptions {
  /**
   * How long a connection is kept that nobody uses, milliseconds. Shorter than servers keep theirs
   * (5 s is the shortest usual time), so that no request goes out on one that is being closed.
   */
  readonly idleMs?: number
  /** `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` count. Default: no proxy. */
  readonly environment?: ProxyEnvironment
}

/** Head of an answer at most, bytes. */
const maxHeadBytes = 64 * 1024

/** HTTP/1.1 through `node:http`, with as many connections as calls are in flight. */
export const makeTransport = ({ idleMs = 4_000, environment = {} }: TransportOptions = {}): Transport => {
  // Silence inside an answer is bounded by the permit, not here: a model may think for minutes.
  const proxyEnv = agentEnvironment(environment)
  const options = {
    keepAlive: true,
    timeout: idleMs,
    maxFreeSockets: 1_024,
    ...(proxyEnv === undefined ? {} : { proxyEnv }),
  }
  const agents = {
    'http:': new HttpAgent(options),
    'https:': new HttpsAgent(options),
    hasHttpProxy: proxyEnv?.['HTTP_PROXY'] !== undefined,
  }
  const underWay = new Set<HttpExchange>()
  return {
    agentFor: (origin) => (origin.startsWith('https:') ? agents['https:'] : agents['http:']),
    send: (request, listener) => {
      const exchange = new HttpExchange(listener, () => underWay.delete(exchange))
      underWay.add(exchange)
      exchange.start(agents, request)
      return exchange
    },
    close: async () => {
      for (const exchange of [...underWay]) exchange.fail(new Error('the transport is closed'))
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

interface Agents {
  readonly 'http:': HttpAgent
  readonly 'https:': HttpsAgent
  readonly hasHttpProxy: boolean
}

class HttpExchange implements Exchange {
  readonly #listener: AnswerListener
  readonly #over: () => void
  #request: ClientRequest | null = null
  #response: IncomingMessage | null = null
  #headTimer: NodeJS.Timeout | null = null
  #isConnected = false
  #isSent = false
  #isOver = false

  constructor(listener: AnswerListener, over: () => void) {
    this.#listener = listener
    this.#over = over
  }

  get isSent(): boolean {
    return this.#isSent
  }

  start(agents: Agents, { method, origin, path, headers, body, headTimeoutMs }: TransportRequest): void {
    const { protocol, hostname, port, host } = new URL(origin)
    const fields = ['host', host, ...headers, ...framing(method, headers, body)]
    const proxied = protocol === 'http:' && agents.hasHttpProxy
    const options = {
      method,
      // Brackets belong to the Host field, not to the address.
      host: hostname.replace(/^\[|\]$/g, ''),
      ...(port === '' ? {} : { port: Number(port) }),
      path,
      headers: proxied ? grouped(fields) : fields,
      maxHeaderSize: maxHeadBytes,
    }
    let request: ClientRequest
    try {
      request =
        protocol === 'https:'
          ? httpsRequest({ ...options, agent: agents['https:'] })
          : httpRequest({ ...options, agent: agents['http:'] })
    } catch (error) {
      // A field or a path that cannot be written: told as any other failure, outside the caller's own work.
      queueMicrotask(() => this.fail(error instanceof Error ? error : new Error(String(error))))
      return
    }
    this.#request = request
    // All fields of an answer count, at any number of them; their size is bounded.
    request.maxHeadersCount = 0
    request.on('error', (error) => this.fail(error))
    request.on('finish', () => {
      this.#isSent = true
    })
    request.on('socket', (socket) => {
      const connected = () => {
        this.#isConnected = true
      }
      // One that came through a proxy's tunnel is open already.
      if (request.reusedSocket || !isConnecting(socket)) connected()
      else socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', connected)
    })
    request.on('information', ({ statusCode, rawHeaders }) => {
      if (!this.#isOver && statusCode > 102) this.#listener.interim(headOf(statusCode, rawHeaders))
    })
    request.on('response', (response) => this.#answered(response))
    if (headTimeoutMs > 0) {
      this.#headTimer = setTimeout(() => {
        const error = new Error(`no head of an answer within ${headTimeoutMs} ms`)
        this.fail(Object.assign(error, { code: 'HEAD_TIMEOUT' }))
      }, headTimeoutMs)
      this.#headTimer.unref()
    }
    if (body === null || Buffer.isBuffer(body)) request.end(body ?? undefined)
    else {
      body.on('error', (error) => this.fail(error))
      body.pipe(request)
    }
  }

  abort(): void {
    if (this.#isOver) return
    this.#finish()
    // Without an error: of an answer that is complete but not read, nobody would listen to its socket any more.
    this.#request?.destroy()
  }

  /** As `abort`, and the listener hears of it. */
  fail(error: Error): void {
    if (this.#isOver) return
    const hasAnswer = this.#response !== null
    // A reused connection may have been closed meanwhile. The upstream never acted on a request that was not handed over in full.
    const neverSent =
      !hasAnswer && (!this.#isConnected || (this.#request?.reusedSocket === true && !this.#isSent))
    this.#finish()
    this.#request?.destroy()
    this.#listener.failed({ error, neverSent })
  }

  resume(): void {
    this.#response?.resume()
  }

  #answered(response: IncomingMessage): void {
    if (this.#isOver) return void response.destroy()
    this.#response = response
    this.#clearTimer()
    response.on('error', (error) => this.fail(error))
    response.on('data', (chunk: Buffer) => {
      if (!this.#isOver && !this.#listener.bytes(chunk)) response.pause()
    })
    response.on('end', () => {
      if (this.#isOver) return
      if (!response.complete) return this.fail(new Error('the answer was cut short'))
      this.#finish()
      this.#listener.end(response.rawTrailers)
    })
    this.#listener.head(headOf(response.statusCode ?? 0, response.rawHeaders))
  }

  #finish(): void {
    this.#isOver = true
    this.#clearTimer()
    this.#over()
  }

  #clearTimer(): void {
    if (this.#headTimer !== null) clearTimeout(this.#headTimer)
    this.#headTimer = null
  }
}

/** What may be open counts as open: a request that may have been sent is not sent again. */
const isConnecting = (socket: Socket): boolean =>
  socket.connecting || ('secureConnecting' in socket && socket.secureConnecting === true)

const headOf = (status: number, rawHeaders: ReadonlyArray<string>): AnswerHead => {
  // Without a prototype: a field may be named as a member of every object.
  const headers: Record<string, string> = Object.create(null)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase()
    const value = rawHeaders[index + 1] as string
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { status, headers, rawHeaders }
}

/** Fields by name: only to these does Node add what it tells a proxy. */
const grouped = (fields: ReadonlyArray<string>): Record<string, string | Array<string>> => {
  const headers: Record<string, string | Array<string>> = Object.create(null)
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = (fields[index] as string).toLowerCase()
    const value = fields[index + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}

/** Methods whose requests have a body as a rule: without one they say so. */
const withBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** How long the body is, where the fields do not say so already. */
const framing = (
  method: string,
  headers: ReadonlyArray<string>,
  body: Buffer | Readable | null,
): ReadonlyArray<string> => {
  if (body === null) return withBody.has(method) ? ['content-length', '0'] : []
  if (Buffer.isBuffer(body)) return ['content-length', String(body.byteLength)]
  const hasLength = headers.some(
    (field, index) => index % 2 === 0 && field.toLowerCase() === 'content-length',
  )
  return hasLength ? [] : ['transfer-encoding', 'chunked']
}
