/** Providers that are reached through a proxy of the environment: a real one, a process with that environment, and a CA of its own. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import { InvalidInput } from '../../../machines/index.ts'
import { agentEnvironment, knowsProxies, proxiesOf } from '../../../src/gateway/passage/proxies.ts'
import { folder, launcher, Program } from '../../cli/program.ts'
import { post } from '../setting.ts'
import { connect as openSocket } from '../sockets/provider.ts'

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** Takes every name for this machine, and remembers what it was asked. */
const startProxy = async () => {
  const asked: Array<string> = []
  const seen = ({ method, url, headers }: IncomingMessage) =>
    asked.push(`${method} ${url} ${headers['proxy-authorization'] ?? ''}`.trim())
  const server = createServer((incoming, response) => {
    seen(incoming)
    const { port, pathname } = new URL(incoming.url ?? '')
    const { method, headers } = incoming
    const onwards = request({ port, path: pathname, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    incoming.pipe(onwards)
  })
  server.on('connect', (incoming, socket, head) => {
    seen(incoming)
    const onwards = connect(Number(incoming.url?.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      onwards.write(head)
      socket.pipe(onwards).pipe(socket)
    })
    onwards.on('error', () => socket.destroy())
    socket.on('error', () => onwards.destroy())
  })
  return { port: await listening(server), asked }
}

const certificate = (at: string): void => {
  const files = ['-keyout', join(at, 'key.pem'), '-out', join(at, 'cert.pem')]
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  const name = ['-subj', '/CN=upstream.test', '-addext', 'subjectAltName=DNS:upstream.test']
  execFileSync('openssl', [...made, ...name, ...files], { stdio: 'ignore' })
}

const answer: RequestListener = (incoming, response) => {
  if (incoming.headers['x-api-key'] === 'break') return void incoming.socket.destroy()
  incoming.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: 'msg_1', usage: { input_tokens: 1, output_tokens: 1 } }))
  })
}

const start = async (environment: (port: number) => Record<string, string>) => {
  const at = folder()
  certificate(at)
  const keys = { key: readFileSync(join(at, 'key.pem')), cert: readFileSync(join(at, 'cert.pem')) }
  const arrivals: Array<string> = []
  const noted: RequestListener = (incoming, response) => {
    arrivals.push(String(incoming.headers['x-api-key']))
    answer(incoming, response)
  }
  const secure = createTlsServer(keys, noted)
  const sockets = new WebSocketServer({ server: secure })
  sockets.on('connection', (socket) => socket.on('message', (text) => socket.send(`heard ${text}`)))
  onTestFinished(() => {
    for (const client of sockets.clients) client.terminate()
  })
  const [plainPort, securePort] = [await listening(createServer(noted)), await listening(secure)]
  const upstreams = [
    { name: 'plain', baseUrl: `http://upstream.test:${plainPort}`, wire: 'anthropic' },
    { name: 'secure', baseUrl: `https://upstream.test:${securePort}`, wire: 'openai' },
    { name: 'own', baseUrl: `http://127.0.0.1:${plainPort}`, wire: 'anthropic' },
  ]
  writeFileSync(join(at, 'gateway.json'), JSON.stringify({ upstreams }))
  const proxy = await startProxy()
  const program = new Program(
    ['serve', '--port', '0', '--journal', ':memory:', '--config', 'gateway.json'],
    at,
    process.execPath,
    launcher,
    { NODE_EXTRA_CA_CERTS: join(at, 'cert.pem'), ...environment(proxy.port) },
  )
  const [greeting, url] = await program.says(/^rightofway listens on (\S+)\n[\s\S]*?^curl/m)
  return { base: url as string, greeting, proxy, plainPort, securePort, arrivals }
}

describe('a proxy of the environment', () => {
  it('carries http, https and WebSocket; what is of this machine goes directly; credentials are not shown', async () => {
    const both = (port: number) => ({
      HTTPS_PROXY: `http://user:secret@127.0.0.1:${port}`,
      http_proxy: `http://user:secret@127.0.0.1:${port}`,
    })
    const { base, greeting, proxy, plainPort, securePort, arrivals } = await start(both)
    expect(greeting).toContain(`proxy    http://127.0.0.1:${proxy.port} for https upstreams\n`)
    expect(greeting).not.toMatch(/secret|user:/)
    for (const name of ['plain', 'secure', 'own']) expect((await post(`${base}/${name}`)).status).toBe(200)
    const basic = `Basic ${Buffer.from('user:secret').toString('base64')}`
    expect(proxy.asked).toEqual([
      `POST http://upstream.test:${plainPort}/v1/messages ${basic}`,
      `CONNECT upstream.test:${securePort} ${basic}`,
    ])
    // Only the proxy knows the name; a tunnel that is open already may serve again.
    const { socket, next } = await openSocket(`${base}/secure`)
    socket.send('through the tunnel')
    expect(await next()).toBe('heard through the tunnel')
    // What broke behind a tunnel may have been sent: never twice.
    const before = arrivals.length
    expect((await post(`${base}/secure`, { 'x-api-key': 'break' })).status).toBe(502)
    expect(arrivals.slice(before)).toEqual(['break'])
  })

  it('is passed by where NO_PROXY says so', async () => {
    const without = (port: number) => ({ HTTP_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: '.test' })
    const { base, proxy } = await start(without)
    // Nobody knows this name but the proxy.
    expect((await post(`${base}/plain`)).status).toBe(502)
    expect(proxy.asked).toEqual([])
  })
})

describe('what the environment says of proxies', () => {
  it.each([
    [{}, []],
    [{ HTTPS_PROXY: '' }, []],
    [
      { HTTPS_PROXY: 'http://a:b@proxy.example:3128/' },
      [{ scheme: 'https', url: 'http://proxy.example:3128' }],
    ],
    [
      { http_proxy: 'https://one.example', HTTP_PROXY: 'http://two.example' },
      [{ scheme: 'http', url: 'https://one.example' }],
    ],
  ])('%j', (environment, proxies) => {
    expect(proxiesOf(environment)).toEqual(proxies)
    expect(agentEnvironment(environment) === undefined).toBe(proxies.length === 0)
  })

  it.each(['proxy.example:3128', 'socks5://proxy.example', 'http//x'])(
    'refuses %s, and does not repeat it',
    (HTTPS_PROXY) => {
      expect(() => proxiesOf({ HTTPS_PROXY })).toThrow(InvalidInput)
      expect(() => proxiesOf({ HTTPS_PROXY })).toThrow(
        /^(?!.*proxy\.example:3128$).*HTTPS_PROXY: expected an http or https address/,
      )
    },
  )

  it('leaves this machine out', () => {
    expect(agentEnvironment({ HTTP_PROXY: 'http://p.example', no_proxy: 'a.example' })?.['NO_PROXY']).toBe(
      'a.example,localhost,127.0.0.1,::1,[::1]',
    )
  })

  it.each([
    ['v22.19.0', false],
    ['v24.4.1', false],
    ['v24.5.0', true],
    ['v26.0.0', true],
  ])('%s: %s', (version, known) => {
    expect(knowsProxies(version)).toBe(known)
  })
})
