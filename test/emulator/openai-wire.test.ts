import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts'
import { decodeRules } from '../../src/emulator/rules/spec.ts'
import { goDuration } from '../../src/emulator/wire/openai-vendor.ts'
import { makeManualClock, until } from './manual-clock.ts'

let running: Emulator[] = []

const start = async (rules: unknown, options: Partial<EmulatorOptions> = {}) => {
  const emulator = await startEmulator({ rules: decodeRules(rules), ...options })
  running.push(emulator)
  const client = new OpenAI({ apiKey: 'test-key', baseURL: `${emulator.url}/v1`, maxRetries: 0 })
  return { emulator, client }
}

afterEach(async () => {
  await Promise.all(running.map((emulator) => emulator.close()))
  running = []
})

const chat = { model: 'emulator-small', messages: [{ role: 'user' as const, content: 'Say something.' }] }
const prompt = { model: 'emulator-small', input: 'Say something.' }
const tokens = (input: number, output = 3, more: Record<string, string> = {}) => ({
  headers: { 'x-emulator-input-tokens': `${input}`, 'x-emulator-output-tokens': `${output}`, ...more },
})

const errorOf = async (call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  try {
    await call
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error
    throw error
  }
  throw new Error('the call was expected to fail')
}

describe('OpenAI Chat Completions through the official SDK', () => {
  test('a completion: text, usage, finish reason, request id', async () => {
    const { emulator, client } = await start([])
    const { data, response } = await client.chat.completions.create(chat, tokens(500)).withResponse()
    expect(data).toMatchObject({
      object: 'chat.completion',
      model: 'emulator-small',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant' } }],
      usage: { prompt_tokens: 500, completion_tokens: 3, total_tokens: 503 },
    })
    expect(data.choices[0]?.message.content?.split(' ')).toHaveLength(3)
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    expect(emulator.log().map(({ kind }) => kind)).toEqual(['accepted', 'completed'])
  })

  test('a stream says the same, with usage at its end only when asked', async () => {
    const { client } = await start([])
    const collect = async (include_usage: boolean) => {
      const stream = await client.chat.completions.create(
        { ...chat, stream: true, stream_options: { include_usage } },
        tokens(9),
      )
      const chunks = []
      for await (const chunk of stream) chunks.push(chunk)
      return chunks
    }
    const plain = await collect(false)
    expect(plain.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null, null, null, 'stop'])
    expect(plain.some((chunk) => 'usage' in chunk)).toBe(false)
    const counted = await collect(true)
    expect(counted.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3 } })
    expect(counted.at(-2)?.usage).toBe(null)
  })

  test('max_completion_tokens ends the answer', async () => {
    const { client } = await start([])
    const { choices, usage } = await client.chat.completions.create({ ...chat, max_completion_tokens: 4 })
    expect([choices[0]?.finish_reason, usage?.completion_tokens]).toEqual(['length', 4])
  })

  test('models are listed', async () => {
    const { client } = await start([])
    expect((await client.models.list()).data.map(({ id }) => id)).toContain('emulator-small')
  })
})

describe('OpenAI Responses through the official SDK', () => {
  test('a response: text, usage, status', async () => {
    const { client } = await start([])
    const response = await client.responses.create(prompt, tokens(70))
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      usage: { input_tokens: 70, output_tokens: 3, total_tokens: 73 },
    })
    expect(response.output_text.split(' ')).toHaveLength(3)
  })

  test('a stream says the same, in the documented order, numbered without a gap', async () => {
    const { client } = await start([])
    const stream = client.responses.stream(prompt, tokens(70))
    const events = []
    for await (const event of stream) events.push(event)
    const final = await stream.finalResponse()
    expect(final.output_text.split(' ')).toHaveLength(3)
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
  })

  test('max_output_tokens leaves the response incomplete', async () => {
    const { client } = await start([])
    const response = await client.responses.create({ ...prompt, max_output_tokens: 4 })
    expect([response.status, response.incomplete_details]).toEqual([
      'incomplete',
      { reason: 'max_output_tokens' },
    ])
  })
})

