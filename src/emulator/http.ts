import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, systemClock } from '../clock.ts'
import { answerStream, answerWhole, limitFields, sendAnswer } from './exchange.ts'
import { type Latency, makeProvider, type Provider, type ProviderOptions } from './provider.ts'
import type { LogEntry } from './request-log.ts'
import { anthropicMessages, readCountTokens } from './wire/anthropic-messages.ts'
import { anthropicVendor } from './wire/anthropic-vendor.ts'
import type { Answer, Dialect, JsonObject, Vendor, WireRequest } from './wire/dialect.ts'
import { isInvalid, isObject } from './wire/fields.ts'
import { openaiChat } from './wire/openai-chat.ts'
import { openaiResponses } from './wire/openai-responses.ts'
import { openaiVendor } from './wire/openai-vendor.ts'
import { type Instructions, lengthOf, readInstructions } from './wire/request.ts'

/** Anthropic's documented limit on a request body, bytes. */
const largestBodyBytes = 32 * 1024 * 1024

const dialects: ReadonlyMap<string, Dialect> = new Map([
  ['/v1/messages', anthropicMessages],
  ['/v1/chat/completions', openaiChat],
  ['/v1/responses', openaiResponses],
])

/** Models that `GET /v1/models` lists. Requests for any other name are answered as well. */
const modelIds = ['emulator-large', 'emulator-small'] as const

export interface EmulatorHandlerOptions {
  readonly provider: Provider
  /** Real time by default. */
  readonly clock?: Clock
}

/**
 * Answers one request. `path` is the request's path without the prefix that the emulator is mounted under.
 */
export type EmulatorHandler = (request: IncomingMessage, response: ServerResponse, path?: string) => void

/** A `node:http` request handler that speaks Anthropic Messages and OpenAI Chat Completions and Responses. */
export const makeEmulatorHandler = ({
  provider,
  clock = systemClock,
}: EmulatorHandlerOptions): EmulatorHandler => {
  const door = new Door(provider, clock)
  return (request, response, path = request.url ?? '/') => {
    door.answer(request, response, path.split('?', 1)[0] ?? '/')
  }
}

class Door {
  readonly #provider: Provider
  readonly #clock: Clock
  #requests = 0

  constructor(provider: Provider, clock: Clock) {
    this.#provider = provider
    this.#clock = clock
  }

  answer(request: IncomingMessage, response: ServerResponse, path: string): void {
    // A peer that vanishes is seen as 'close' on the response; without a listener it would throw.
    request.on('error', () => {})
    response.on('error', () => {})
    const requestId = `req_emulator_http_${++this.#requests}`
    const route = routeOf(request, path)
    const send = (answer: Answer): void =>
      sendAnswer(response, this.#clock, answer, route.vendor.headers([], requestId, this.#clock.now()))
    if (route.kind === 'log') {
      this.#sendLog(response)
    } else if (route.kind === 'unknown') {
      send(route.vendor.notFound(path, requestId))
    } else if (!route.vendor.hasKey(request.headers)) {
      send(route.vendor.unauthenticated(requestId))
    } else if (route.kind === 'models') {
      send({ status: 200, headers: {}, body: route.vendor.models(modelIds) })
    } else {
      readBody(request, (body) => {
        const read = readCall(route, request.headers, body, requestId)
        if (!('asked' in read)) send(read)
        else if (route.kind === 'generate') this.#dispatch(route.dialect, read, response, requestId)
        else send(countOf(read))
      })
    }
  }

  #dispatch(
    dialect: Dialect,
    { asked, instructions }: ReadCall,
    response: ServerResponse,
    requestId: string,
  ): void {
    // The client went away while its body was read: no call begins.
    if (response.destroyed) return
    const provider = this.#provider
    const clock = this.#clock
    const { outputTokens, truncated } = lengthOf(instructions, asked)
    const call = {
      atMs: clock.now(),
      callId: instructions.callId ?? requestId,
      requestId,
      inputTokens: instructions.inputTokens,
      outputTokens,
      ...(asked.maxOutputTokens === null ? {} : { maxOutputTokens: asked.maxOutputTokens }),
      ...(instructions.lane === null ? {} : { lane: instructions.lane }),
    }
    const { fault } = instructions
    const begun =
      fault === 'overloaded' || fault === 'spend-cap' ? provider.refuse(call, fault) : provider.begin(call)
    if (!begun.accepted) {
      const answer = dialect.vendor.refused(begun.refusal, asked.model, requestId, call.atMs)
      sendAnswer(response, clock, answer, limitFields(provider, clock, dialect.vendor, requestId))
      return
    }
    const reply = {
      requestId,
      dispatch: begun.dispatch,
      model: asked.model,
      createdAtMs: begun.atMs,
      inputTokens: call.inputTokens,
      outputTokens,
      maxOutputTokens: asked.maxOutputTokens,
      truncated,
      includeUsage: asked.includeUsage,
    }
    const exchange = { provider, clock, dialect, accepted: begun, reply, fault, response }
    if (asked.stream) answerStream(exchange)
    else answerWhole(exchange)
  }

