/** Request bodies that come encoded: looked into by a decoded copy, and passed on as they came. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { answerJson, answerStatus, overloaded, post, startSetting, startUpstream } from '../setting.ts'

type Encode = (bytes: Buffer) => Buffer

const body = JSON.stringify({ model: 'large', max_tokens: 8, messages: [{ content: 'word '.repeat(4_000) }] })
const plain = Buffer.from(body)

const codings: ReadonlyArray<readonly [string, Encode]> = [
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['GZIP', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['zstd', zstdCompressSync],
  ['gzip, zstd', (bytes) => zstdCompressSync(gzipSync(bytes))],
  ['identity, br', brotliCompressSync],
  ['identity', (bytes) => bytes],
]

const bytes = (of: Buffer): { readonly body: Buffer<ArrayBuffer> } => ({ body: Buffer.from(of) })
const quick = { pacingBaseMs: 1, pacingMaxMs: 2, quietWindowMs: 0 } as const

describe('a body in a known encoding', () => {
  it.each(codings)(
    '%s: is a call of its model and size, and arrives as it came, twice where it is refused',
    async (coding, encode) => {
      const upstream = await startUpstream()
      const setting = await startSetting({ upstream, policy: quick })
      const sent = encode(plain)
      const answer = post(setting.scripted, { 'content-encoding': coding }, bytes(sent))
      answerStatus(await upstream.next(), 529, overloaded)
      answerJson(await upstream.next())
      const received = await answer
      expect([received.status, received.headers.get('x-rightofway-attempts')]).toEqual([200, '2'])
      for (const arrival of upstream.arrivals) {
        expect(arrival.bytes.equals(sent)).toBe(true)
        expect(arrival.request.headers['content-encoding']).toBe(coding)
        expect(arrival.request.headers['content-length']).toBe(String(sent.length))
      }
      expect(setting.host.status()[0]?.scope).toMatch(/\/large$/)
    },
  )

  it.each(codings)('%s: counts as many tokens as without it', async (coding, encode) => {
    const upstream = await startUpstream()
    const tokens = plain.length / 4
    const ask = async (limit: number) => {
      const setting = await startSetting({ upstream, policy: { limits: { inputTokensPerMinute: limit } } })
      return post(setting.scripted, { 'content-encoding': coding }, bytes(encode(plain)))
    }
    // A call above the declared limit is refused, and one below it is sent.
    expect((await ask(Math.floor(tokens) - 1)).status).toBe(413)
    const fits = ask(Math.ceil(tokens) + 1)
    answerJson(await upstream.next())
    expect((await fits).status).toBe(200)
    expect(upstream.arrivals.length).toBe(1)
  })

  it('that asks no model is passed on as it came', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const sent = gzipSync('{"text":"no model"}')
    const answer = post(
      setting.scripted,
      { 'content-encoding': 'gzip' },
      { ...bytes(sent), path: '/v1/messages/count_tokens' },
    )
    const arrival = await upstream.next()
    answerJson(arrival)
    expect([(await answer).status, arrival.bytes.equals(sent)]).toEqual([200, true])
    expect(setting.gateway.counters).toMatchObject({ calls: 0, forwarded: 1 })
  })

  it('keeps its bytes where a rank is told to a server that honours it', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai', honoursPriority: true })
    const sent = zstdCompressSync(plain)
    const headers = { 'content-encoding': 'zstd', 'x-resource-priority': 'interactive' }
    const answer = post(setting.scripted, headers, bytes(sent))
    const arrival = await upstream.next()
    answerJson(arrival)
    await answer
    expect(arrival.bytes.equals(sent)).toBe(true)
    expect(arrival.request.headers['x-resource-priority']).toBe('interactive')
  })
})

const zeros = Buffer.alloc(3 * 1024 * 1024)

describe('a body that cannot be looked into is refused, nothing is sent, and nothing is kept', () => {
  it.each<[string, string, Buffer, number, string]>([
    ['an unknown encoding', 'exotic', plain, 415, 'got exotic'],
    ['an unknown one on top', 'gzip, exotic', gzipSync(plain), 415, 'gzip, deflate, br, zstd'],
    ['more than four', 'gzip, gzip, gzip, gzip, gzip', gzipSync(plain), 415, 'up to four'],
    ['a bomb', 'gzip', gzipSync(zeros), 413, 'bodyLimitBytes = 1048576'],
    ['a bomb in zstd', 'zstd', zstdCompressSync(zeros), 413, 'bodyLimitBytes = 1048576'],
    ['a bomb inside', 'gzip, br', brotliCompressSync(gzipSync(zeros)), 413, 'decoded, is larger'],
    [
      'a bomb of empty parts',
      'gzip, br',
      brotliCompressSync(Buffer.concat(Array(80_000).fill(gzipSync('')))),
      413,
      'larger',
    ],
    ['another encoding than it says', 'gzip', plain, 400, 'content-encoding says, gzip'],
    ['one that is cut short', 'zstd', zstdCompressSync(plain).subarray(0, -6), 400, 'do not decode'],
    [
      'one that is cut short in brotli',
      'br',
      brotliCompressSync(plain).subarray(0, -6),
      400,
      'do not decode',
    ],
    [
      'one with another behind',
      'gzip',
      Buffer.concat([gzipSync(plain), Buffer.from('junk')]),
      400,
      'do not decode',
    ],
  ])('%s', async (_, coding, sent, status, words) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, bodyLimitBytes: 1024 * 1024 })
    const received = await post(setting.scripted, { 'content-encoding': coding }, bytes(sent))
    expect([received.status, received.headers.get('content-type')]).toEqual([
      status,
      'application/problem+json',
    ])
    expect(await received.text()).toContain(words)
    if (status === 415) expect(received.headers.get('accept-encoding')).toBe('gzip, deflate, br, zstd')
    const lanes = async () =>
      (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as { gateway: { heldBytes: number } }
    await vi.waitFor(async () => expect((await lanes()).gateway.heldBytes).toBe(0))
    expect([upstream.arrivals.length, setting.gateway.counters.faults]).toEqual([0, 0])
  })

  it('the decoded copy counts among the held bytes while it is there', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, heldBodiesLimitBytes: 8_192 })
    const received = await post(setting.scripted, { 'content-encoding': 'gzip' }, bytes(gzipSync(plain)))
    expect([received.status, await received.text()]).toEqual([
      503,
      expect.stringContaining('heldBodiesLimitBytes'),
    ])
    const small = post(setting.scripted, { 'content-encoding': 'gzip' }, bytes(gzipSync('{"model":"m"}')))
    answerJson(await upstream.next())
    expect((await small).status).toBe(200)
  })
})
