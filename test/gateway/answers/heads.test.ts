/** Whatever head an upstream may legally send is passed on, and what announces or follows the answer too. */
import { createServer, type Server, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { head, raw } from '../raw.ts'
import { call, type ScriptedUpstream, startSetting } from '../setting.ts'

/** Answers every request with these bytes, once its body is here. */
const startBytes = async (
  answer: string | ((request: string, socket: Socket) => void),
): Promise<ScriptedUpstream> => {
  const server: Server = createServer((socket) => {
    let heard = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1')
      const [start, rest] = heard.split('\r\n\r\n', 2) as [string, string | undefined]
      const length = Number(/content-length: (\d+)/i.exec(start)?.[1] ?? 0)
      if (rest === undefined || rest.length < length) return
      const whole = heard
      heard = ''
      if (typeof answer === 'string') socket.write(answer, 'latin1')
      else answer(whole, socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals: [],
    next: () => Promise.reject(new Error('not scripted')),
  }
}

const body = JSON.stringify(call)
const ask = (path = '/scripted/v1/messages', fields: ReadonlyArray<string> = []) =>
  head(`POST ${path}`, [
    'content-type: application/json',
    'x-api-key: k',
    `content-length: ${body.length}`,
    ...fields,
  ]) + body
const answered = '{"id":"x","usage":{"input_tokens":7,"output_tokens":2}}'
const ok = (fields: ReadonlyArray<string>) =>
  [
    'HTTP/1.1 200 OK',
    `content-length: ${answered.length}`,
    'content-type: application/json',
    ...fields,
    '',
    answered,
  ].join('\r\n')

it.each<[string, string, RegExp]>([
  [
    'two Connection fields',
    ok(['Connection: keep-alive', 'Connection: x-hop', 'X-Hop: 1']),
    /^HTTP\/1\.1 200/,
  ],
  ['a field that comes three times', ok(['X-A: 1', 'x-a: 2', 'X-A: 3']), /X-A: 1\r\nx-a: 2\r\nX-A: 3/],
  ['two content types', ok(['Content-Type: text/plain']), /^HTTP\/1\.1 200/],
  ['two retry-after', ok(['Retry-After: 1', 'Retry-After: 2']), /^HTTP\/1\.1 200/],
  ['names of object members', ok(['__proto__: a', 'constructor: b', 'toString: c']), /toString: c/],
  ['an empty value', ok(['X-Empty:']), /X-Empty: ?\r\n/],
  ['Latin-1 in a value', ok(['X-L: caf\xe9']), /X-L: caf\xe9/],
  ['three hundred fields', ok(Array.from({ length: 300 }, (_, n) => `X-${n}: ${n}`)), /X-299: 299/],
  ['no reason phrase', ok([]).replace('200 OK', '200 '), /^HTTP\/1\.1 200/],
  ['an unsolicited 100', `HTTP/1.1 100 Continue\r\n\r\n${ok([])}`, /^HTTP\/1\.1 200/],
  [
    'two unsolicited 100',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Go\r\nA: b\r\n\r\n${ok([])}`,
    /^HTTP\/1\.1 200/,
  ],
  ['a 102', `HTTP/1.1 102 Processing\r\n\r\n${ok([])}`, /^HTTP\/1\.1 200/],
  [
    'a 103 with links',
    `HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n${ok([])}`,
    /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK/,
  ],
])('%s', async (_, bytes, expected) => {
  const setting = await startSetting({ upstream: await startBytes(bytes) })
  for (const request of [ask(), head('GET /scripted/v1/models')]) {
    const { text } = await raw(setting.gateway.url, request)
    expect(text).toMatch(expected)
    expect(text.endsWith(answered)).toBe(true)
    expect(text).not.toContain('X-Hop')
  }
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  expect(setting.host.status()[0]?.counters.completed).toBe(1)
  expect(setting.gateway.counters).toMatchObject({ faults: 0, upstreamFailures: 0 })
})

it('a client of HTTP/1.0 hears no interim answer', async () => {
  const upstream = await startBytes(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok([])}`)
  const setting = await startSetting({ upstream })
  const { text } = await raw(setting.gateway.url, ask().replace('HTTP/1.1', 'HTTP/1.0'))
  expect(text).toMatch(/^HTTP\/1\.1 200/)
})

it('trailers pass, but none that would change what the answer is', async () => {
  const bytes =
    'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n' +
    '2\r\nhi\r\n0\r\nX-Sum: 1\r\nRetry-After: 9\r\nSet-Cookie: a=b\r\n\r\n'
  const setting = await startSetting({ upstream: await startBytes(bytes) })
  for (const request of [ask(), head('GET /scripted/v1/x')]) {
    const { text } = await raw(setting.gateway.url, request)
    expect(text).toContain('\r\n0\r\nX-Sum: 1\r\n\r\n')
    expect(text).not.toMatch(/Retry-After|Set-Cookie/)
  }
})

it('an absolute target reaches the same upstream, and a bare question mark survives', async () => {
  const seen: Array<string> = []
  const upstream = await startBytes((request, socket) => {
    seen.push(request.split(' ', 2)[1] as string)
    socket.write(ok([]), 'latin1')
  })
  const setting = await startSetting({ upstream })
  await raw(setting.gateway.url, ask('http://127.0.0.1/scripted/v1/messages?a=1'))
  await raw(setting.gateway.url, ask('/scripted/v1/messages?'))
  await raw(setting.gateway.url, head('GET /scripted/v1/models?'))
  await raw(setting.gateway.url, head('GET /scripted/v1/models'))
  expect(seen).toEqual(['/v1/messages?a=1', '/v1/messages?', '/v1/models?', '/v1/models'])
})

it('two Host fields are refused, whatever they say', async () => {
  const setting = await startSetting({ upstream: await startBytes(ok([])) })
  const { status, text } = await raw(
    setting.gateway.url,
    ask('/scripted/v1/messages', ['host: a', 'Host: a']),
  )
  expect([status, text.includes('two-hosts')]).toEqual([400, true])
})
