/** Random clients and a random provider over WebSocket: at the end everything is as if nobody had been there. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { seededRandom } from '../../../src/simulation/random.ts'
import { startSetting } from '../setting.ts'

type Draw = () => number

const pick = <A>(draw: Draw, from: ReadonlyArray<A>): A => from[Math.floor(draw() * from.length)] as A

const priorities = ['interactive', 'orchestration', 'background_ingestion']

const clientMessage = (draw: Draw): string | Buffer => {
  const kind = draw()
  if (kind < 0.6)
    return JSON.stringify({
      type: 'response.create',
      model: pick(draw, ['m', 'n']),
      input: 'x'.repeat(draw() * 500),
    })
  if (kind < 0.7) return Buffer.from([1, 2, 3])
  return pick(draw, [
    'no JSON',
    '{"type":"response.create"',
    '{"type":"response.create","model":7}',
    `{"type":"response.create","model":${JSON.stringify('m'.repeat(900))}}`,
    '{"type":"response.cancel"}',
    'null',
    '',
  ])
}

const providerMessage = (draw: Draw): string | Buffer => {
  const response = pick(draw, [
    { id: pick(draw, ['a', 'b', 'c']) },
    {},
    null,
    { id: 'a', usage: { input_tokens: -1 } },
  ])
  const type = pick(draw, [
    'response.created',
    'response.completed',
    'response.done',
    'response.failed',
    'error',
    'response.output_text.delta',
    'session.updated',
  ])
  if (draw() < 0.1)
    return pick(draw, ['', 'x', '[]', '{"type":"response.completed","response":', '{"type":{}}'])
  const error = pick(draw, [
    undefined,
    null,
    {},
    { code: 'rate_limit_exceeded', message: 'Rate limit reached' },
  ])
  return JSON.stringify({
    type,
    response,
    error,
    status: pick(draw, [undefined, 429, 'x']),
    session: { model: 'm' },
  })
}

const startAnything = async (draw: Draw): Promise<string> => {
  const server = createServer((_, response) => response.writeHead(pick(draw, [404, 405, 429, 500])).end())
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    if (draw() < 0.1) return void socket.end('HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n')
    if (draw() < 0.05) return void socket.destroy()
    sockets.handleUpgrade(request, socket, head, (peer) => {
      peer.on('error', () => {})
      peer.on('message', () => {
        for (let said = 0; said < 1 + draw() * 4; said += 1) peer.send(providerMessage(draw))
        const ending = draw()
        if (ending < 0.03) peer.close(pick(draw, [1_000, 1_011, 4_000]))
        else if (ending < 0.06) peer.terminate()
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const visit = (url: string, draw: Draw): Promise<void> =>
  new Promise((resolve) => {
    const headers = {
      'x-api-key': `key-${Math.floor(draw() * 4)}`,
      'x-resource-priority': pick(draw, priorities),
    }
    const client = new WebSocket(url, { headers })
    client.on('error', () => {})
    client.on('close', () => resolve())
    client.on('open', () => {
      for (let said = 0; said < draw() * 6; said += 1) client.send(clientMessage(draw))
      if (draw() < 0.1) client.pause()
      setTimeout(() => (draw() < 0.5 ? client.close(1_000) : client.terminate()), draw() * 80)
    })
    setTimeout(() => client.terminate(), 500)
  })

it('random messages, breaks and preemptions leave nothing behind', async () => {
  const seed = Number(process.env['RIGHTOFWAY_SEED'] ?? 20_260)
  const draw = seededRandom(seed)
  const url = await startAnything(draw)
  const upstream = { url, arrivals: [], next: () => Promise.reject(new Error('anything')) }
  const policy = {
    capacity: 2,
    reserve: 0,
    inFlight: 'cancel',
    graceMs: 5,
    pacingBaseMs: 1,
    pacingMaxMs: 4,
    quietWindowMs: 2,
    primaryPendingTimeoutMs: 300,
    primaryActiveTimeoutMs: 150,
    auxiliaryActiveTimeoutMs: 150,
  } as const
  const setting = await startSetting({ upstream, wire: 'openai', policy, interimAnswersMs: 10 })
  const target = `${setting.scripted.replace('http', 'ws')}/v1/responses`
  const until = performance.now() + 3_000
  let visits = 0
  const visitor = async (): Promise<void> => {
    while (performance.now() < until) {
      visits += 1
      await visit(target, draw)
    }
  }
  await Promise.all(Array.from({ length: 12 }, visitor))
  await vi.waitFor(
    async () => {
      const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
        gateway: { heldBytes: number; sockets: number; liveCalls: number }
      }
      const { heldBytes, sockets, liveCalls } = lanes.gateway
      const left = { heldBytes, sockets, liveCalls, inFlight: setting.inFlight(), waiting: setting.waiting() }
      expect({ seed, ...left }).toEqual({
        seed,
        heldBytes: 0,
        sockets: 0,
        liveCalls: 0,
        inFlight: 0,
        waiting: 0,
      })
    },
    { timeout: 5_000 },
  )
  expect(setting.gateway.counters.faults).toBe(0)
  expect(visits).toBeGreaterThan(50)
  expect(setting.gateway.counters.calls).toBeGreaterThan(50)
})
