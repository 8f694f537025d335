/** The answers to a page's questions, and the few actions that a page may be allowed. */
import type { IncomingMessage } from 'node:http'
import { InvalidInput } from '../machines/index.ts'
import { isToken } from './guard.ts'
import { HistoryDropped, type Moment } from './history.ts'
import type { ScopesAnswer } from './protocol.ts'
import type { InspectorSource } from './source.ts'

export interface Answer {
  readonly status: number
  readonly body: unknown
}

export interface ActionRights {
  readonly allowActions: boolean
  /** An action needs this token; null allows no action. */
  readonly token: string | null
}

const maxEntries = 10_000
const maxWindow = 200_000
const maxBodyBytes = 64 * 1024

const answer = (status: number, body: unknown): Answer => ({ status, body })
const problem = (status: number, error: string): Answer => answer(status, { error })
const found = (value: unknown, what: string): Answer =>
  value === null ? problem(404, `${what} is not known here`) : answer(200, value)

class BadQuery extends Error {}

const wholeNumber = (query: URLSearchParams, name: string, fallback?: number): number => {
  const text = query.get(name)
  if (text === null && fallback !== undefined) return fallback
  const value = Number(text)
  if (text === null || text === '' || !Number.isSafeInteger(value) || value < 0)
    throw new BadQuery(`${name} must be a whole number of at least 0, got ${JSON.stringify(text)}`)
  return value
}

const required = (query: URLSearchParams, name: string): string => {
  const text = query.get(name)
  if (text === null || text === '') throw new BadQuery(`${name} is missing`)
  return text
}

const momentOf = (query: URLSearchParams): Moment =>
  query.has('position')
    ? { position: wholeNumber(query, 'position') }
    : { at: wholeNumber(query, 'at', Number.MAX_SAFE_INTEGER) }

export class Api {
  readonly #source: InspectorSource
  readonly #rights: ActionRights

  constructor(source: InspectorSource, rights: ActionRights) {
    this.#source = source
    this.#rights = rights
  }

  get mayAct(): boolean {
    return this.#rights.allowActions && this.#rights.token !== null && this.#source.actions !== null
  }

  /** Answers a GET of `path` below `/api/`. */
  async get(path: string, query: URLSearchParams): Promise<Answer> {
    try {
      return await this.#answer(path, query)
    } catch (error) {
      if (error instanceof BadQuery) return problem(400, error.message)
      if (error instanceof HistoryDropped) return problem(410, error.message)
      // The error of an unreadable journal names the row, which is the fact that a person needs.
      return problem(500, error instanceof Error ? error.message : String(error))
    }
  }

  async #answer(path: string, query: URLSearchParams): Promise<Answer> {
    const { history, explain } = this.#source
    switch (path) {
      case 'scopes':
        return answer(200, await this.#scopes(query))
      case 'history': {
        const limit = Math.min(maxWindow, wholeNumber(query, 'limit', 20_000))
        const before = query.has('before') ? wholeNumber(query, 'before') : undefined
        return answer(200, await history.window(required(query, 'scope'), limit, before))
      }
      case 'entries': {
        const scope = query.get('scope')
        const limit = Math.min(maxEntries, Math.max(1, wholeNumber(query, 'limit', 1_000)))
        const page = { after: wholeNumber(query, 'after', 0), limit }
        return answer(200, await history.entries(scope === null ? page : { ...page, scope }))
      }
      case 'state':
        return answer(200, await history.stateAt(required(query, 'scope'), momentOf(query)))
      case 'explain': {
        const callId = required(query, 'call')
        const at = query.has('at') ? wholeNumber(query, 'at') : null
        const told = at === null ? explain(callId) : history.explain(callId, { nowMs: at, untilAt: at })
        return found(await told, `call ${callId}`)
      }
      default:
        return problem(404, 'no such question')
    }
  }

  async #scopes(query: URLSearchParams): Promise<ScopesAnswer> {
    const { live, history, rows, now } = this.#source
    const at = query.has('at') ? wholeNumber(query, 'at') : null
    const scopes = at === null ? await rows() : await history.rowsAt({ at })
    return { live, actions: this.mayAct, now: at ?? now(), scopes }
  }

  /** Carries out a POST of `path` below `/api/actions/`. */
  async act(path: string, request: IncomingMessage): Promise<Answer> {
    const { actions } = this.#source
    const { token } = this.#rights
    if (!this.mayAct || actions === null || token === null) return problem(403, 'this inspector is read-only')
    if (!isToken(request.headers.authorization, token)) return problem(401, 'the token is missing or wrong')
    // A form on another site cannot send this content type without a preflight request.
    if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
      return problem(415, 'content-type must be application/json')
    const body = await readJson(request)
    if (body === null) return problem(400, `the body must be a JSON object of at most ${maxBodyBytes} bytes`)
    const { scope, callId, policy } = body
    if (typeof scope !== 'string') return problem(400, 'scope is missing')
    try {
      switch (path) {
        case 'release-wait':
          return done(actions.releaseWait(scope), scope)
        case 'promote':
          if (typeof callId !== 'string') return problem(400, 'callId is missing')
          return promoted(actions.promote(scope, callId), scope, callId)
        case 'policy':
          if (typeof policy !== 'object' || policy === null) return problem(400, 'policy is missing')
          return done(actions.changePolicy(scope, policy), scope)
        default:
          return problem(404, 'no such action')
      }
    } catch (error) {
      if (error instanceof InvalidInput) return problem(422, error.message)
      throw error
    }
  }
}

const done = (known: boolean, scope: string): Answer =>
  known ? answer(200, { done: true }) : problem(404, `scope ${scope} is not known here, or has stopped`)

const promoted = (result: boolean | 'not-waiting', scope: string, callId: string): Answer =>
  result === 'not-waiting'
    ? problem(
        404,
        `no auxiliary with the id ${callId.slice(0, 200)} waits in scope ${scope}: nothing was promoted`,
      )
    : done(result, scope)

const readJson = async (request: IncomingMessage): Promise<{ readonly [key: string]: unknown } | null> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes > maxBodyBytes) return null
    chunks.push(chunk)
  }
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return typeof body === 'object' && body !== null ? (body as { readonly [key: string]: unknown }) : null
  } catch {
    return null
  }
}
