/**
 * Decides which requests are answered: only for names of this machine (and configured ones), only from pages
 * of this origin.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'

/** Nothing from other origins, nothing inline, no framing. */
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

/** The host of a Host header or an origin, without its port; null when there is none. */
const hostnameOf = (authority: string | undefined): string | null => {
  if (authority === undefined || /[/@\s\\?#]/.test(authority)) return null
  try {
    return new URL(`http://${authority}`).hostname.replace(/\.$/, '')
  } catch {
    return null
  }
}

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)

export type Refusal = 'host' | 'origin' | 'site'

export class Guard {
  readonly #allowedHosts: ReadonlySet<string>

  constructor(allowedHosts: ReadonlyArray<string> = []) {
    this.#allowedHosts = new Set(allowedHosts.map((host) => host.toLowerCase()))
  }

  /**
   * An attacker's DNS name may point at this machine. The Host header then holds that name, even if the
   * browser sees one origin. So the name itself must be a known one.
   */
  refuses(request: IncomingMessage, isData: boolean): Refusal | null {
    const { host, origin } = request.headers
    if (!this.#isKnown(hostnameOf(host))) return 'host'
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return 'origin'
    const site = request.headers['sec-fetch-site']
    return isData && site !== undefined && site !== 'same-origin' && site !== 'none' ? 'site' : null
  }

  /** An XState app streams in from another port, or without any page; never from another machine's page. */
  refusesSocket(request: IncomingMessage): Refusal | null {
    const { host, origin } = request.headers
    if (!this.#isKnown(hostnameOf(host))) return 'host'
    if (origin === undefined) return null
    return this.#isKnown(hostnameOf(origin.replace(/^https?:\/\//, ''))) ? null : 'origin'
  }

  #isKnown(hostname: string | null): boolean {
    return hostname !== null && (isLoopback(hostname) || this.#allowedHosts.has(hostname))
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time, for any lengths. */
export const isToken = (given: string | undefined, token: string): boolean =>
  given !== undefined && timingSafeEqual(digest(given), digest(`Bearer ${token}`))
