import Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts'
import { decodeRules } from '../../src/emulator/rules/spec.ts'
import { makeManualClock, until } from './manual-clock.ts'

let running: Emulator[] = []

const start = async (rules: unknown, options: Partial<EmulatorOptions> = {}) => {
  const emulator = await startEmulator({ rules: decodeRules(rules), ...options })
  running.push(emulator)
  const client = new Anthropic({ apiKey: 'test-key', baseURL: emulator.url, maxRetries: 0 })
  return { emulator, client }
}

afterEach(async () => {
  await Promise.all(running.map((emulator) => emulator.close()))
  running = []
})

const body = {
  model: 'emulator-large',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Say something.' }],
}
const tokens = (input: number, output = 3, more: Record<string, string> = {}) => ({
  headers: { 'x-emulator-input-tokens': `${input}`, 'x-emulator-output-tokens': `${output}`, ...more },
})

/** The error that a call ends with. */
const errorOf = async (call: PromiseLike<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> => {
  try {
    await call
  } catch (error) {
    if (error instanceof Anthropic.APIError) return error
    throw error
  }
  throw new Error('the call was expected to fail')
}

describe('Anthropic Messages through the official SDK', () => {
  test('a message: text, usage, stop reason, request id', async () => {
    const { emulator, client } = await start([])
    const { data, response } = await client.messages.create(body, tokens(1_234)).withResponse()
    expect(data).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'emulator-large',
      stop_reason: 'end_turn',
      usage: { input_tokens: 1_234, output_tokens: 3 },
    })
    const [block] = data.content
    expect(block?.type === 'text' && block.text.split(' ')).toHaveLength(3)
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect(emulator.log().map(({ kind }) => kind)).toEqual(['accepted', 'completed'])
  })

  test('a stream says the same as the message, in the documented order of events', async () => {
    const { client } = await start([])
    const whole = await client.messages.create(body, tokens(10))
    const { client: second } = await start([])
    const stream = second.messages.stream(body, tokens(10))
    const events: string[] = []
    for await (const event of stream) events.push(event.type)
    const streamed = await stream.finalMessage()
    expect(streamed.content).toMatchObject(whole.content.map((block) => ({ ...block })))
    expect(streamed.usage).toMatchObject({ input_tokens: 10, output_tokens: 3 })
    expect(streamed.stop_reason).toBe('end_turn')
    expect(events).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  test('without instructions the input is a quarter of the body and the output stops at max_tokens', async () => {
    const { client } = await start([])
    const bytes = Buffer.byteLength(JSON.stringify({ ...body, max_tokens: 5 }))
    const short = await client.messages.create({ ...body, max_tokens: 5 })
    expect(short.usage).toMatchObject({ input_tokens: Math.ceil(bytes / 4), output_tokens: 5 })
    expect(short.stop_reason).toBe('max_tokens')
    const long = await client.messages.create(body)
    expect([long.usage.output_tokens, long.stop_reason]).toEqual([64, 'end_turn'])
  })

  test('count_tokens and models charge nothing', async () => {
    const { emulator, client } = await start([{ rule: 'requests-per-minute', requestsPerMinute: 1 }])
    const { model, messages } = body
    expect(await client.messages.countTokens({ model, messages }, tokens(77))).toEqual({ input_tokens: 77 })
    const models = await client.models.list()
    expect(models.data.map(({ id }) => id)).toContain('emulator-large')
    expect(emulator.log()).toEqual([])
  })

  test('headers show limits as they are after the call', async () => {
    const clock = makeManualClock(Date.UTC(2026, 0, 1))
    const { client } = await start(
      [
        { rule: 'token-bucket', inputTokensPerMinute: 60_000 },
        { rule: 'requests-per-minute', requestsPerMinute: 50 },
        { rule: 'output-tokens-per-minute', outputTokensPerMinute: 8_000 },
      ],
      { clock },
    )
    const { response } = await client.messages.create(body, tokens(30_200)).withResponse()
    const shown = Object.fromEntries(
      [...response.headers].filter(([name]) => name.startsWith('anthropic-ratelimit') || name === 'date'),
    )
    expect(shown).toEqual({
      date: 'Thu, 01 Jan 2026 00:00:00 GMT',
      'anthropic-ratelimit-input-tokens-limit': '60000',
      'anthropic-ratelimit-input-tokens-remaining': '30000',
      'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:31Z',
      'anthropic-ratelimit-output-tokens-limit': '8000',
      'anthropic-ratelimit-output-tokens-remaining': '8000',
      'anthropic-ratelimit-output-tokens-reset': '2026-01-01T00:00:00Z',
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:02Z',
      'anthropic-ratelimit-tokens-limit': '8000',
      'anthropic-ratelimit-tokens-remaining': '8000',
      'anthropic-ratelimit-tokens-reset': '2026-01-01T00:00:00Z',
    })
  })
})

const growth = {
  rule: 'use-growth',
  floorTokensPerMinute: 9,
  growthPerMinute: 2,
  tierTokensPerMinute: 1_000_000,
}
const step = {
  rule: 'time-step',
  floorTokensPerMinute: 58_276,
  stepTokensPerMinute: 10_000,
  tierTokensPerMinute: 400_000,
  idleResetMinutes: 6,
}

describe('Anthropic refusals through the official SDK', () => {
  const refusals: readonly (readonly [string, unknown, number, string, RegExp])[] = [
    [
      'token-bucket',
      [{ rule: 'token-bucket', inputTokensPerMinute: 30_000 }],
      429,
      'rate_limit_error',
      /rate limit of 30,000 input tokens per minute \(org: .*, model: emulator-large\)/,
    ],
    [
      'use-growth',
      [growth],
      429,
      'rate_limit_error',
      /maximum usage increase rate for input tokens per minute\. Please scale up/,
    ],
    [
      'time-step',
      [step],
      429,
      'rate_limit_error',
      /Your current limit is 58,276 input tokens per minute, and will increase to 68,276 at the next minute boundary\./,
    ],
    [
      'slow-down',
      [{ rule: 'slow-down', steadyTokensPerMinute: 9, growth: 2, windowMs: 60_000 }],
      429,
      'rate_limit_error',
      /maximum usage increase rate/,
    ],
    [
      'concurrency',
      [{ rule: 'concurrency', maxConcurrent: 1 }],
      429,
      'rate_limit_error',
      /Number of concurrent connections has exceeded/,
    ],
    [
      'requests-per-minute',
      [{ rule: 'requests-per-minute', requestsPerMinute: 1 }],
      429,
      'rate_limit_error',
      /rate limit of 1 requests per minute/,
    ],
    [
      'daily-quota',
      [{ rule: 'daily-quota', inputTokensPerDay: 70_000 }],
      429,
      'rate_limit_error',
      /exceeded your daily rate limit/,
    ],
    ['overload', [{ rule: 'overload', probability: 1 }], 529, 'overloaded_error', /Overloaded/],
    [
      'spend-cap',
      [{ rule: 'spend-cap' }],
      400,
      'invalid_request_error',
      /reached your specified API usage limits\. You will regain access on 2026-02-01 at 00:00 UTC/,
    ],
  ]
  test.each(refusals)('%s', async (name, rules, status, type, message) => {
    // The first call stays in flight, so that every limit has something to refuse the second for.
    const clock = makeManualClock(Date.UTC(2026, 0, 1))
    const { emulator, client } = await start(rules, {
      clock,
      latency: { firstTokenMs: 1_000, perOutputTokenMs: 0 },
    })
    const first = client.messages.create(body, tokens(1)).catch(() => null)
    await until(() => emulator.log().length === 1)
    const error = await errorOf(client.messages.create(body, tokens(70_000)))
    expect(error.status).toBe(status)
    expect(error.error).toMatchObject({
      type: 'error',
      error: { type, message: expect.stringMatching(message) },
    })
    expect(error.headers?.get('x-should-retry')).toBe(
      name === 'spend-cap' || name === 'token-bucket' ? 'false' : 'true',
    )
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'refused', rule: name })
    clock.advance(1_000)
    await first
  })

  test('retry-after is in seconds, rounded up, and sufficient', async () => {
    const clock = makeManualClock(Date.UTC(2026, 0, 1))
    const { client } = await start([{ rule: 'token-bucket', inputTokensPerMinute: 60_000 }], { clock })
    await client.messages.create(body, tokens(60_000))
    const error = await errorOf(client.messages.create(body, tokens(1_500)))
    expect(error).toBeInstanceOf(Anthropic.RateLimitError)
    expect(error.headers?.get('retry-after')).toBe('2')
    clock.advance(2_000)
    await client.messages.create(body, tokens(1_500))
  })

  test('a bad request is named by field, a missing key is 401, an unknown path 404', async () => {
    const { emulator, client } = await start([])
    const post = (path: string, text: string, headers: Record<string, string> = { 'x-api-key': 'k' }) =>
      fetch(`${emulator.url}${path}`, { method: 'POST', body: text, headers })
    const bad = await errorOf(client.messages.create({ ...body, max_tokens: 0 }))
    expect(bad).toBeInstanceOf(Anthropic.BadRequestError)
    expect(bad.message).toContain('max_tokens: Input should be')
    expect((await errorOf(client.messages.create({ ...body, messages: [] }))).message).toContain(
      'messages: at least one message is required',
    )
    expect(
      (await errorOf(client.messages.create(body, tokens(1, 1, { 'x-emulator-fault': 'flood' })))).message,
    ).toContain('x-emulator-fault: must be one of')
    expect((await post('/v1/messages', '{nope')).status).toBe(400)
    expect((await post('/v1/messages', '[]')).status).toBe(400)
    expect((await post('/v1/messages', '{}', {})).status).toBe(401)
    expect((await post('/v1/messages/batches', '{}')).status).toBe(404)
    expect(emulator.log()).toEqual([])
  })
})

