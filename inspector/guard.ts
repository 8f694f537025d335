/** Who may ask: only names of this machine (and those configured), only pages of this origin. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { hostnameOf, type Refusal, Visitors } from '../src/gateway/entrance/visitors.ts'

export type { Refusal }

/** Nothing from elsewhere, nothing inline, nobody frames it. */
export const securityHeaders: OutgoingHttpHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}

/** Pages are opened from anywhere; their data and their feed are read by this origin alone. */
export class Guard {
  readonly #visitors: Visitors

  constructor(allowedHosts: ReadonlyArray<string> = []) {
    this.#visitors = new Visitors({ allowedHosts })
  }

  refuses(request: IncomingMessage, isData: boolean): Refusal | null {
    const refusal = this.#visitors.refuses(request)
    // A link on another site may open the page itself.
    return refusal === 'site' && !isData ? null : refusal
  }

  /** An XState app streams in from another port, or from no page at all; never from another machine's page. */
  refusesSocket({ headers: { host, origin } }: IncomingMessage): Refusal | null {
    if (!this.#visitors.knows(hostnameOf(host))) return 'host'
    if (origin === undefined) return null
    return this.#visitors.knows(hostnameOf(origin.replace(/^https?:\/\//, ''))) ? null : 'origin'
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time whatever the lengths. */
export const isToken = (given: string | undefined, token: string): boolean =>
  given !== undefined && timingSafeEqual(digest(given), digest(`Bearer ${token}`))
