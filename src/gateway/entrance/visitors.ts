/**
 * Which requests may come in, by the name under which they reached the gateway, and by the page
 * that they come from. One check for every face: the gateway, `/lanes`, `/healthz`, the inspector.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/** The host of a Host header or an origin, without its port; null when it is none. */
export const hostnameOf = (authority: string | undefined): string | null => {
  if (authority === undefined || /[/@\s\\?#]/.test(authority)) return null
  try {
    return new URL(`http://${authority}`).hostname.replace(/\.$/, '')
  } catch {
    return null
  }
}

export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  hostname === '::1' ||
  /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)

const isAddress = (hostname: string): boolean => isIP(hostname.replace(/^\[|\]$/g, '')) !== 0

/** Why a request is not answered: the name it was sent to, the page it comes from, or the site of that page. */
export type Refusal = 'host' | 'origin' | 'site'

export interface VisitorRules {
  /** Host names, without port, that are answered beside those of this machine. */
  readonly allowedHosts?: ReadonlyArray<string>
  /** Origins, such as `https://app.example`, whose pages may ask. */
  readonly allowedOrigins?: ReadonlyArray<string>
  /** Any address is a name of ours: nobody can point a name of their own at it. For servers that others reach. */
  readonly anyAddress?: boolean
}

export class Visitors {
  readonly #hosts: ReadonlySet<string>
  readonly #origins: ReadonlySet<string>
  readonly #anyAddress: boolean

  constructor({ allowedHosts = [], allowedOrigins = [], anyAddress = false }: VisitorRules = {}) {
    this.#hosts = new Set(allowedHosts.map((host) => host.toLowerCase()))
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
    this.#anyAddress = anyAddress
  }

  /**
   * A name that an attacker's DNS points at this machine shows in the Host header, whatever the
   * browser believes about origins: so the name itself must be one of ours. `authority` is that of an
   * absolute target, which stands above the field.
   */
  refuses({ headers }: IncomingMessage, authority: string | null = null): Refusal | null {
    const { origin } = headers
    const host = authority ?? headers.host
    if (!this.knows(hostnameOf(host))) return 'host'
    if (origin !== undefined && this.#origins.has(origin.toLowerCase())) return null
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return 'origin'
    const site = headers['sec-fetch-site']
    return site === undefined || site === 'same-origin' || site === 'none' ? null : 'site'
  }

  knows(hostname: string | null): boolean {
    if (hostname === null) return false
    return isLoopback(hostname) || this.#hosts.has(hostname) || (this.#anyAddress && isAddress(hostname))
  }
}
