/**
 * The inspector's server: the built page, the live feed, and answers from the journal. It is read-only
 * without `allowActions` and a token. It answers only for names of this machine and sends no request to any
 * other.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { EntranceGuard, refuseUpgrade } from '../src/gateway/entrance/guarded.ts'
import { targetOf } from '../src/gateway/entrance/target.ts'
import type { LaneHost } from '../src/host/host.ts'
import { type Answer, Api } from './api.ts'
import { readAssets } from './assets.ts'
import { Guard, type Refusal, securityHeaders } from './guard.ts'
import type { Frame } from './protocol.ts'
import { AppSocket } from './socket.ts'
import { hostSource, type InspectorSource, journalSource } from './source.ts'
import { sseText, Viewers } from './viewers.ts'

export { compactInspection, scopeSummary } from './compact.ts'
export { hostSource, type InspectorSource, journalSource } from './source.ts'
export { type StatelyStream, streamToStately } from './stately.ts'

export interface InspectorOptions {
  /** Lets an operator release waits, promote calls and change policies. Needs `token`. Default false. */
  readonly allowActions?: boolean
  /** The token that an operator's page must send to act. */
  readonly token?: string
  /** Host names, without port, that are allowed in addition to those of this machine. Default none. */
  readonly allowedHosts?: ReadonlyArray<string>
  /** Folder of the built page. Default: the folder that `npm run build:inspector` writes. */
  readonly pageFolder?: string
  /** The most observations that a slow viewer may fall behind before it loses the oldest. Default 8,192. */
  readonly ringSize?: number
}

/** An inspector that a server mounts under a prefix. */
export interface Inspector {
  /**
   * Answers a request; `path` is its path and query without the prefix. False when the inspector has no
   * answer for it.
   */
  readonly handle: (request: IncomingMessage, response: ServerResponse, path: string) => boolean
  /** Takes a connection over if it is for the inspector: an XState app that streams in. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer, path?: string) => boolean
  /** Number of listening pages, and of frames that slow pages lost so far. */
  readonly viewers: () => { readonly count: number; readonly dropped: number }
  /** Faults of its own so far: requests, connections and messages that it failed on. */
  readonly faults: () => number
  /** Ends the feeds; the host runs on. */
  readonly close: () => void
}

/** Throws RangeError when actions are allowed without a token of at least 16 characters. */
export const makeInspector = (source: InspectorSource, options: InspectorOptions = {}): Inspector =>
  new Desk(source, options)

const maxViewers = 256
const heartbeatMs = 15_000

