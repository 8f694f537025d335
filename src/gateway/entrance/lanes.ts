/** What `/lanes` shows. */
import type { ServerResponse } from 'node:http'
import { kernelOf } from '../../host/internal.ts'
import type { DoorPorts } from './door.ts'

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
  { host, counters, upstreams, estimates, scopes, policyShown }: DoorPorts,
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
