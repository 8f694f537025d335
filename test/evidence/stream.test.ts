import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeStreamReader, type StreamReader } from '../../src/evidence/index.ts'

const encoder = new TextEncoder()

const event = (name: string, data: unknown): string => {
  return `${name === '' ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
}

const read = (provider: string, text: string): StreamReader => {
  const reader = makeStreamReader(provider)
  reader.push(encoder.encode(text))
  return reader
}

const typed = (data: { readonly type: string }): string => event(data.type, data)

const anthropicStream =
  typed({
    type: 'message_start',
    ...{
      message: {
        id: 'm',
        content: [],
        usage: {
          input_tokens: 25,
          cache_creation_input_tokens: 5,
          cache_read_input_tokens: 900,
          output_tokens: 1,
        },
      },
    },
  }) +
  event('ping', { type: 'ping' }) +
  typed({ type: 'content_block_start', ...{ index: 0, content_block: { type: 'text', text: '' } } }) +
  typed({
    type: 'content_block_delta',
    ...{ index: 0, delta: { type: 'text_delta', text: 'Grüße 🌍 "usage":{"input_tokens":1}' } },
  }) +
  typed({ type: 'message_delta', ...{ delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 42 } } }) +
  typed({ type: 'message_stop' })
const anthropicUsage = { inputTokens: 30, outputTokens: 42, cacheReadTokens: 900, cacheWriteTokens: 5 }

const chatStream =
  event('', {
    object: 'chat.completion.chunk',
    choices: [{ delta: { role: 'assistant', content: '' } }],
    usage: null,
  }) +
  event('', {
    object: 'chat.completion.chunk',
    choices: [{ delta: { content: 'Grüße "error": {}' } }],
    usage: null,
  }) +
  event('', {
    object: 'chat.completion.chunk',
    choices: [],
    usage: { prompt_tokens: 11, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
  }) +
  event('', '[DONE]')
const chatUsage = { inputTokens: 11, outputTokens: 3, cacheReadTokens: 2, cacheWriteTokens: 0 }

const responsesStream =
  typed({ type: 'response.created', ...{ response: { status: 'in_progress', error: null, usage: null } } }) +
  typed({ type: 'response.output_text.delta', ...{ delta: 'Hi' } }) +
  typed({
    type: 'response.completed',
    ...{
      response: {
        status: 'completed',
        error: null,
        tools: [{ parameters: { properties: { usage: { type: 'object' } } } }],
        usage: { input_tokens: 8, input_tokens_details: { cached_tokens: 4 }, output_tokens: 2 },
      },
    },
  })
const responsesUsage = { inputTokens: 8, outputTokens: 2, cacheReadTokens: 4, cacheWriteTokens: 0 }

const geminiStream =
  event('', {
    candidates: [{ content: { parts: [{ text: 'Hi' }] } }],
    usageMetadata: { promptTokenCount: 6, candidatesTokenCount: 1 },
  }) +
  event('', {
    candidates: [{ content: { parts: [{ text: '.' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 6, candidatesTokenCount: 2, thoughtsTokenCount: 5 },
  })
const geminiUsage = { inputTokens: 6, outputTokens: 7, cacheReadTokens: 0, cacheWriteTokens: 0 }

const wires = [
  ['Anthropic messages', 'anthropic', anthropicStream, anthropicUsage],
  ['OpenAI chat', 'openai', chatStream, chatUsage],
  ['OpenAI responses', 'openai', responsesStream, responsesUsage],
  ['Gemini', 'gemini', geminiStream, geminiUsage],
] as const

describe.each(wires)('a stream of %s', (_wire, provider, text, usage) => {
  const whole = { usage, firstTokenSeen: true, evidence: null, done: true }

  it('gives its usage, its first token and its end', () => {
    expect(read(provider, text)).toMatchObject(whole)
  })

  it('reads the same under the name of an unknown provider', () => {
    expect(read('somebody-new', text)).toMatchObject(whole)
  })

  it.each([
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('reads the same with %s', (_name, end) => {
    const reader = read(provider, text.replaceAll('\n', end))
    reader.end()
    expect(reader).toMatchObject(whole)
  })

  it('reads the same however it is cut, in the middle of a letter or of a line end', () => {
    const bytes = encoder.encode(text.replaceAll('\n', '\r\n'))
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 40 }), (cuts) => {
        const reader = makeStreamReader(provider)
        const edges = [0, ...cuts.toSorted((left, right) => left - right), bytes.length]
        edges.forEach((edge, index) => {
          reader.push(bytes.subarray(edge, edges[index + 1] ?? edge))
        })
        expect(reader).toMatchObject(whole)
      }),
    )
  })

  it('reads the same byte by byte', () => {
    const reader = makeStreamReader(provider)
    for (const byte of encoder.encode(text)) reader.push(Uint8Array.of(byte))
    expect(reader).toMatchObject(whole)
  })
})

describe('usage that comes in parts', () => {
  const start = { message: { usage: { input_tokens: 10, cache_creation_input_tokens: 4, output_tokens: 1 } } }

  it.each([
    ['output alone', { output_tokens: 5 }, { inputTokens: 14, outputTokens: 5, cacheWriteTokens: 4 }],
    [
      'input again',
      { input_tokens: 10, output_tokens: 5 },
      { inputTokens: 14, outputTokens: 5, cacheWriteTokens: 4 },
    ],
    [
      'input that a relay knows only now',
      { input_tokens: 30, output_tokens: 5 },
      { inputTokens: 34, outputTokens: 5, cacheWriteTokens: 4 },
    ],
    [
      'zeros of a relay that does not count',
      { input_tokens: 0, output_tokens: 5 },
      { inputTokens: 14, outputTokens: 5 },
    ],
  ])('%s', (_what, usage, expected) => {
    const text = typed({ type: 'message_start', ...start }) + typed({ type: 'message_delta', ...{ usage } })
    expect(read('anthropic', text).usage).toMatchObject(expected)
  })

  it('is read from every chunk of a server that counts as it goes', () => {
    const chunk = (completion_tokens: number): string =>
      event('', { choices: [], usage: { prompt_tokens: 3, completion_tokens } })
    expect(read('vllm', chunk(1) + chunk(2) + chunk(3)).usage).toMatchObject({
      inputTokens: 3,
      outputTokens: 3,
    })
  })
})

describe('the first token', () => {
  it.each([
    ['a role is none', { choices: [{ delta: { role: 'assistant', content: '' } }] }, false],
    ['an empty list of tool calls is none', { choices: [{ delta: { tool_calls: [] } }] }, false],
    ['text', { choices: [{ delta: { content: 'a' } }] }, true],
    ['reasoning', { choices: [{ delta: { reasoning_content: 'a' } }] }, true],
    [
      'a tool call',
      { choices: [{ delta: { tool_calls: [{ function: { name: 'f', arguments: '' } }] } }] },
      true,
    ],
    ['a part', { candidates: [{ content: { parts: [{ functionCall: { name: 'f' } }] } }] }, true],
  ])('%s', (_what, data, expected) => {
    expect(read('x', event('', data)).firstTokenSeen).toBe(expected)
  })

  it('is not there in comments and pings', () => {
    expect(
      read('deepseek', ': keep-alive\n\n: keep-alive\n\nevent: ping\ndata: {"type":"ping"}\n\n')
        .firstTokenSeen,
    ).toBe(false)
  })
})

describe('an error inside a stream', () => {
  const limit = {
    type: 'rate_limit_error',
    message: 'This request would exceed the rate limit of 8,500 output tokens per minute.',
  }

  it.each([
    [
      'an event by name',
      'anthropic',
      event('error', { type: 'error', error: limit }),
      'output-tokens-per-minute',
    ],
    [
      'an event without a name',
      'proxy',
      event('', { type: 'error', error: limit }),
      'output-tokens-per-minute',
    ],
    [
      'a failed response',
      'openai',
      event('response.failed', {
        type: 'response.failed',
        response: { error: { code: 'slow_down', message: 'Slow down' } },
      }),
      'acceleration',
    ],
    [
      'a flat error',
      'azure',
      event('error', { type: 'error', code: 'no_capacity', message: 'High demand' }),
      'overloaded',
    ],
    [
      'an error beside the choices',
      'openrouter',
      event('', {
        error: { code: 429, message: 'free-models-per-min' },
        choices: [{ finish_reason: 'error' }],
      }),
      'requests-per-minute',
    ],
    [
      'an error that is no refusal',
      'openrouter',
      event('', { error: { code: 'server_error', message: 'gone' }, choices: [] }),
      'not-capacity',
    ],
    ['plain text under the name of an error', 'proxy', event('error', 'Overloaded'), 'overloaded'],
  ])('%s', (_what, provider, text, kind) => {
    const reader = read(provider, `${typed({ type: 'message_start' })}${text}`)
    expect(reader.evidence?.kind).toBe(kind)
    expect(reader.done).toBe(true)
  })

  it('takes its wait from the headers of the answer', () => {
    const reader = makeStreamReader('azure', { headers: { 'retry-after': '4' } })
    reader.push(
      encoder.encode(
        event('error', { type: 'error', code: 'rate_limit_exceeded', message: 'exceeded token rate limit' }),
      ),
    )
    expect(reader.evidence).toMatchObject({ kind: 'tokens-per-minute', retryAfterMs: 4000 })
  })

  it('is known by its start when it echoes a long request', () => {
    const data = { type: 'error', error: { ...limit, echo: 'x'.repeat(300_000) } }
    expect(read('proxy', event('error', data)).evidence?.kind).toBe('output-tokens-per-minute')
  })

  it('is found under an event name that nobody knows', () => {
    expect(read('proxy', event('chunk', { error: limit })).evidence?.kind).toBe('output-tokens-per-minute')
  })

  it('is not found in what the model says', () => {
    const said = JSON.stringify({ type: 'error', error: limit })
    const text =
      event('content_block_delta', { type: 'content_block_delta', delta: { text: said } }) +
      event('', { choices: [{ delta: { content: said } }] }) +
      event('', { choices: [{ delta: { content: 'error' } }] })
    expect(read('x', text)).toMatchObject({ evidence: null, done: false })
  })
})
