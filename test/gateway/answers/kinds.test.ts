/** Answers in every form that providers use are read on the side, and passed on byte by byte. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { answerJson, event, post, startSetting, startUpstream } from '../setting.ts'

const usage = { input_tokens: 60_000, output_tokens: 500 }
const limits = { limits: { inputTokensPerMinute: 100_000 } } as const

const codings: ReadonlyArray<[string, (bytes: Buffer) => Buffer]> = [
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['zstd', zstdCompressSync],
]

const stream =
  event('message_start', { message: { usage: { input_tokens: 60_000, output_tokens: 1 } } }) +
  event('content_block_delta', { delta: { type: 'text_delta', text: 'x'.repeat(500) } }) +
  event('message_delta', { usage: { output_tokens: 500 } }) +
  event('message_stop')

/** An answer of these bytes; what the client got, and what was learned of it. */
const pass = async (head: Record<string, string>, bytes: Buffer, provider?: 'openai' | 'gemini') => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, policy: limits, ...(provider ? { wire: provider } : {}) })
  const { request } = await import('node:http')
  const got = new Promise<Buffer>((resolve) => {
    const asked = request(`${setting.scripted}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'k' },
    })
    asked.on('response', (response) => {
      const chunks: Array<Buffer> = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks)))
    })
    asked.end('{"model":"m"}')
  })
  const { response } = await upstream.next()
  response.writeHead(200, head)
  for (let at = 0; at < bytes.length; at += 10_000) response.write(bytes.subarray(at, at + 10_000))
  response.end()
  expect((await got).equals(bytes)).toBe(true)
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0), { timeout: 10_000 })
  const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
    gateway: { estimates: Record<string, { tokensPerByte: number; samples: number }> }
  }
  return { setting, learned: Object.values(lanes.gateway.estimates).map(({ samples }) => samples) }
}

describe('usage is read', () => {
  it.each(codings)('in a stream encoded with %s, although identity was asked', async (coding, encode) => {
    const head = { 'content-type': 'text/event-stream', 'content-encoding': coding }
    const { setting, learned } = await pass(head, encode(Buffer.from(stream)))
    expect(learned).toEqual([1])
    expect(setting.host.status()[0]?.recentInputTokens).toBe(60_000)
  })

  it.each(codings)('in a JSON answer encoded with %s', async (coding, encode) => {
    const head = { 'content-type': 'application/json', 'content-encoding': coding }
    const { setting } = await pass(head, encode(Buffer.from(JSON.stringify({ usage }))))
    expect(setting.host.status()[0]?.recentInputTokens).toBe(60_000)
  })

  it.each<[string, string, unknown]>([
    ['at the end', 'application/json', { pad: 'x'.repeat(3_000_000), usage }],
    ['at the start', 'application/json', { usage, pad: 'x'.repeat(3_000_000) }],
    [
      'beside output that quotes one',
      'application/json',
      { pad: '{"usage":{"input_tokens":1}}'.repeat(60_000), usage },
    ],
  ])('in JSON above a megabyte, where it stands %s', async (_, type, body) => {
    const { setting } = await pass({ 'content-type': type }, Buffer.from(JSON.stringify(body)))
    expect(setting.host.status()[0]?.recentInputTokens).toBe(60_000)
  })

  it.each([10, 150_000])('in the array that Gemini streams, with parts of %i bytes', async (size) => {
    const parts = Array.from({ length: 12 }, (_, n) => ({
      candidates: [{ content: { parts: [{ text: 'x'.repeat(size) }] } }],
      usageMetadata: { promptTokenCount: 60_000, candidatesTokenCount: n },
    }))
    const { setting } = await pass(
      { 'content-type': 'application/json' },
      Buffer.from(JSON.stringify(parts)),
      'gemini',
    )
    expect(setting.host.status()[0]?.recentInputTokens).toBe(60_000)
  })

  it.each([
    ['metadata', { usage: { inputTokens: 60_000, outputTokens: 500 } }],
    [
      'chunk',
      {
        bytes: Buffer.from(JSON.stringify({ type: 'message_start', message: { usage } })).toString('base64'),
      },
    ],
  ])('in a frame of Bedrock: %s', async (type, body) => {
    const frames = Buffer.concat([
      frame({ ':event-type': 'messageStart' }, {}),
      frame({ ':event-type': type }, body),
    ])
    const end = type === 'chunk' ? frame({ ':event-type': 'chunk' }, stopChunk) : Buffer.alloc(0)
    const { setting } = await pass(
      { 'content-type': 'application/vnd.amazon.eventstream' },
      Buffer.concat([frames, end]),
    )
    expect(setting.host.status()[0]?.recentInputTokens).toBe(60_000)
    expect(setting.host.status()[0]?.counters.completed).toBe(1)
  })

  it('and what nobody can read is counted, not guessed', async () => {
    const { setting, learned } = await pass(
      { 'content-type': 'text/event-stream', 'content-encoding': 'exotic' },
      Buffer.from('whatever'),
    )
    expect([learned, setting.gateway.counters.unreadAnswers]).toEqual([[], 1])
    const damaged = await pass(
      { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      Buffer.from('no gzip'),
    )
    expect(damaged.setting.gateway.counters.unreadAnswers).toBe(1)
  })

  it('within bounds: a small body that unfolds into an endless one is let go of', async () => {
    const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024))
    const { setting } = await pass({ 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }, bomb)
    expect(setting.gateway.counters.unreadAnswers).toBe(1)
  })
})

const stopChunk = { bytes: Buffer.from(JSON.stringify({ type: 'message_stop' })).toString('base64') }

/** One frame of Amazon's event stream; its checksums are left at zero, since nobody here checks them. */
const frame = (headers: Record<string, string>, body: unknown): Buffer => {
  const fields = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(Buffer.byteLength(value))
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ])
    }),
  )
  const payload = Buffer.from(JSON.stringify(body))
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(12 + fields.length + payload.length + 4, 0)
  prelude.writeUInt32BE(fields.length, 4)
  return Buffer.concat([prelude, fields, payload, Buffer.alloc(4)])
}

const overloadedBody = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
const unavailable = frame(
  { ':exception-type': 'serviceUnavailableException', ':message-type': 'exception' },
  { message: 'Try again later' },
)

const insides: ReadonlyArray<[string, Record<string, string>, Buffer]> = [
  ['a JSON object', { 'content-type': 'application/json' }, Buffer.from(JSON.stringify(overloadedBody))],
  [
    'an encoded JSON object',
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    gzipSync(JSON.stringify(overloadedBody)),
  ],
  [
    'an array of Gemini',
    { 'content-type': 'application/json' },
    Buffer.from(
      JSON.stringify([{ error: { code: 503, message: 'The model is overloaded', status: 'UNAVAILABLE' } }]),
    ),
  ],
  [
    'the first event of a stream',
    { 'content-type': 'text/event-stream' },
    Buffer.from(event('error', overloadedBody)),
  ],
  [
    'an only event without its blank line',
    { 'content-type': 'text/event-stream' },
    Buffer.from(`data: ${JSON.stringify(overloadedBody)}`),
  ],
  [
    'the first line',
    { 'content-type': 'application/x-ndjson' },
    Buffer.from(`${JSON.stringify({ error: { type: 'overloaded_error', message: 'Overloaded' } })}\n`),
  ],
  ['the first frame of Bedrock', { 'content-type': 'application/vnd.amazon.eventstream' }, unavailable],
]

describe('a 200 with a refusal inside is kept from the client, and the call goes back to its place', () => {
  it.each(insides)('%s', async (_, head, bytes) => {
    const upstream = await startUpstream()
    const setting = await startSetting({
      upstream,
      policy: { pacingBaseMs: 1, pacingMaxMs: 2, quietWindowMs: 0 },
    })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, head)
    response.end(bytes)
    answerJson(await upstream.next())
    const received = await answer
    expect([received.status, received.headers.get('x-rightofway-attempts')]).toEqual([200, '2'])
    expect(await received.text()).toContain('msg_1')
    expect(setting.gateway.counters).toMatchObject({ absorbedRefusals: 1, streamErrors: 0 })
  })

  it.each(insides)('%s, and it is passed on as it came once its time is over', async (_, head, bytes) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { pacingBaseMs: 60_000, pacingMaxMs: 60_000 } })
    const answer = post(setting.scripted, { 'x-rightofway-deadline-ms': '400' })
    const { response } = await upstream.next()
    response.writeHead(200, head)
    response.end(bytes)
    const received = await answer
    const text = Buffer.from(await received.arrayBuffer())
    const whole = head['content-encoding'] === 'gzip' ? Buffer.from(JSON.stringify(overloadedBody)) : bytes
    expect([received.status, text.equals(whole)]).toEqual([200, true])
    expect(setting.host.status()[0]?.counters.completed).toBe(0)
  })

  it('also where the upstream leaves the connection open behind it', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({
      upstream,
      policy: { pacingBaseMs: 1, pacingMaxMs: 2, quietWindowMs: 0 },
    })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('error', overloadedBody))
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
  })

  it("but what is wrong with the request itself is the client's to see, and a comment begins an answer", async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { type: 'invalid_request_error', message: 'no' } }))
    expect(await (await answer).text()).toContain('invalid_request_error')
    expect(setting.host.status()[0]?.counters.completed).toBe(0)
    const second = post(setting.scripted)
    const waiting = await upstream.next()
    waiting.response.writeHead(200, { 'content-type': 'text/event-stream' })
    waiting.response.write(': OPENROUTER PROCESSING\n\n')
    const reader = (await second).body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('PROCESSING')
    waiting.response.end(event('message_stop'))
    await reader?.cancel()
  })

  it('and blanks that keep a JSON answer alive reach the client at once', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('\n')
    const received = await answer
    response.end(JSON.stringify({ usage }))
    expect(await received.json()).toEqual({ usage })
  })
})

it('a refusal in an encoding is read as one', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({
    upstream,
    policy: { pacingBaseMs: 1, pacingMaxMs: 2, quietWindowMs: 0 },
  })
  const answer = post(setting.scripted)
  const { response } = await upstream.next()
  response.writeHead(529, { 'content-type': 'application/json', 'content-encoding': 'zstd' })
  response.end(zstdCompressSync(JSON.stringify(overloadedBody)))
  answerJson(await upstream.next())
  expect((await answer).status).toBe(200)
  expect(setting.gateway.counters.absorbedRefusals).toBe(1)
})