class Desk implements Inspector {
  /** Names this run: a page that meets another one forgets what it showed. */
  readonly #host = randomUUID()
  readonly #source: InspectorSource
  readonly #api: Api
  readonly #guard: Guard
  readonly #assets: ReturnType<typeof readAssets>
  readonly #viewers: Viewers
  readonly #apps: AppSocket
  readonly #feeds = new Set<ServerResponse>()
  readonly #stopObserving: () => void
  readonly #entrance = new EntranceGuard(() => {
    this.#faults += 1
  })
  #faults = 0

  constructor(source: InspectorSource, options: InspectorOptions) {
    const { allowActions = false, token = null, allowedHosts = [], pageFolder, ringSize } = options
    if (allowActions && (token === null || token.length < 16))
      throw new RangeError(
        `token must have at least 16 characters when actions are allowed, got ${token?.length ?? 'none'}`,
      )
    this.#source = source
    this.#api = new Api(source, { allowActions, token })
    this.#guard = new Guard(allowedHosts)
    this.#assets = readAssets(pageFolder)
    this.#viewers = new Viewers({ rows: source.rowsNow, ...(ringSize === undefined ? {} : { ringSize }) })
    this.#apps = new AppSocket((frame) => this.#viewers.actor(frame), Date.now, this.#entrance)
    this.#stopObserving = source.observe((entry) => this.#viewers.entry(entry))
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse, path: string): boolean => {
    response.on('error', () => {})
    this.#entrance.request(response, () => this.#handle(request, response, path))
    return true
  }

  #handle(request: IncomingMessage, response: ServerResponse, path: string): void {
    const isFolder = path === '' || path.startsWith('?')
    const target = targetOf(isFolder ? `/${path}` : path)
    if (target === null) return this.#send(response, badTarget)
    const { path: pathname, query } = target
    const isData = pathname.startsWith('/api/')
    const refusal = this.#guard.refuses(request, isData)
    if (refusal !== null) this.#send(response, refused(refusal))
    else if (isFolder) this.#redirect(request, response)
    else if (pathname === '/api/feed' && request.method === 'GET') this.#feed(response)
    else if (pathname.startsWith('/api/actions/') && request.method === 'POST')
      this.#answer(response, this.#api.act(pathname.slice('/api/actions/'.length), request))
    else if (request.method !== 'GET' && request.method !== 'HEAD')
      this.#send(response, { status: 405, body: { error: 'only GET is answered here' } })
    else if (isData) {
      const asked = new URLSearchParams(query ?? '')
      this.#answer(response, this.#api.get(pathname.slice('/api/'.length), asked))
    } else this.#page(response, pathname.slice(1) || 'index.html')
  }

  readonly upgrade = (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    path = request.url ?? '/',
  ): boolean => {
    const target = targetOf(path)
    if (target !== null && !target.path.endsWith('/xstate')) return false
    this.#entrance.socket(socket, () => {
      if (target === null) refuseUpgrade(socket, 400, 'Bad Request', badTarget.body.error)
      else if (this.#guard.refusesSocket(request) === null) this.#apps.upgrade(request, socket, head)
      else refuseUpgrade(socket, 403, 'Forbidden', 'pages of other machines are not answered')
    })
    return true
  }

  readonly viewers = () => ({ count: this.#viewers.count, dropped: this.#viewers.dropped })

  readonly faults = () => this.#faults

  readonly close = (): void => {
    this.#stopObserving()
    this.#viewers.close()
    this.#apps.close()
    for (const response of this.#feeds) response.end()
    this.#source.close()
  }

  #answer(response: ServerResponse, answering: Promise<Answer>): void {
    answering.then(
      (answer) => this.#send(response, answer),
      () => this.#send(response, { status: 500, body: { error: 'the inspector failed to answer' } }),
    )
  }

  #send(response: ServerResponse, { status, body }: Answer): void {
    if (response.destroyed) return
    response.writeHead(status, {
      ...securityHeaders,
      'content-type': 'application/json',
      'cache-control': 'no-store',
    })
    response.end(JSON.stringify(body))
  }

  /** The page's own addresses are relative, so its address must end with a slash. */
  #redirect(request: IncomingMessage, response: ServerResponse): void {
    const [pathname = '', query] = (request.url ?? '').split('?', 2)
    const folder = pathname.split('/').at(-1) ?? ''
    const location = `${folder}/${query === undefined ? '' : `?${query}`}`
    response.writeHead(308, { ...securityHeaders, location: location === '/' ? './' : location })
    response.end()
  }

  #page(response: ServerResponse, name: string): void {
    const asset = this.#assets.get(name)
    if (asset === undefined) {
      const error =
        this.#assets.size === 0 ? 'the page is not built; run npm run build:inspector' : 'no such page'
      return this.#send(response, { status: 404, body: { error } })
    }
    response.writeHead(200, {
      ...securityHeaders,
      'content-type': asset.type,
      'content-length': asset.bytes.byteLength,
      'cache-control': asset.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    })
    response.end(asset.bytes)
  }

  #feed(response: ServerResponse): void {
    if (this.#viewers.count >= maxViewers)
      return this.#send(response, { status: 503, body: { error: `${maxViewers} pages listen already` } })
    response.writeHead(200, {
      ...securityHeaders,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    const hello: Frame = {
      kind: 'hello',
      live: this.#source.live,
      actions: this.#api.mayAct,
      host: this.#host,
    }
    const viewer = this.#viewers.join({ write: (text) => response.write(text) }, [
      hello,
      { kind: 'actors', actors: this.#apps.actors },
    ])
    this.#feeds.add(response)
    const tick = () => sseText({ kind: 'clock', nowMs: this.#source.now() })
    const heartbeat = setInterval(() => response.writableNeedDrain || response.write(tick()), heartbeatMs)
    heartbeat.unref()
    response.on('drain', viewer.resume)
    response.on('error', () => {})
    response.on('close', () => {
      clearInterval(heartbeat)
      this.#feeds.delete(response)
      viewer.leave()
    })
  }
}

const refusals: Readonly<Record<Refusal, string>> = {
  host: 'this name is not one of this machine; open the inspector at localhost, or allow the host by configuration',
  origin: 'pages of other origins are not answered',
  site: 'pages of other sites are not answered',
}

const badTarget = { status: 400, body: { error: 'the target of the request names no path' } } as const

const refused = (refusal: Refusal): Answer => ({ status: 403, body: { error: refusals[refusal] } })

export interface AttachOptions extends InspectorOptions {
  /** Port on the loopback interface; 0, the default, takes a free one. */
  readonly port?: number
}

export interface AttachedInspector {
  /** The page's address, for example `http://127.0.0.1:4518/`. */
  readonly url: string
  readonly inspector: Inspector
  readonly close: () => Promise<void>
}

/**
 * Opens an inspector for a host in this process. It does not keep the process alive. Rejects when the port is
 * taken.
 */
export const attachInspector = async (
  host: LaneHost,
  options: AttachOptions = {},
): Promise<AttachedInspector> => {
  const { server, ...attached } = await serve(hostSource(host), options)
  server.unref()
  return attached
}

/** Opens an inspector for a journal file. Rejects when the file is missing or unreadable. */
export const inspectJournal = async (
  path: string,
  options: Omit<AttachOptions, 'allowActions' | 'token'> = {},
): Promise<AttachedInspector> => {
  const { server: _, ...attached } = await serve(await journalSource(path), options)
  return attached
}

const serve = async (
  source: InspectorSource,
  { port = 0, ...options }: AttachOptions,
): Promise<AttachedInspector & { readonly server: Server }> => {
  const inspector = makeInspector(source, options)
  const server = createServer((request, response) => {
    inspector.handle(request, response, request.url ?? '/')
  })
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => {})
    if (!inspector.upgrade(request, socket, head))
      refuseUpgrade(socket, 404, 'Not Found', 'nothing else is served over WebSocket here')
  })
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        // A connection that could not be taken (too many files, for example) is its client's loss alone.
        server.on('error', () => {})
        resolve()
      })
    })
  } catch (error) {
    inspector.close()
    throw error
  }
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    inspector,
    close: async () => {
      inspector.close()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
