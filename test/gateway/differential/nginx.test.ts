/** The gateway against nginx as a plain reverse proxy: what nginx refuses is refused, and what both pass arrives the same. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { raw } from '../raw.ts'
import { startSetting } from '../setting.ts'
import { bytesOf, inputs, types } from './corpus.ts'
import { type RecordingUpstream, type Seen, startRecording } from './recording.ts'

const program = process.env['RIGHTOFWAY_NGINX'] ?? '/usr/sbin/nginx'
if (!existsSync(program))
  console.warn(
    `No nginx at ${program}: the comparison with it is left out; test/gateway/install-nginx.sh installs it.`,
  )

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

const startNginx = async (upstream: string): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(' ')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
     events { worker_connections 256; }
     http { access_log off; ${temporary}
       server { listen 127.0.0.1:${port};
         location /scripted/ { proxy_pass ${upstream}/; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  )
  const child = spawn(
    program,
    ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    {
      stdio: 'ignore',
    },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  await vi.waitFor(() => fetch(url), { timeout: 5_000, interval: 50 })
  return url
}

/** Where the two differ on purpose, and why. */
const differences: Readonly<Record<string, string>> = {
  'fields of this hop': 'nginx passes a field that Connection names; it is of this hop, and stays behind',
  'a target that climbs': 'nginx resolves it inside its own root; the gateway has no root and refuses it',
  'a target that climbs in code': 'the same',
  'a wish for h2c': 'nginx ignores the wish; the gateway says 426, and which way works',
  'a host with a path': 'nginx refuses it, and so does the gateway, as a name that is not its own',
}

/** Requests of one connection may reach an upstream in any order: each has its answer in its own place. */
const sorted = (seen: ReadonlyArray<Seen>): ReadonlyArray<Seen> =>
  [...seen].sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))

const outcome = async (url: string, bytes: string, upstream: RecordingUpstream) => {
  const { status } = await raw(url, bytes, { untilMs: 150 })
  return { status, seen: sorted(upstream.take()) }
}

it.skipIf(!existsSync(program)).each(types)('reads the same requests as nginx: %s', async (type) => {
  const behindNginx = await startRecording()
  const behindGateway = await startRecording()
  const nginx = await startNginx(behindNginx.url)
  const upstream = { ...behindGateway, arrivals: [], next: () => Promise.reject(new Error('recorded')) }
  const setting = await startSetting({ upstream })
  const compared: Array<string> = []
  for (const input of inputs) {
    const bytes = bytesOf(input, type, '/scripted')
    const [one, other] = [
      await outcome(nginx, bytes, behindNginx),
      await outcome(setting.gateway.url, bytes, behindGateway),
    ]
    if (differences[input.name]) continue
    compared.push(input.name)
    // Refused by nginx: then the gateway lets nothing through either.
    if (one.seen.length === 0) expect([input.name, other.seen]).toEqual([input.name, []])
    // Passed by both: the same request arrives.
    if (other.seen.length > 0) expect([input.name, other.seen]).toEqual([input.name, one.seen])
  }
  expect(compared.length).toBeGreaterThan(45)
})
