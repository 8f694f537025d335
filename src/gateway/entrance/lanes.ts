/** What `/lanes` shows. */
import type { ServerResponse } from 'node:http'
import type { Policy } from '../../../machines/index.ts'
import type { LaneHost } from '../../host/host.ts'
import { kernelOf } from '../../host/internal.ts'
import type { Counters } from '../config/counters.ts'
import type { ShownPolicy } from '../config/policies.ts'
import type { Upstream } from '../config/upstreams.ts'
import type { EstimateReading } from '../identity/estimator.ts'
import type { ScopeFinder } from '../identity/scopes.ts'

export interface LanesPorts {
  readonly host: LaneHost
  readonly upstreams: ReadonlyArray<Upstream>
  readonly scopes: ScopeFinder
  /** A scope's policy in force, with the source of each value. */
  readonly policyShown: (scope: string, inForce: Policy) => ShownPolicy
  /** What the estimator has learned, by scope; null when it does not tell. */
  readonly estimates: () => Readonly<Record<string, EstimateReading>> | null
  readonly counters: Counters
}

/** What the door counts itself. */
export interface DoorReadings {
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly liveCalls: number
  readonly sockets: number
  readonly keptPlaces: number
  readonly heldBytes: number
}

/** Content-free: counts, times, names. */
export const lanesOf = (
  { host, counters, upstreams, estimates, scopes, policyShown }: LanesPorts,
  readings: DoorReadings,
): object => ({
  at: kernelOf(host).clock.now(),
  gateway: {
    ...readings,
    scopes: scopes.counts,
    counters,
    estimates: estimates(),
    upstreams: upstreams.map(({ name, provider, wire }) => ({ name, provider, wire })),
  },
  scopes: host.status().map((status) => {
    const policy = kernelOf(host).runners.get(status.scope)?.context.policy
    return policy === undefined ? status : { ...status, policy: policyShown(status.scope, policy) }
  }),
})

export const sendJson = (response: ServerResponse, value: object): void => {
  const body = JSON.stringify(value)
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(body)
}
