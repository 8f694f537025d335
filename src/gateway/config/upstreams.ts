/** Where requests go: the first segments of a path name an upstream, the rest is the upstream's own. */
import type { Charges } from '../../../machines/index.ts'
import type { Wire } from '../answers/wire.ts'
import { climbs, type Target } from '../entrance/target.ts'

export interface Upstream {
  readonly name: string
  /** Without a trailing slash; may have a path. */
  readonly baseUrl: string
  readonly wire: Wire
  /** First part of its scopes' names, and the hint by which its answers are read. */
  readonly provider: string
  /** Whether it understands `x-resource-priority`. */
  readonly honoursPriority: boolean
  /** Whether chat streams are asked for their usage where the client did not. Default false. */
  readonly asksForUsage?: boolean
  /** How it charges calls, for the policies of its scopes that do not say it themselves; null where nobody said. */
  readonly charges: Charges | null
}

export const reservedNames: ReadonlyArray<string> = ['healthz', 'lanes', 'emulator']

export const builtInUpstreams: ReadonlyArray<Upstream> = [
  {
    name: 'anthropic',
    baseUrl: 'https://api.anthropic.com',
    wire: 'anthropic',
    provider: 'anthropic',
    honoursPriority: false,
    charges: null,
  },
  {
    name: 'openai',
    baseUrl: 'https://api.openai.com',
    wire: 'openai',
    provider: 'openai',
    honoursPriority: false,
    charges: null,
  },
]

/** The two faces of the built-in emulator at `baseUrl`. Their scopes never mix with a real provider's. */
export const emulatorUpstreams = (baseUrl: string): ReadonlyArray<Upstream> =>
  (['anthropic', 'openai'] as const).map((wire) => ({
    name: `emulator/${wire}`,
    baseUrl,
    wire,
    provider: `emulator-${wire}`,
    honoursPriority: true,
    charges: null,
  }))

/** A request's way: its upstream, and the path there. */
export interface Route {
  readonly upstream: Upstream
  readonly origin: string
  /** Without the query. */
  readonly path: string
  /** Without `?`; null when there is none. */
  readonly query: string | null
}

/** Path and query as they go to the upstream: a bare `?` survives. */
export const pathAndQuery = ({ path, query }: Route): string => (query === null ? path : `${path}?${query}`)

interface Destination {
  readonly upstream: Upstream
  readonly origin: string
  readonly basePath: string
}

export interface Router {
  /** Null when the path belongs to no upstream. */
  readonly route: (target: Target) => Route | null
  /** As shown to a client that is lost. */
  readonly routes: ReadonlyArray<string>
}

export const makeRouter = (upstreams: ReadonlyArray<Upstream>): Router => {
  const targets = new Map<string, Destination>()
  for (const upstream of upstreams) {
    const { origin, pathname } = new URL(upstream.baseUrl)
    targets.set(upstream.name, { upstream, origin, basePath: pathname.replace(/\/+$/, '') })
  }
  return {
    route: ({ path, query }) => {
      const found = /^\/((?:emulator\/)?[^/]+)(\/.*)$/.exec(path)
      const target = found === null ? undefined : targets.get(found[1] as string)
      // An upstream's base path is where it begins; what climbs out of it is no route.
      if (found === null || target === undefined || climbs(path)) return null
      const { upstream, origin, basePath } = target
      return { upstream, origin, path: basePath + found[2], query }
    },
    routes: ['/healthz', '/lanes', ...upstreams.map(({ name }) => `/${name}/*`)],
  }
}
