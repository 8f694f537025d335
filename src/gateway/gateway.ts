/**
 * The gateway: HTTP in, provider out. `node:http` carries the bytes in, the transport carries them
 * out, and the host decides when.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Server as TlsServer } from 'node:tls'
import { InvalidInput } from '../../machines/index.ts'
import { type Emulator, startEmulator } from '../emulator/index.ts'
import type { LaneHost } from '../host/host.ts'
import type { GatewayConfig } from './config/config.ts'
import { type Counters, makeCounters } from './config/counters.ts'
import { PolicyBook } from './config/policies.ts'
import { emulatorUpstreams, makeRouter } from './config/upstreams.ts'
import { Door } from './entrance/door.ts'
import { Doorkeeper } from './entrance/doorkeeper.ts'
import { EntranceGuard } from './entrance/guarded.ts'
import { operatorToken } from './entrance/operator.ts'
import { targetOf } from './entrance/target.ts'
import { readTls, type TlsKeys, watchTls } from './entrance/tls.ts'
import { TokenBook, tokensPathOf } from './entrance/tokens.ts'
import { isLoopback, Visitors } from './entrance/visitors.ts'
import { type BytesEstimator, makeBytesEstimator, type TokenEstimator } from './identity/estimator.ts'
import { makeScopeFinder } from './identity/scopes.ts'
import type { ProxyEnvironment } from './passage/proxies.ts'
import { makeTransport, type Transport } from './passage/transport.ts'
import { makeRouting } from './routing/routing.ts'

/** A page of its own under a prefix of the gateway, for example the inspector. */
export interface Mount {
  /** `/inspector`, without a slash at the end. */
  readonly prefix: string
  /** Answers a request; `path` is its path and query without the prefix. False when it has no answer. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, path: string) => boolean
  /** Takes a connection over; false when it is none of its own. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer, path: string) => boolean
  readonly close: () => void
}

export interface GatewayOptions {
  readonly host: LaneHost
  readonly mount?: Mount
  readonly config: GatewayConfig
  /** Keys are told apart by fingerprints under this secret; see `installationSecret`. */
  readonly secret: string
  /** Names the proxies to the upstreams: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`. Default: none. */
  readonly environment?: ProxyEnvironment
  /** Default: HTTP/1.1. */
  readonly transport?: Transport
  /** Default: bytes times a ratio that each scope learns. */
  readonly estimator?: TokenEstimator
}

export interface CloseOptions {
  /** How long answers that are under way may go on, milliseconds. Default 0. */
  readonly graceMs?: number
}

/** An occurrence that no scope records. */
export type GatewayNote =
  /** The gateway failed at a request or a connection; `count` of them so far. */
  | { readonly kind: 'fault'; readonly count: number }
  /** A request was refused before it became a call. `problem`: last part of the type's URN. */
  | { readonly kind: 'refused'; readonly problem: string; readonly status: number }

export interface Gateway {
  /** `http://127.0.0.1:4517`, without a path. */
  readonly url: string
  readonly counters: Readonly<Counters>
  readonly emulator: Emulator
  /** Hears of each fault and each refusal of the gateway's own. Returns how to stop. */
  readonly notes: (heard: (note: GatewayNote) => void) => () => void
  /** Sentences about the configuration: policies whose pattern fits no scope. */
  readonly warnings: ReadonlyArray<string>
  /**
   * Replaces the configured policies, by pattern. Every scope follows: those in memory at once, those at rest
   * when they are next used. Throws nothing for policies that `parseConfig` has taken.
   */
  readonly usePolicies: (policies: GatewayConfig['policies']) => void
  /** Calls that wait or run. */
  readonly liveCalls: number
  /**
   * Takes no more calls; those that wait are answered 503, those under way have `graceMs` to end and
   * are then cut as an overload would cut them. Close the host at the same time and waiting calls
   * keep their places in its journal.
   */
  close(options?: CloseOptions): Promise<void>
}

/** Head of a request at most, bytes: cookies and long keys fit. */
const maxHeadBytes = 64 * 1024
/** Time to send a whole request. The wait for its answer is not in it. */
const requestTimeoutMs = 10 * 60_000
/** Longer than the load balancers that may stand in front keep theirs. */
const keepAliveTimeoutMs = 75_000

