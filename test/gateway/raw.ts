/** Bytes over a socket, as no client library would write them. */
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  /** Of the first answer; 0 when the connection ended without one. */
  readonly status: number
  /** Everything that came, as Latin-1. */
  readonly text: string
}

export interface RawOptions {
  /** How long to listen when the other side does not close, milliseconds. */
  readonly untilMs?: number
  /** Ends listening early. */
  readonly until?: (text: string) => boolean
  /** Resets the connection at once, instead of listening. */
  readonly reset?: boolean
}

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)

/** Sends `bytes` to the server at `url` and hears what comes until it closes. Never rejects once connected. */
export const raw = (
  url: string,
  bytes: string | Buffer,
  { untilMs = 2_000, until, reset = false }: RawOptions = {},
): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const socket = open(url)
    const chunks: Array<Buffer> = []
    const finish = () => {
      clearTimeout(timer)
      socket.destroy()
      const text = Buffer.concat(chunks).toString('latin1')
      resolve({ status: statusOf(text), text })
    }
    const timer = setTimeout(finish, untilMs)
    socket.once('connect', () => {
      socket.removeListener('error', reject)
      socket.on('error', finish)
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => {
        if (!reset) return
        socket.resetAndDestroy()
        finish()
      })
    })
    socket.once('error', reject)
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      if (until?.(Buffer.concat(chunks).toString('latin1'))) finish()
    })
    socket.on('close', finish)
  })

export const open = (url: string): Socket => {
  const { hostname, port } = new URL(url)
  return connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
}

/** A request's head as text: the start line, then fields; `Host` and `Connection: close` unless stated. */
export const head = (start: string, fields: ReadonlyArray<string> = []): string => {
  const has = (name: string) => fields.some((field) => field.toLowerCase().startsWith(`${name}:`))
  const own = [
    ...(has('host') ? [] : ['host: 127.0.0.1']),
    ...(has('connection') ? [] : ['connection: close']),
  ]
  return `${[`${start} HTTP/1.1`, ...own, ...fields].join('\r\n')}\r\n\r\n`
}
