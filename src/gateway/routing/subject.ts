/** A request as the tables look at it: each of its values is read once, and only when a row asks for it. */
import type { IncomingHttpHeaders } from 'node:http'
import { fingerprint } from '../../host/scope-name.ts'
import type { Upstream } from '../config/upstreams.ts'
import { keyOf } from '../identity/credential.ts'
import { memberValue, parsedOr } from '../identity/members.ts'
import { atPointer, type Pointer } from './pointer.ts'

export interface SubjectRequest {
  readonly upstream: Pick<Upstream, 'name' | 'provider'>
  /** The upstream's own, without its query. */
  readonly path: string
  /** Without `?`; null when there is none. */
  readonly query: string | null
  readonly headers: IncomingHttpHeaders
  readonly model: string
  /** Without its encoding. */
  readonly body: Buffer
}

/** Longest header that is read as JSON, and longest payload of a token, characters. */
const longestJson = 16 * 1024

export class Subject {
  readonly request: SubjectRequest
  readonly #secret: string
  readonly #headers = new Map<string, unknown>()
  #credential: string | null = null
  #claims: unknown = null

  /** `secret` keys the fingerprints. */
  constructor(request: SubjectRequest, secret: string) {
    this.request = request
    this.#secret = secret
  }

  /** Fingerprint of the client's key. */
  get credential(): string {
    this.#credential ??= this.sealed(this.#key)
    return this.#credential
  }

  /** A value as a fingerprint of this installation. */
  sealed(value: string): string {
    return fingerprint(value, this.#secret)
  }

  /** The value of a header; with a pointer, the value there in the JSON that the header holds. Null where there is none. */
  header(name: string, pointer: Pointer | null): string | null {
    const given = this.request.headers[name]
    const value = Array.isArray(given) ? given.join(', ') : given
    if (value === undefined || value === '') return null
    if (pointer === null) return value
    if (!this.#headers.has(name)) this.#headers.set(name, boundedJson(value))
    return textOf(atPointer(this.#headers.get(name), pointer))
  }

  /** The value at a JSON pointer into the body; with `inside`, the value there in the JSON text that stands at it. */
  body([first = '', ...rest]: Pointer, inside: Pointer | null): string | null {
    const found = atPointer(memberValue(this.request.body, first), rest)
    if (inside === null) return textOf(found)
    return typeof found === 'string' ? textOf(atPointer(boundedJson(found), inside)) : null
  }

  /** A claim of the client's JSON web token, whose signature is not checked: the provider does that. */
  claim(pointer: Pointer): string | null {
    this.#claims ??= claimsOf(this.#key)
    return textOf(atPointer(this.#claims, pointer))
  }

  get #key(): string {
    return keyOf(this.request.headers, this.request.query ?? '')
  }
}

const boundedJson = (text: string): unknown => (text.length > longestJson ? undefined : parsedOr(text))

const claimsOf = (key: string): unknown => {
  const payload = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(key)?.[1]
  return payload === undefined ? {} : (boundedJson(Buffer.from(payload, 'base64url').toString('utf8')) ?? {})
}

/** Objects and null are no values. */
const textOf = (value: unknown): string | null =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
