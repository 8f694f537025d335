/**
 * Tokens of the gateway's own: each names a client's principal, classes and lanes. Beside
 * the journal stand their digests alone; a token is shown once, when it is made.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { dirname } from 'node:path'
import { Schema } from 'effect'
import { InvalidInput, lanes, priorityClasses } from '../../../machines/index.ts'
import { decodeOrThrow, text } from '../../../machines/model/invalid.ts'

const TokenSchema = Schema.Struct({
  /** First part of the token itself; says which one it is, and nothing more. */
  id: Schema.String.check(Schema.isPattern(/^[0-9a-f]{12}$/)),
  /** SHA-256 of the whole token. It is random enough to need no salt. */
  digest: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  principal: text(1, 256),
  /** Classes that it may state; null for all. */
  classes: Schema.NullOr(Schema.Array(Schema.Literals(priorityClasses))),
  /** Lanes that its calls may take; null for both. */
  lanes: Schema.NullOr(Schema.Array(Schema.Literals(lanes))),
  /** Epoch milliseconds. */
  createdAt: Schema.Number,
})
const FileSchema = Schema.Struct({ version: Schema.Literal(1), tokens: Schema.Array(TokenSchema) })

export type Token = typeof TokenSchema.Type

/** What a new token may do. */
export type TokenRights = Pick<Token, 'principal' | 'classes' | 'lanes'>

/** Beside the journal; `:memory:` has none. */
export const tokensPathOf = (journalPath: string): string | null =>
  journalPath === ':memory:' ? null : `${journalPath}.tokens`

const digestOf = (token: string): string => createHash('sha256').update(token).digest('hex')

/** Null when there is no file: then nobody needs a token. Throws `InvalidInput` when the file holds something else. */
export const readTokens = (path: string): ReadonlyArray<Token> | null => {
  if (!existsSync(path)) return null
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const got = error instanceof SyntaxError ? 'no JSON' : String(error)
    throw new InvalidInput([{ field: path, expected: 'tokens as `rightofway token add` writes them', got }])
  }
  return decodeOrThrow(FileSchema, path, value).tokens
}

/** Whole or not at all: a gateway may read at any moment. */
const writeTokens = (path: string, tokens: ReadonlyArray<Token>): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const next = `${path}.${process.pid}.next`
  writeFileSync(next, `${JSON.stringify({ version: 1, tokens }, null, 2)}\n`, { mode: 0o600 })
  renameSync(next, path)
}

/** Answers the token itself, which is kept nowhere. */
export const addToken = (path: string, rights: TokenRights, createdAt: number): string => {
  const id = randomBytes(6).toString('hex')
  const token = `row_${id}_${randomBytes(32).toString('base64url')}`
  writeTokens(path, [...(readTokens(path) ?? []), { ...rights, id, digest: digestOf(token), createdAt }])
  return token
}

/** False when no token has this id. The file stays: without tokens nobody may ask. */
export const revokeToken = (path: string, id: string): boolean => {
  const tokens = readTokens(path) ?? []
  const left = tokens.filter((token) => token.id !== id)
  if (left.length === tokens.length) return false
  writeTokens(path, left)
  return true
}

export const tokenHeader = 'x-rightofway-token'
const ownToken = /^Bearer\s+(row_[0-9a-f]{12}_[\w-]{43})\s*$/i

/** How often the file is looked at, milliseconds: what was revoked ends so soon. */
const lookEveryMs = 1_000

/** The tokens of a running gateway: read again when their file changes. */
export class TokenBook {
  readonly #path: string | null
  readonly #nowMs: () => number
  #tokens: ReadonlyMap<string, Token> | null = null
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #stamp = ''

  /** Throws `InvalidInput` when the file cannot be read now. */
  constructor(path: string | null, nowMs: () => number) {
    this.#path = path
    this.#nowMs = nowMs
    this.#look()
  }

  /** Nobody is served without one. */
  get isRequired(): boolean {
    this.#look()
    return this.#tokens !== null
  }

  /**
   * Whose request it is; null when it carries no token that counts. A token in `authorization` is taken
   * out of the request: it is ours, and the provider must not see it.
   */
  holderOf(request: IncomingMessage): Token | null {
    this.#look()
    const own = request.headers[tokenHeader]
    const bearer = ownToken.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) withoutAuthorization(request)
    const said = typeof own === 'string' ? own : bearer
    if (said === undefined) return null
    const token = this.#tokens?.get(said.split('_')[1] ?? '')
    if (token === undefined) return null
    return timingSafeEqual(Buffer.from(digestOf(said)), Buffer.from(token.digest)) ? token : null
  }

  #look(): void {
    const now = this.#nowMs()
    if (this.#path === null || now < this.#lookedAtMs + lookEveryMs) return
    this.#lookedAtMs = now
    const stamp = stampOf(this.#path)
    if (stamp === this.#stamp) return
    try {
      const tokens = readTokens(this.#path)
      // A file that vanished opens nothing that was closed.
      if (tokens !== null || this.#tokens === null)
        this.#tokens = tokens === null ? null : new Map(tokens.map((token) => [token.id, token]))
      this.#stamp = stamp
    } catch (error) {
      // At the start it is an error; later, what was last read holds.
      if (this.#stamp === '') throw error
    }
  }
}

const stampOf = (path: string): string => {
  try {
    const { mtimeMs, size, ino } = statSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return 'none'
  }
}

const withoutAuthorization = (request: IncomingMessage): void => {
  delete request.headers.authorization
  for (let index = request.rawHeaders.length - 2; index >= 0; index -= 2) {
    if (request.rawHeaders[index]?.toLowerCase() === 'authorization') request.rawHeaders.splice(index, 2)
  }
}
