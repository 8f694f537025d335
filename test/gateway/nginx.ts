/** Debian's nginx as a plain reverse proxy in front of a test's server. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'

const program = process.env['RIGHTOFWAY_NGINX'] ?? '/usr/sbin/nginx'
export const hasNginx = existsSync(program)
if (!hasNginx)
  console.warn(
    `No nginx at ${program}: the tests behind it are left out; test/gateway/install-nginx.sh installs it.`,
  )

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

const plainly = 'proxy_http_version 1.1; proxy_set_header Connection "";'

/** Passes `/scripted/` on to `upstream`. `directives` of the location: HTTP/1.1 and nothing else by default. */
export const startNginx = async (upstream: string, directives = plainly): Promise<string> => {
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
         location /scripted/ { proxy_pass ${upstream}/; ${directives} } } }`,
  )
  const child = spawn(
    program,
    ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    { stdio: 'ignore' },
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
