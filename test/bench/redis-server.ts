/** A Redis of the benchmark's own, that syncs every write as a journal does; gone when it is closed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'

/** The server's program, or null where there is none. */
export const redisProgram = (): string | null =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((path) => join(path, 'redis-server'))
    .find((path) => existsSync(path)) ?? null

export interface OwnRedis {
  readonly connection: { readonly path: string; readonly maxRetriesPerRequest: null }
  readonly close: () => Promise<void>
}

/** Starts `program` on a socket in `folder`, without a port, and answers once it takes commands. */
export const startRedis = async (program: string, folder: string): Promise<OwnRedis> => {
  const home = mkdtempSync(join(folder, 'redis-'))
  // A path of a socket may be no longer than about a hundred bytes.
  const nearby = mkdtempSync(join(tmpdir(), 'rw-'))
  const path = join(nearby, 's')
  const settings = {
    port: '0',
    unixsocket: path,
    dir: home,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const server = spawn(program, args, { stdio: 'ignore' })
  const exited = once(server, 'exit')
  const connection = { path, maxRetriesPerRequest: null } as const
  const client = new Redis({ ...connection, retryStrategy: () => 20 })
  // Until it listens, every try fails.
  client.on('error', () => {})
  const early = exited.then(([code]) => Promise.reject(new Error(`${program} ended with ${code}`)))
  try {
    await Promise.race([client.ping(), early])
  } finally {
    early.catch(() => {})
    client.disconnect()
  }
  return {
    connection,
    close: async () => {
      server.kill()
      await exited
      rmSync(nearby, { recursive: true, force: true })
    },
  }
}
