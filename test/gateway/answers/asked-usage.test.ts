/** Usage that the gateway asks a chat stream for: it is learned, and the client sees the bytes that it would have seen. */
import fc from 'fast-check'
import { OpenAI } from 'openai'
import { describe, expect, it, vi } from 'vitest'
import { UsageFilter } from '../../../src/gateway/answers/usage-filter.ts'
import { withUsageAsked } from '../../../src/gateway/calls/asked-usage.ts'
import { post, startSetting, startUpstream } from '../setting.ts'

const chat = '/v1/chat/completions'
const asked = (body: string, path = chat) => String(withUsageAsked(path, Buffer.from(body)))

describe('a stream is asked for its usage', () => {
  it.each([
    ['{"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
    ['{"stream":true,"stream_options":null}', '{"stream":true,"stream_options":{"include_usage":true}}'],
    ['{"stream_options":{},"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
    [
      '{"stream":true,"stream_options":{ "include_usage": false }}',
      '{"stream":true,"stream_options":{ "include_usage": true }}',
    ],
    [
      '{"stream":true,"stream_options":{"other":{"include_usage":true}}}',
      '{"stream":true,"stream_options":{"include_usage":true,"other":{"include_usage":true}}}',
    ],
  ])('%s', (body, expected) => {
    expect(asked(body)).toBe(expected)
    expect(JSON.parse(expected).stream_options.include_usage).toBe(true)
  })

  it.each([
    ['{"stream":true,"stream_options":{"include_usage":true}}', chat],
    ['{"stream":false}', chat],
    ['{}', chat],
    ['{"stream":true,"stream_options":[1]}', chat],
    ['no JSON', chat],
    ['{"stream":true}', '/v1/responses'],
    ['{"stream":true}', '/v1/messages'],
  ])('and not where it is asked already, or is none: %s at %s', (body, path) => {
    const bytes = Buffer.from(body)
    expect(withUsageAsked(path, bytes)).toBe(bytes)
  })

  it('nothing else of the request changes, whatever it says', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (members) => {
        const { stream_options: _, ...rest } = members
        const body = { ...rest, stream: true }
        expect(JSON.parse(asked(JSON.stringify(body)))).toEqual(
          JSON.parse(JSON.stringify({ ...body, stream_options: { include_usage: true } })),
        )
      }),
    )
  })
})

const content = fc.string({ unit: 'binary', maxLength: 60 })
const data = (value: object, blank = '\n\n') => `data: ${JSON.stringify(value)}${blank}`
const extra = {
  id: 'c',
  choices: [],
  usage: { prompt_tokens: 1_200, completion_tokens: 5, total_tokens: 1_205 },
}
const tricky = '"usage":null,"choices":[]'

/** What a provider sends with usage asked for, and what it would send without. */
const streamOf = (texts: ReadonlyArray<string>, blank: string) => {
  const without = texts.map((text) => ({ id: 'c', choices: [{ delta: { content: text } }] }))
  const end = `data: [DONE]${blank}`
  return {
    seen: without.map((chunk) => data(chunk, blank)).join('') + end,
    sent: without.map((chunk) => data({ ...chunk, usage: null }, blank)).join('') + data(extra, blank) + end,
  }
}

it('the client gets the bytes that it would have got, cut anywhere, whatever the model says', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(content, fc.constant(tricky))),
      fc.constantFrom('\n\n', '\r\n\r\n'),
      fc.integer({ min: 1, max: 40 }),
      (texts, blank, size) => {
        const { sent, seen } = streamOf(texts, blank)
        const filter = new UsageFilter()
        const bytes = Buffer.from(sent)
        const got: Array<Buffer> = []
        for (let at = 0; at < bytes.length; at += size) got.push(filter.push(bytes.subarray(at, at + size)))
        got.push(filter.end())
        expect(Buffer.concat(got).toString()).toBe(seen)
      },
    ),
  )
})

it.each([
  ['an event without JSON', 'data: usage "usage"\n\n'],
  ['a comment', ': "usage":null\n\n'],
  ['a first chunk without choices', data({ choices: [], prompt_filter_results: [], note: 'usage' })],
  ['usage beside output', data({ choices: [{ delta: {} }], usage: { prompt_tokens: 1 } })],
  ['an error', data({ error: { message: 'x' }, usage: null })],
  ['an event without its end', 'data: {"choices":[{"usage":nu'],
  [
    'an event that is too long',
    data({ choices: [{ delta: { content: 'x'.repeat(1_200_000) } }], usage: null }),
  ],
])('%s passes as it is', (_, text) => {
  const filter = new UsageFilter()
  const bytes = Buffer.from(text)
  const parts = [0, 1, 2].map((part) => filter.push(bytes.subarray(part * 600_000, (part + 1) * 600_000)))
  expect(Buffer.concat([...parts, filter.end()]).toString()).toBe(text)
})

describe('through the gateway', () => {
  const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] })

  const ask = async (asksForUsage: boolean, text = body) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai', asksForUsage })
    const answer = post(setting.scripted, {}, { path: chat, body: text })
    const arrival = await upstream.next()
    const { sent, seen } = streamOf(['a', tricky, 'b'], '\n\n')
    const isAsked = JSON.parse(arrival.body).stream_options?.include_usage === true
    arrival.response.writeHead(200, { 'content-type': 'text/event-stream' })
    arrival.response.end(isAsked ? sent : seen)
    const got = await (await answer).text()
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    return { setting, arrival, got, sent, seen }
  }

  it('usage is learned where the upstream is configured for it, and the client sees none of it', async () => {
    const { setting, got, seen } = await ask(true)
    expect(got).toBe(seen)
    expect(setting.host.status()[0]?.recentInputTokens).toBe(1_200)
  })

  it('without the option the request goes as it came', async () => {
    const { arrival, got, seen } = await ask(false)
    expect([arrival.body, got]).toEqual([body, seen])
  })

  it('a client that asks itself gets all of it', async () => {
    const own = JSON.stringify({ ...JSON.parse(body), stream_options: { include_usage: true } })
    const { arrival, got, sent } = await ask(true, own)
    expect([arrival.body, got]).toEqual([own, sent])
  })

  it("OpenAI's SDK sees no chunk without choices", async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai', asksForUsage: true })
    const client = new OpenAI({ baseURL: `${setting.scripted}/v1`, apiKey: 'key-a' })
    const asking = client.chat.completions.create({
      model: 'm',
      stream: true,
      messages: [{ role: 'user', content: 'hello' }],
    })
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(streamOf(['a', 'b'], '\n\n').sent)
    const chunks: Array<OpenAI.ChatCompletionChunk> = []
    for await (const chunk of await asking) chunks.push(chunk)
    expect(chunks.map(({ choices, usage }) => [choices[0]?.delta.content, usage])).toEqual([
      ['a', undefined],
      ['b', undefined],
    ])
    await vi.waitFor(() => expect(setting.host.status()[0]?.recentInputTokens).toBe(1_200))
  })
})
