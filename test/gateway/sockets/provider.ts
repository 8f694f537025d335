/** A provider that speaks WebSocket and says only what the test writes. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import type { ScriptedUpstream } from '../setting.ts'

export interface Connection {
  readonly socket: WebSocket
  readonly request: IncomingMessage
  /** Texts heard so far. */
  readonly heard: ReadonlyArray<string>
  /** The next text, once it is here. */
  next(): Promise<string>
  say(event: object): void
}

/** Hears what a socket is sent, text by text. */
export const listen = (socket: WebSocket) => {
  const heard: Array<string> = []
  const unread: Array<string> = []
  const waiting: Array<(text: string) => void> = []
  socket.on('message', (data: RawData) => {
    const text = String(data)
    heard.push(text)
    const taker = waiting.shift()
    if (taker === undefined) unread.push(text)
    else taker(text)
  })
  const next = (): Promise<string> => {
    const text = unread.shift()
    return text === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(text)
  }
  return { heard, next }
}

export const startProvider = async (protocol?: string) => {
  const unread: Array<Connection> = []
  const waiting: Array<(connection: Connection) => void> = []
  const server = createServer((_, response) => response.writeHead(404).end())
  const sockets = new WebSocketServer({
    server,
    ...(protocol === undefined ? {} : { handleProtocols: () => protocol }),
  })
  sockets.on('headers', (lines) => lines.push('x-request-id: req-7'))
  sockets.on('connection', (socket, request) => {
    const connection: Connection = {
      socket,
      request,
      ...listen(socket),
      say: (event) => socket.send(JSON.stringify(event)),
    }
    const taker = waiting.shift()
    if (taker === undefined) unread.push(connection)
    else taker(connection)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const client of sockets.clients) client.terminate()
    server.closeAllConnections()
    server.close()
  })
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals: [],
    next: () => Promise.reject(new Error('this provider speaks WebSocket')),
  }
  const connection = (): Promise<Connection> => {
    const one = unread.shift()
    return one === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(one)
  }
  return { upstream, connection }
}

/** A client's socket that is open, with what it hears. */
export const connect = async (
  base: string,
  path = '/v1/responses',
  headers = {},
  protocols: Array<string> = [],
) => {
  const socket = new WebSocket(`${base.replace(/^http/, 'ws')}${path}`, protocols, {
    headers: { authorization: 'Bearer key-a', ...headers },
  })
  onTestFinished(() => socket.terminate())
  const ears = listen(socket)
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return { socket, ...ears, say: (event: object) => socket.send(JSON.stringify(event)) }
}
