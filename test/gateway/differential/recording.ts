/** An upstream that tells what reached it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { onTestFinished } from 'vitest'

export interface Seen {
  readonly method: string
  readonly target: string
  readonly body: string
  /** Values of the fields that the client sent and that may travel, by name. */
  readonly key: string | undefined
  readonly hop: string | undefined
}

export interface RecordingUpstream {
  readonly url: string
  /** What has reached it, and forgets it. */
  take(): ReadonlyArray<Seen>
}

export const startRecording = async (): Promise<RecordingUpstream> => {
  let seen: Array<Seen> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on('error', () => {})
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: target = '', headers } = request
      const body = Buffer.concat(chunks).toString('latin1')
      seen.push({
        method,
        target,
        body,
        key: headers['x-api-key'] as string,
        hop: headers['x-hop'] as string,
      })
      response.end('answered')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    take: () => {
      const taken = seen
      seen = []
      return taken
    },
  }
}
