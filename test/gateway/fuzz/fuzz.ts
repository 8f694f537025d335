/** Random clients and random upstreams for a while; then everything has to be as if nobody had been there. */

import { once } from 'node:events'
import { hostSource, makeInspector } from '../../../inspector/server.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import type { Counters } from '../../../src/gateway/config/counters.ts'
import { type Gateway, startGateway } from '../../../src/gateway/gateway.ts'
import { type LaneHost, openHost } from '../../../src/host/host.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { seededRandom } from '../../../src/simulation/random.ts'
import { bytesOf, inputs, types } from '../differential/corpus.ts'
import { head, open } from '../raw.ts'
import { type Draw, pick, startAnything } from './upstream.ts'

export interface FuzzResult {
  readonly requests: number
  /** What the gateway counted meanwhile: a run in which nothing happened shows nothing. */
  readonly counters: Readonly<Counters>
  readonly faults: number
  /** What was still there at the end, by name; all zero when nothing was. */
  readonly left: Readonly<Record<string, number>>
  /** Memory in use at the end, less what it was after the first tenth, bytes. Collected before, where the process may (`--expose-gc`). */
  readonly grownBytes: number
}

const priorities = [
  'interactive',
  'orchestration',
  'background_ingestion',
  'background_ingestion',
  'nonsense',
]

const requestOf = (draw: Draw): string => {
  const kind = draw()
  if (kind < 0.15) return bytesOf(pick(draw, inputs), pick(draw, types), '/scripted')
  if (kind < 0.2)
    return head('GET /inspector/xstate', [
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
    ])
  if (kind < 0.25) return Array.from({ length: 300 }, () => String.fromCharCode(draw() * 256)).join('')
  if (kind < 0.35)
    return head(
      `GET ${pick(draw, ['/lanes', '/healthz', '/scripted/v1/models', '/inspector/api/scopes', '//', '/scripted/%2e%2e/x'])}`,
    )
  const body = JSON.stringify({
    model: pick(draw, ['m', 'n']),
    stream: true,
    pad: 'x'.repeat(draw() * 5_000),
  })
  const fields = [
    `x-api-key: key-${Math.floor(draw() * 12)}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    `x-resource-priority: ${pick(draw, priorities)}`,
    ...(draw() < 0.2 ? [`x-rightofway-deadline-ms: ${1 + Math.floor(draw() * 200)}`] : []),
    ...(draw() < 0.2 ? [`idempotency-key: id-${Math.floor(draw() * 20)}`] : []),
    ...(draw() < 0.2 ? ['x-stainless-retry-count: 1'] : []),
  ]
  return head('POST /scripted/v1/messages', fields) + body
}

/** One client: it sends all or a part, and stays to the end, or goes at any moment, in peace or not. */
const visit = async (gateway: Gateway, draw: Draw): Promise<void> => {
  const socket = open(gateway.url)
  const closed = once(socket, 'close').catch(() => {})
  socket.on('error', () => {})
  const bytes = Buffer.from(requestOf(draw), 'latin1')
  const part = draw() < 0.15 ? bytes.subarray(0, draw() * bytes.length) : bytes
  socket.write(part)
  if (draw() < 0.1) socket.pause()
  else socket.resume()
  const patienceMs = draw() < 0.4 ? draw() * 60 : 400
  const timer = setTimeout(() => (draw() < 0.5 ? socket.resetAndDestroy() : socket.destroy()), patienceMs)
  await closed
  clearTimeout(timer)
}

const leftIn = async (gateway: Gateway, host: LaneHost): Promise<Record<string, number>> => {
  const lanes = (await (await fetch(`${gateway.url}/lanes`)).json()) as {
    gateway: { heldBytes: number; keptPlaces: number; liveCalls: number }
  }
  const { heldBytes, keptPlaces, liveCalls } = lanes.gateway
  const sum = (of: 'inFlight' | 'waiting') =>
    host.status().reduce((total, { primary, auxiliary }) => total + primary[of] + auxiliary[of], 0)
  const permits = [...kernelOf(host).runners.values()].reduce(
    (total, { openPermits }) => total + openPermits,
    0,
  )
  return { heldBytes, keptPlaces, liveCalls, inFlight: sum('inFlight'), waiting: sum('waiting'), permits }
}

const memoryBytes = (): number => {
  globalThis.gc?.()
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return heapUsed + external + arrayBuffers
}

/** Longer than places are kept for clients that left, milliseconds. */
const quietMs = 15_000

export const fuzz = async (seed: number, forMs: number): Promise<FuzzResult> => {
  const draw = seededRandom(seed)
  const upstream = await startAnything(draw)
  const host = await openHost()
  const config = parseConfig({
    port: 0,
    scopesLimit: 10,
    interimAnswersMs: 20,
    writeStallMs: 1_000,
    upstreams: [{ name: 'scripted', baseUrl: upstream.url, wire: 'anthropic' }],
    policies: {
      '*': {
        capacity: 3,
        reserve: 1,
        inFlight: 'cancel',
        graceMs: 20,
        quietWindowMs: 0,
        drainIntervalMs: 0,
        pacingBaseMs: 1,
        pacingMaxMs: 5,
        maxAttempts: 4,
        primaryActiveTimeoutMs: 400,
        auxiliaryActiveTimeoutMs: 400,
        primaryPendingTimeoutMs: 1_000,
        auxiliaryPendingTimeoutMs: 1_000,
      },
    },
  })
  const mount = { prefix: '/inspector', ...makeInspector(hostSource(host)) }
  const gateway = await startGateway({ host, config, secret: 'a secret of the tests', mount })
  const began = performance.now()
  let requests = 0
  let restingBytes = 0
  const worker = async (): Promise<void> => {
    while (performance.now() - began < forMs) {
      requests += 1
      if (restingBytes === 0 && performance.now() - began > forMs / 10) restingBytes = memoryBytes()
      await visit(gateway, draw)
    }
  }
  await Promise.all(Array.from({ length: 24 }, worker))
  let left = await leftIn(gateway, host)
  for (
    const until = performance.now() + quietMs;
    performance.now() < until && Object.values(left).some(Boolean);
  ) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    left = await leftIn(gateway, host)
  }
  const faults = gateway.counters.faults + mount.faults()
  await gateway.close()
  await host.close()
  upstream.close()
  const { counters } = gateway
  return { requests, counters, faults, left, grownBytes: memoryBytes() - restingBytes }
}