describe('Anthropic streams that go wrong', () => {
  test('in-stream-error: an overload inside a 200 stream, after half of the answer', async () => {
    const { emulator, client } = await start([])
    const seen: string[] = []
    const error = await errorOf(
      (async () => {
        const stream = await client.messages.create(
          { ...body, stream: true },
          tokens(10, 4, { 'x-emulator-fault': 'in-stream-error' }),
        )
        for await (const event of stream) seen.push(event.type)
      })(),
    )
    expect(error.message).toContain('overloaded_error')
    expect(seen.filter((type) => type === 'content_block_delta')).toHaveLength(2)
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'aborted', outputTokens: 2 })
  })

  test('disconnect: the socket ends in the middle', async () => {
    const { emulator, client } = await start([])
    const stream = client.messages.stream(body, tokens(10, 4, { 'x-emulator-fault': 'disconnect' }))
    await expect(stream.finalMessage()).rejects.toThrow()
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'aborted', outputTokens: 2 })
  })

  test('overloaded and spend-cap: refused on request', async () => {
    const { emulator, client } = await start([])
    const overloaded = await errorOf(
      client.messages.create(body, tokens(1, 1, { 'x-emulator-fault': 'overloaded' })),
    )
    expect(overloaded.status).toBe(529)
    const capped = await errorOf(
      client.messages.create(body, tokens(1, 1, { 'x-emulator-fault': 'spend-cap' })),
    )
    expect(capped.message).toContain('API usage limits')
    expect(emulator.log().map(({ refusalKind }) => refusalKind)).toEqual(['overloaded', 'quota-exhausted'])
  })

  test('hang: accepted, never answered, until the client goes away', async () => {
    const { emulator, client } = await start([])
    const controller = new AbortController()
    const call = client.messages.create(body, {
      ...tokens(5, 5, { 'x-emulator-fault': 'hang' }),
      signal: controller.signal,
    })
    const ended = expect(call).rejects.toThrow(Anthropic.APIUserAbortError)
    await until(() => emulator.provider.inFlight() === 1)
    controller.abort()
    await ended
    await until(() => emulator.provider.inFlight() === 0)
    expect(emulator.log().at(-1)).toMatchObject({ kind: 'aborted', outputTokens: 0 })
  })

  test('an abort mid-stream is logged with what was produced, and frees the slot', async () => {
    const clock = makeManualClock()
    const { emulator, client } = await start([{ rule: 'concurrency', maxConcurrent: 1 }], {
      clock,
      latency: { firstTokenMs: 100, perOutputTokenMs: 10 },
    })
    const stream = client.messages.stream(body, tokens(10, 50, { 'x-emulator-call-id': 'turn-1/main' }))
    let words = 0
    stream.on('text', () => {
      words += 1
    })
    const ended = expect(stream.finalMessage()).rejects.toThrow(Anthropic.APIUserAbortError)
    await until(() => clock.armed() === 1)
    clock.advance(120)
    await until(() => words === 3)
    stream.abort()
    await ended
    await until(() => emulator.provider.inFlight() === 0)
    expect(clock.armed()).toBe(0)
    expect(emulator.log()).toEqual([
      { at: 0, callId: 'turn-1/main', kind: 'accepted', inputTokens: 10 },
      { at: 120, callId: 'turn-1/main', kind: 'aborted', inputTokens: 10, outputTokens: 3 },
    ])
    const next = client.messages.create(body, tokens(10, 1))
    await until(() => clock.armed() === 1)
    clock.advance(110)
    await next
  })
})
