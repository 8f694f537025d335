/** A gateway on loopback with its provider, for one test. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { PolicyInput } from '../../machines/index.ts'
import type { Clock } from '../../src/clock.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { type Gateway, startGateway } from '../../src/gateway/gateway.ts'
import type { Transport } from '../../src/gateway/passage/transport.ts'
import { type LaneHost, openHost } from '../../src/host/host.ts'
import type { ScopeStatus } from '../../src/index.ts'

/** A request at the scripted upstream, to be answered by the test. */
export interface Arrival {
  readonly request: IncomingMessage
  readonly body: string
  readonly bytes: Buffer
  readonly response: ServerResponse
}

export interface ScriptedUpstream {
  readonly url: string
  /** Requests seen so far. */
  readonly arrivals: ReadonlyArray<Arrival>
  /** The next request, once it is here. */
  next(): Promise<Arrival>
}

/** A provider that answers only what the test writes. */
export const startUpstream = async (): Promise<ScriptedUpstream> => {
  const arrivals: Array<Arrival> = []
  const unread: Array<Arrival> = []
  const waiting: Array<(arrival: Arrival) => void> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    response.on('error', () => {})
    request.on('end', () => {
      const bytes = Buffer.concat(chunks)
      const arrival = { request, response, bytes, body: bytes.toString('utf8') }
      arrivals.push(arrival)
      const taker = waiting.shift()
      if (taker === undefined) unread.push(arrival)
      else taker(arrival)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    next: () => {
      const arrival = unread.shift()
      return arrival === undefined
        ? new Promise((resolve) => waiting.push(resolve))
        : Promise.resolve(arrival)
    },
  }
}

export const secret = 'a secret of the tests'

export interface Setting {
  readonly gateway: Gateway
  readonly host: LaneHost
  /** Where the scripted upstream is served, if there is one. */
  readonly scripted: string
  /** Its scopes added up. */
  inFlight(): number
  waiting(): number
}

export interface SettingOptions {
  readonly upstream?: ScriptedUpstream
  readonly wire?: 'anthropic' | 'openai' | 'gemini' | 'other'
  readonly honoursPriority?: boolean
  readonly asksForUsage?: boolean
  /** Of the scripted upstream. */
  readonly charges?: unknown
  readonly policy?: PolicyInput
  readonly emulator?: {
    readonly rules?: unknown
    readonly firstTokenMs?: number
    readonly perOutputTokenMs?: number
  }
  readonly journal?: string
  /** Default: the machine's own. */
  readonly clock?: Clock
  readonly bodyLimitBytes?: number
  readonly heldBodiesLimitBytes?: number
  readonly scopesLimit?: number
  readonly writeStallMs?: number
  readonly interimAnswersMs?: number
  readonly keepAlive?: 'informational' | 'comments'
  /** Files of a certificate for `localhost`. */
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly transport?: Transport
}

export const startSetting = async (options: SettingOptions = {}): Promise<Setting> => {
  const { upstream, wire = 'anthropic', honoursPriority = false, policy, emulator, transport } = options
  const usage = options.asksForUsage === undefined ? {} : { asksForUsage: options.asksForUsage }
  const charges = options.charges === undefined ? {} : { charges: options.charges }
  const host = await openHost({
    journal: options.journal ?? ':memory:',
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  })
  const config = parseConfig({
    port: 0,
    ...(options.bodyLimitBytes === undefined ? {} : { bodyLimitBytes: options.bodyLimitBytes }),
    ...(options.heldBodiesLimitBytes === undefined
      ? {}
      : { heldBodiesLimitBytes: options.heldBodiesLimitBytes }),
    ...(options.writeStallMs === undefined ? {} : { writeStallMs: options.writeStallMs }),
    ...(options.interimAnswersMs === undefined ? {} : { interimAnswersMs: options.interimAnswersMs }),
    ...(options.keepAlive === undefined ? {} : { keepAlive: options.keepAlive }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...(options.scopesLimit === undefined ? {} : { scopesLimit: options.scopesLimit }),
    ...(upstream === undefined
      ? {}
      : {
          upstreams: [
            { name: 'scripted', baseUrl: upstream.url, wire, honoursPriority, ...usage, ...charges },
          ],
        }),
    ...(policy === undefined ? {} : { policies: { '*': policy } }),
    emulator: { firstTokenMs: 0, perOutputTokenMs: 0, ...emulator },
  })
  const gateway = await startGateway({
    host,
    config,
    secret,
    ...(transport === undefined ? {} : { transport }),
  })
  onTestFinished(async () => {
    const closed = host.close({ graceMs: 1_000 })
    await gateway.close()
    await closed
  })
  const sum = (of: (status: ScopeStatus) => number): number =>
    host.status().reduce((total, status) => total + of(status), 0)
  return {
    gateway,
    host,
    scripted: `${gateway.url}/scripted`,
    inFlight: () => sum(({ primary, auxiliary }) => primary.inFlight + auxiliary.inFlight),
    waiting: () => sum(({ primary, auxiliary }) => primary.waiting + auxiliary.waiting),
  }
}

export const call = { model: 'm', max_tokens: 8, messages: [{ role: 'user', content: 'hello' }] }

/** POSTs a call to `/scripted/v1/messages`, or to `path`. */
export const post = (
  base: string,
  headers: Readonly<Record<string, string>> = {},
  { path = '/v1/messages', body = JSON.stringify(call), signal }: PostOptions = {},
): Promise<Response> =>
  fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'key-a', ...headers },
    body,
    ...(signal === undefined ? {} : { signal }),
  })

interface PostOptions {
  readonly path?: string
  readonly body?: string | Buffer<ArrayBuffer>
  readonly signal?: AbortSignal
}

/** One Anthropic event. */
export const event = (type: string, data: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

export const answerJson = ({ response }: Arrival, usage = { input_tokens: 10, output_tokens: 2 }): void => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ id: 'msg_1', type: 'message', usage }))
}

export const answerStatus = (
  { response }: Arrival,
  status: number,
  error: { readonly type: string; readonly message: string },
  headers: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify({ type: 'error', error }))
}

export const overloaded = { type: 'overloaded_error', message: 'Overloaded' }
