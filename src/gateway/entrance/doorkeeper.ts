/** Stands before every face of the gateway: by what name, from which page and with which token a request comes. */
import type { IncomingMessage } from 'node:http'
import type { Problem } from '../problem/problem.ts'
import { targetOf } from './target.ts'
import type { Token, TokenBook } from './tokens.ts'
import { isLoopback, type Refusal, type Visitors } from './visitors.ts'

export class Doorkeeper {
  readonly #visitors: Visitors
  readonly #tokens: TokenBook

  constructor(visitors: Visitors, tokens: TokenBook) {
    this.#visitors = visitors
    this.#tokens = tokens
  }

  /** What is wrong with the visitor, before anything else is looked at; null when it may come in. */
  refuses(request: IncomingMessage): Problem | null {
    const refusal = this.#visitors.refuses(request, targetOf(request.url)?.authority ?? null)
    return refusal === null ? null : strangers[refusal]
  }

  /** A page looks after where it is opened from by itself; the name is looked at here all the same. */
  mayOpenPages(request: IncomingMessage): boolean {
    const isOurs = this.#visitors.refuses(request, targetOf(request.url)?.authority ?? null) !== 'host'
    // Pages cannot send a token: where one is needed, they are for this machine alone.
    return isOurs && (!this.#tokens.isRequired || isLoopback(addressOf(request)))
  }

  /** Whose request it is: null where nobody needs a token, a problem where it needs one and has none. */
  holderOf(request: IncomingMessage): Token | Problem | null {
    const token = this.#tokens.holderOf(request)
    return token === null && this.#tokens.isRequired ? needsToken : token
  }
}

export const isToken = (value: Token | Problem | null): value is Token => value !== null && 'digest' in value

const addressOf = ({ socket }: IncomingMessage): string =>
  (socket.remoteAddress ?? '').replace(/^::ffff:/, '')

const stranger = (name: string, title: string, detail: string): Problem => ({
  name,
  status: 403,
  title,
  detail,
  retryAfterS: null,
  retryable: false,
})

const strangers: Readonly<Record<Refusal, Problem>> = {
  host: stranger(
    'unknown-host',
    'This name is not one of ours',
    'host: expected a name of this machine, or one of allowedHosts; a page could point any other name at us',
  ),
  origin: stranger(
    'foreign-page',
    'Pages of other origins are not answered',
    'origin: expected none, our own, or one of allowedOrigins',
  ),
  site: stranger(
    'foreign-page',
    'Pages of other sites are not answered',
    'sec-fetch-site: expected none or same-origin, or an origin of allowedOrigins',
  ),
}

const needsToken: Problem = {
  name: 'no-token',
  status: 401,
  title: 'A token of this gateway is needed',
  detail:
    "x-rightofway-token: expected a token that 'rightofway token add' made and nobody revoked (or the same as a Bearer token in authorization)",
  retryAfterS: null,
  retryable: false,
}