/** Starts to listen. Rejects with the system's error when the address cannot be had; nothing is left open then. */
export const startGateway = async (options: GatewayOptions): Promise<Gateway> => {
  const { host, config, secret } = options
  const { rules, firstTokenMs, perOutputTokenMs } = config.emulator
  const counters = makeCounters()
  const tokens = new TokenBook(tokensPathOf(config.journal), () => Date.now())
  refuseExposure(config, tokens)
  const isLocal = isLoopback(config.host)
  const { allowedHosts, allowedOrigins } = config
  const visitors = new Visitors({ allowedHosts, allowedOrigins, anyAddress: !isLocal })
  const doorkeeper = new Doorkeeper(visitors, tokens)
  const tls = config.tls === null ? null : readTls(config.tls)
  const own: BytesEstimator | null = options.estimator === undefined ? makeBytesEstimator() : null
  const transport = options.transport ?? makeTransport({ environment: options.environment ?? {} })
  const emulator = await startEmulator({ rules, latency: { firstTokenMs, perOutputTokenMs } })
  const listeners = new Set<(note: GatewayNote) => void>()
  const note = (noted: GatewayNote): void => {
    for (const heard of listeners) heard(noted)
  }
  const faulty = (): void => {
    counters.faults += 1
    note({ kind: 'fault', count: counters.faults })
  }
  const entrance = new EntranceGuard(faulty)
  const upstreams = [...config.upstreams, ...emulatorUpstreams(emulator.url)]
  let book = new PolicyBook(config.policies, upstreams)
  const scopes = await makeScopeFinder(host, {
    policyOf: (scope) => book.of(scope),
    scopesLimit: config.scopesLimit,
  })
  const door = new Door({
    host,
    router: makeRouter(upstreams),
    routing: makeRouting(config),
    secret,
    upstreams,
    scopes,
    policyShown: (scope, inForce) => book.shown(scope, inForce),
    transport,
    estimator: options.estimator ?? (own as BytesEstimator),
    estimates: () => own?.readings() ?? null,
    counters,
    entrance,
    refused: ({ name, status }) => note({ kind: 'refused', problem: name, status }),
    doorkeeper,
    operatorToken: operatorToken(secret),
    bodyLimitBytes: config.bodyLimitBytes,
    heldBodiesLimitBytes: config.heldBodiesLimitBytes,
    scopesLimit: config.scopesLimit,
    writeStallMs: config.writeStallMs,
    interimAnswersMs: config.interimAnswersMs,
    keepAlive: config.keepAlive,
  })
  const { mount } = options
  const server = makeServer(tls, (request, response) => {
    // A peer that vanishes is seen as 'close'; without a listener it would throw.
    request.on('error', () => {})
    response.on('error', () => {})
    // Node drops what came in one piece behind a wish that it leaves unheard: no client may wait for its answer.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    entrance.request(response, () => {
      const path = pathUnder(mount, request.url)
      const isPage = mount !== undefined && path !== null && doorkeeper.mayOpenPages(request)
      if (!isPage || !mount.handle(request, response, path)) door.answer(request, response)
    })
  })
  server.on('upgrade', (request, socket, head) => {
    entrance.socket(socket, () => {
      const path = pathUnder(mount, request.url)
      const isPage = mount !== undefined && path !== null && doorkeeper.mayOpenPages(request)
      if (!isPage || !mount.upgrade(request, socket, head, path)) door.sockets.open(request, socket, head)
    })
  })
  try {
    await listen(server, config.host, config.port)
    // A connection that could not be taken (too many files, for example) is its client's loss alone.
    server.on('error', faulty)
  } catch (error) {
    await Promise.all([emulator.close(), transport.close()])
    throw error
  }
  const unwatch = config.tls === null ? () => {} : watchTls(config.tls, (keys) => renew(server, keys))
  const close = async (graceMs: number): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    mount?.close()
    unwatch()
    await door.close(graceMs)
    server.closeIdleConnections()
    await Promise.race([closed, flushed()])
    server.closeAllConnections()
    await Promise.all([closed, transport.close(), emulator.close()])
  }
  let closing: Promise<void> | null = null
  return {
    url: urlOf(server.address() as AddressInfo, tls === null ? 'http' : 'https'),
    counters,
    emulator,
    notes: (heard) => {
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
    get warnings() {
      return book.warnings
    },
    usePolicies: (policies) => {
      book = new PolicyBook(policies, upstreams)
      scopes.usePolicies((scope) => book.of(scope))
    },
    get liveCalls() {
      return door.liveCalls
    },
    close: ({ graceMs = 0 } = {}) => {
      closing ??= close(graceMs)
      return closing
    },
  }
}

/** Path and query of a request below the mount's prefix; null when it lies elsewhere. */
const pathUnder = (mount: Mount | undefined, url: string | undefined): string | null => {
  const target = targetOf(url)
  if (mount === undefined || target === null || !target.path.startsWith(mount.prefix)) return null
  const path = target.path.slice(mount.prefix.length)
  const query = target.query === null ? '' : `?${target.query}`
  return path === '' || path.startsWith('/') ? path + query : null
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const makeServer = (tls: TlsKeys | null, answer: Answer): Server => {
  const options = {
    maxHeaderSize: maxHeadBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    // Any other wish, such as h2c, is left unheard, and the request is served as it is (RFC 9110 section 7.8).
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => /^websocket$/i.test(headers.upgrade ?? ''),
  }
  return tls === null ? createServer(options, answer) : createTlsServer({ ...options, ...tls }, answer)
}

/** New connections get the new certificate; those that are open keep theirs. Throws when the two do not belong together. */
const renew = (server: Server, keys: TlsKeys): void => {
  if ('setSecureContext' in server) (server as unknown as TlsServer).setSecureContext(keys)
}

/** Every client that can reach the address could use every provider through it. That needs tokens, or `insecure`. */
const refuseExposure = ({ host, insecure }: GatewayConfig, tokens: TokenBook): void => {
  if (isLoopback(host) || insecure || tokens.isRequired) return
  const expected =
    "an address of this machine alone, or tokens ('rightofway token add'), or --insecure where whoever reaches it may use it"
  throw new InvalidInput([{ field: 'config.host', expected, got: JSON.stringify(host) }])
}

const listen = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })

const urlOf = ({ address, family, port }: AddressInfo, scheme: 'http' | 'https'): string =>
  `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`

/** A moment for the last answers to leave the process. */
const flushed = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 250).unref()
  })