  #sendLog(response: ServerResponse): void {
    const body = { totals: this.#provider.totals(), entries: this.#provider.log() }
    sendAnswer(response, this.#clock, { status: 200, headers: {}, body }, {})
  }
}

type Route =
  | { readonly kind: 'generate'; readonly vendor: Vendor; readonly dialect: Dialect }
  | { readonly kind: 'count' | 'models' | 'log' | 'unknown'; readonly vendor: Vendor }

const routeOf = (request: IncomingMessage, path: string): Route => {
  // Anthropic's version header decides on paths that both vendors have.
  const isAnthropic = path.startsWith('/v1/messages') || request.headers['anthropic-version'] !== undefined
  const vendor = isAnthropic ? anthropicVendor : openaiVendor
  if (request.method === 'GET') {
    return { kind: path === '/v1/models' ? 'models' : path === '/log' ? 'log' : 'unknown', vendor }
  }
  if (request.method !== 'POST') return { kind: 'unknown', vendor }
  const dialect = dialects.get(path)
  if (dialect !== undefined) return { kind: 'generate', vendor: dialect.vendor, dialect }
  return { kind: path === '/v1/messages/count_tokens' ? 'count' : 'unknown', vendor }
}

interface ReadCall {
  readonly asked: WireRequest
  readonly instructions: Instructions
}

/** The call that a body asks for, or the answer that names the body's fault. */
const readCall = (
  route: Route,
  headers: IncomingHttpHeaders,
  body: Buffer | 'too-large',
  requestId: string,
): ReadCall | Answer => {
  const { vendor } = route
  if (body === 'too-large') return vendor.tooLarge(requestId)
  const json = parsed(body)
  if (json === null) return vendor.badJson(requestId)
  const instructions = readInstructions(headers, body.byteLength)
  if (isInvalid(instructions)) return vendor.badField(instructions, requestId)
  const asked = route.kind === 'generate' ? route.dialect.read(json) : readCountTokens(json)
  if (isInvalid(asked)) return vendor.badField(asked, requestId)
  return { asked, instructions }
}

const countOf = ({ instructions }: ReadCall): Answer => ({
  status: 200,
  headers: {},
  body: { input_tokens: instructions.inputTokens },
})

/** Calls back once with the body; never when the client goes away before the body is complete. */
const readBody = (request: IncomingMessage, done: (body: Buffer | 'too-large') => void): void => {
  const chunks: Buffer[] = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    // A body that is too large is still read to its end. Otherwise the client would see a reset instead of
    // the answer.
    if (bytes <= largestBodyBytes) chunks.push(chunk)
    else chunks.length = 0
  })
  request.on('end', () => done(bytes > largestBodyBytes ? 'too-large' : Buffer.concat(chunks)))
}

const parsed = (body: Buffer): JsonObject | null => {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'))
    return isObject(json) ? json : null
  } catch {
    return null
  }
}

export interface EmulatorOptions extends Omit<ProviderOptions, 'latency' | 'seed'> {
  /** Default: no waiting. */
  readonly latency?: Latency
  /** Default 1. */
  readonly seed?: number
  /** TCP port on the loopback interface; 0, the default, takes a free one. */
  readonly port?: number
  /** Real time by default. */
  readonly clock?: Clock
}

export interface Emulator {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string
  readonly provider: Provider
  log(): readonly LogEntry[]
  /** Breaks off all answers in flight and frees the port. */
  close(): Promise<void>
}

/** Starts a provider on loopback. Rejects when the port is taken. */
export const startEmulator = async (options: EmulatorOptions): Promise<Emulator> => {
  const provider = makeProvider({
    ...options,
    latency: options.latency ?? { firstTokenMs: 0, perOutputTokenMs: 0 },
    seed: options.seed ?? 1,
  })
  const handler = makeEmulatorHandler({ provider, clock: options.clock ?? systemClock })
  const server = createServer((request, response) => handler(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    provider,
    log: () => provider.log(),
    close: () =>
      new Promise<void>((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
      }),
  }
}
