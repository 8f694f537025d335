/** Providers that play their part for an agent: a first refusal for want of capacity, then scripted answers. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { zstdDecompressSync } from 'node:zlib'

export type Json = Readonly<Record<string, unknown>>

/** A call as it reached the provider. */
export interface Asked {
  readonly headers: IncomingHttpHeaders
  readonly body: Json
  readonly status: 200 | 429
}

export interface Provider {
  readonly url: string
  readonly calls: ReadonlyArray<Asked>
  /** Requests for a WebSocket: each is answered 426. */
  upgrades(): number
  close(): void
}

/** Writes the whole answer to a call. */
export type Script = (body: Json, response: ServerResponse, number: number) => void

/** `isCall` tells generating paths from others, which are answered with an empty object. */
export const startProvider = async (isCall: (path: string) => boolean, script: Script): Promise<Provider> => {
  const calls: Array<Asked> = []
  let upgrades = 0
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const [path = ''] = (request.url ?? '').split('?')
      if (request.method !== 'POST' || !isCall(path)) return sendJson(response, 200, {})
      const bytes = Buffer.concat(chunks)
      const plain = request.headers['content-encoding'] === 'zstd' ? zstdDecompressSync(bytes) : bytes
      const body = JSON.parse(plain.toString('utf8')) as Json
      const status = calls.length === 0 ? 429 : 200
      calls.push({ headers: request.headers, body, status })
      if (status === 200) return script(body, response, calls.length)
      const error = { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Slow down.' }
      sendJson(response, 429, { type: 'error', error }, { 'retry-after': '1' })
    })
  })
  server.on('upgrade', (_, socket) => {
    upgrades += 1
    socket.end('HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    upgrades: () => upgrades,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const sendJson = (response: ServerResponse, status: number, value: object, headers: object = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}

/** An event stream of these events, each named by its `type`. */
export const sendEvents = (response: ServerResponse, events: ReadonlyArray<Json>): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) response.write(`event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}