describe('OpenAI refusals through the official SDK', () => {
  const growth = {
    rule: 'use-growth',
    floorTokensPerMinute: 9,
    growthPerMinute: 2,
    tierTokensPerMinute: 1_000_000,
  }
  const refusals: readonly (readonly [string, unknown, number, string, RegExp])[] = [
    [
      'token-bucket',
      [{ rule: 'token-bucket', inputTokensPerMinute: 70_000 }],
      429,
      'rate_limit_exceeded',
      /on tokens per min \(TPM\): Limit 70000, Used 1, Requested 70000\. Please try again in 1ms\./,
    ],
    [
      'token-bucket',
      [{ rule: 'token-bucket', inputTokensPerMinute: 30_000 }],
      429,
      'rate_limit_exceeded',
      /Request too large for emulator-small .*Limit 30000, Requested 70000\./,
    ],
    ['use-growth', [growth], 503, 'slow_down', /Slow Down/],
    [
      'concurrency',
      [{ rule: 'concurrency', maxConcurrent: 1 }],
      429,
      'rate_limit_exceeded',
      /max concurrency: 1/,
    ],
    [
      'requests-per-minute',
      [{ rule: 'requests-per-minute', requestsPerMinute: 1 }],
      429,
      'rate_limit_exceeded',
      /on requests per min \(RPM\): Limit 1, Used 1, Requested 1\. Please try again in 1m0s\./,
    ],
    [
      'daily-quota',
      [{ rule: 'daily-quota', requestsPerDay: 1 }],
      429,
      'rate_limit_exceeded',
      /on requests per day \(RPD\): Limit 1, Used 1, Requested 1\. Please try again in 24h0m0s\./,
    ],
    [
      'daily-quota',
      [{ rule: 'daily-quota', inputTokensPerDay: 70_000 }],
      429,
      'rate_limit_exceeded',
      /tokens per day \(TPD\)/,
    ],
    ['overload', [{ rule: 'overload', probability: 1 }], 503, 'server_is_overloaded', /currently overloaded/],
    ['spend-cap', [{ rule: 'spend-cap' }], 429, 'insufficient_quota', /exceeded your current quota/],
  ]
  test.each(refusals)('%s %#', async (name, rules, status, code, message) => {
    const clock = makeManualClock(Date.UTC(2026, 0, 1))
    const { emulator, client } = await start(rules, {
      clock,
      latency: { firstTokenMs: 1_000, perOutputTokenMs: 0 },
    })
    const first = client.chat.completions.create(chat, tokens(1)).catch(() => null)
    await until(() => emulator.log().length === 1)
    const error = await errorOf(client.chat.completions.create(chat, tokens(70_000)))
    expect([error.status, error.code]).toEqual([status, code])
    expect(error.message).toMatch(message)
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'refused', rule: name })
    clock.advance(1_000)
    await first
  })

  test('retry-after-ms states the exact wait, headers the limits with relative resets', async () => {
    const clock = makeManualClock(Date.UTC(2026, 0, 1))
    const { client } = await start(
      [
        { rule: 'token-bucket', inputTokensPerMinute: 60_000 },
        { rule: 'requests-per-minute', requestsPerMinute: 60 },
      ],
      { clock },
    )
    await client.responses.create(prompt, tokens(60_000))
    const error = await errorOf(client.responses.create(prompt, tokens(644)))
    expect(error).toBeInstanceOf(OpenAI.RateLimitError)
    const shown = Object.fromEntries(
      [...(error.headers ?? [])].filter(([name]) => /ratelimit|retry/.test(name)),
    )
    expect(shown).toEqual({
      'retry-after': '1',
      'retry-after-ms': '644',
      'x-should-retry': 'true',
      'x-ratelimit-limit-tokens': '60000',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '1m0s',
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1s',
    })
    clock.advance(644)
    await client.responses.create(prompt, tokens(644))
  })

  test('a bad request is named by field, a missing key is 401, an unknown path 404', async () => {
    const { emulator, client } = await start([])
    const post = (
      path: string,
      text: string,
      headers: Record<string, string> = { authorization: 'Bearer k' },
    ) => fetch(`${emulator.url}${path}`, { method: 'POST', body: text, headers })
    const bad = await errorOf(client.chat.completions.create({ ...chat, messages: [] }))
    expect(bad).toBeInstanceOf(OpenAI.BadRequestError)
    expect(bad.param).toBe('messages')
    expect((await errorOf(client.responses.create({ model: 'emulator-small' }))).param).toBe('input')
    expect((await post('/v1/responses', '{')).status).toBe(400)
    expect((await post('/v1/chat/completions', '{}', {})).status).toBe(401)
    expect((await post('/v1/embeddings', '{}')).status).toBe(404)
    expect(emulator.log()).toEqual([])
  })

  test.each([
    [644, '644ms'],
    [59_874, '59.874s'],
    [360_000, '6m0s'],
    [432_000, '7m12s'],
    [86_400_000, '24h0m0s'],
    [0, '0s'],
    [-5, '0s'],
    [0.2, '1ms'],
  ])('%d ms is written %s', (durationMs, text) => expect(goDuration(durationMs)).toBe(text))
})

describe('OpenAI streams that go wrong', () => {
  test('in-stream-error: an overload inside a 200 stream of either endpoint', async () => {
    const { emulator, client } = await start([])
    const fault = tokens(10, 4, { 'x-emulator-fault': 'in-stream-error' })
    const drain = async (stream: Promise<AsyncIterable<unknown>>) => {
      for await (const _ of await stream);
    }
    const inChat = await errorOf(drain(client.chat.completions.create({ ...chat, stream: true }, fault)))
    const inResponse = await errorOf(drain(client.responses.create({ ...prompt, stream: true }, fault)))
    expect([inChat.code, inResponse.code]).toEqual(['server_is_overloaded', 'server_is_overloaded'])
    expect(emulator.provider.totals()).toMatchObject({ accepted: 2, aborted: 2, completed: 0 })
  })

  test('an error asked for inside a stream of an answer that is none is a 500', async () => {
    const { client } = await start([])
    const error = await errorOf(
      client.chat.completions.create(chat, tokens(1, 1, { 'x-emulator-fault': 'in-stream-error' })),
    )
    expect(error).toBeInstanceOf(OpenAI.InternalServerError)
  })

  test('an abort mid-stream is logged with what was produced', async () => {
    const clock = makeManualClock()
    const { emulator, client } = await start([], {
      clock,
      latency: { firstTokenMs: 0, perOutputTokenMs: 10 },
    })
    const stream = await client.chat.completions.create({ ...chat, stream: true }, tokens(10, 50))
    clock.advance(10)
    let words = 0
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) words += 1
      if (words === 2) break
    }
    await until(() => emulator.provider.inFlight() === 0)
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'aborted', outputTokens: 2 })
  })
})
