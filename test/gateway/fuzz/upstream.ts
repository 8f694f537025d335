/** An upstream that answers anything: whole, cut, endless, encoded, refused, or not at all. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

const event = (type: string, data: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

/** In [0, 1). */
export type Draw = () => number

export const pick = <A>(draw: Draw, from: ReadonlyArray<A>): A => from[Math.floor(draw() * from.length)] as A

const chunkOf = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const last = '0\r\n\r\n'
const json = (status: number, body: unknown, fields = ''): string => {
  const text = JSON.stringify(body)
  return `HTTP/1.1 ${status} x\r\ncontent-type: application/json\r\n${fields}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}
const sse = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const start = event('message_start', { message: { usage: { input_tokens: 9, output_tokens: 1 } } })
const delta = event('content_block_delta', { delta: { type: 'text_delta', text: 'x' } })
const stop = event('message_stop')
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
const encoded = (bytes: Buffer): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length}\r\n\r\n${bytes.toString('latin1')}`

const garbage = (draw: Draw): string =>
  Array.from({ length: 1 + Math.floor(draw() * 200) }, () => String.fromCharCode(draw() * 256)).join('')

const answers: ReadonlyArray<(draw: Draw) => ReadonlyArray<string>> = [
  () => [json(200, { usage: { input_tokens: 5, output_tokens: 1 } })],
  () => [json(200, { usage: { input_tokens: 5, output_tokens: 1 } })],
  () => [sse, chunkOf(start), chunkOf(delta), chunkOf(stop), last],
  () => [sse, chunkOf(start), chunkOf(delta), chunkOf(stop)],
  () => [sse, chunkOf(start), last],
  () => [sse, chunkOf(event('error', overloaded)), last],
  () => [sse, chunkOf(start), chunkOf(event('error', overloaded)), last],
  () => [json(529, overloaded)],
  () => [
    json(429, { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }, 'retry-after: 0\r\n'),
  ],
  () => [json(401, { error: { type: 'authentication_error' } })],
  () => [json(500, { error: { type: 'api_error' } })],
  () => [json(200, overloaded)],
  () => [encoded(gzipSync(JSON.stringify({ usage: { input_tokens: 5, output_tokens: 1 } })))],
  () => [encoded(Buffer.from('no gzip at all'))],
  () => ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', json(200, {})],
  () => [
    'HTTP/1.1 200 OK\r\nconnection: close\r\nconnection: x\r\ncontent-type: application/json\r\n\r\n',
    '{}',
    'END',
  ],
  () => ['HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort', 'RESET'],
  () => ['RESET'],
  () => ['END'],
  (draw) => [garbage(draw), 'END'],
  (draw) => [sse, chunkOf(garbage(draw)), last],
  (draw) => [
    `HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n\r\n`,
    garbage(draw),
    'END',
  ],
  (draw) => [
    `HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n`,
    `${garbage(draw)}\n{"done":true}\n`,
    'END',
  ],
]

const write = async (socket: Socket, draw: Draw): Promise<void> => {
  for (const part of pick(draw, answers)(draw)) {
    if (draw() < 0.3) await new Promise((resolve) => setTimeout(resolve, draw() * 20))
    if (socket.destroyed) return
    if (part === 'RESET') return void socket.resetAndDestroy()
    if (part === 'END') return void socket.end()
    socket.write(Buffer.from(part, 'latin1'))
  }
}

export const startAnything = async (draw: Draw) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1')
      const end = heard.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/content-length: (\d+)/i.exec(heard)?.[1] ?? 0)
      const isWhole = /transfer-encoding/i.test(heard)
        ? heard.endsWith(last)
        : heard.length >= end + 4 + length
      if (!isWhole) return
      heard = ''
      void write(socket, draw)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
