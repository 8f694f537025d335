/** What the users of each SDK catch when the lanes or the provider refuse, and that no SDK submits a call twice. */
import Anthropic from '@anthropic-ai/sdk'
import { APICallError, generateText, RetryError, streamText } from 'ai'
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'
import { Effect } from 'effect'
import OpenAI from 'openai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { lanedFetch } from '../../src/clients/laned-fetch.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { evidenceOfError } from '../../src/evidence/error-evidence.ts'
import * as errors from '../../src/host/errors.ts'
import { AdmissionError, lanedModel, openHost, type PolicyInput, withCall } from '../../src/index.ts'

const brisk: PolicyInput = { pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0, maxAttempts: 2 }
const chat = { model: 'emulator-large', messages: [{ role: 'user' as const, content: 'Hi' }] }
const message = { ...chat, max_tokens: 8 }

const failureOf = async (promise: PromiseLike<unknown>): Promise<Error> => {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it was expected to fail')
}

const opened = async (policy: PolicyInput = brisk) => {
  const host = await openHost()
  onTestFinished(() => host.close())
  return host.scope('anthropic/k/m', policy)
}

const emulated = async () => {
  const emulator = await startEmulator({ rules: [], latency: { firstTokenMs: 0, perOutputTokenMs: 0 } })
  onTestFinished(() => emulator.close())
  return emulator
}

describe('errors of admission', () => {
  const kinds = Object.values(errors).filter(
    (value): value is new (about: object) => AdmissionError =>
      typeof value === 'function' && value !== AdmissionError && value.prototype instanceof AdmissionError,
  )

  it.each(kinds.map((Kind) => [Kind.name, Kind] as const))(
    '%s has the common base, its tag and its facts',
    (name, Kind) => {
      const error = new Kind({ scope: 's', callId: 'c', message: 'why' })
      expect(error).toBeInstanceOf(AdmissionError)
      expect(error).toBeInstanceOf(Error)
      expect(error).toMatchObject({ _tag: name, name, scope: 's', callId: 'c', message: 'why' })
    },
  )

  it('are all of them, and are caught by their tags in Effect', async () => {
    expect(kinds).toHaveLength(16)
    const shed = new errors.Shed({
      scope: 's',
      callId: 'c',
      message: 'm',
      reason: 'bucket-empty',
      retryAfterMs: 7,
    })
    const caught = Effect.catchTag(Effect.fail(shed as AdmissionError), 'Shed', ({ retryAfterMs }) =>
      Effect.succeed(retryAfterMs),
    )
    expect(await Effect.runPromise(caught)).toBe(7)
  })
})

describe('refusals of the lanes in openai and @anthropic-ai/sdk', () => {
  const refusing = async (refusals: 'respond' | 'throw') => {
    const emulator = await emulated()
    const scope = await opened({ ...brisk, auxiliaryPendingTimeoutMs: 20 })
    scope.beginTurn('t')
    const fetch = lanedFetch(scope, { refusals })
    const client = { fetch, maxRetries: 2, apiKey: 'k' }
    return {
      scope,
      emulator,
      ask: {
        openai: () => new OpenAI({ ...client, baseURL: `${emulator.url}/v1` }).chat.completions.create(chat),
        anthropic: () => new Anthropic({ ...client, baseURL: emulator.url }).messages.create(message),
      },
    }
  }

  it.each(['openai', 'anthropic'] as const)(
    'thrown in %s: the cause is there, and one call was submitted',
    async (sdk) => {
      const { scope, ask, emulator } = await refusing('throw')
      const error = await failureOf(withCall({ lane: 'auxiliary' }, () => ask[sdk]()))
      expect(error).toBeInstanceOf({ openai: OpenAI, anthropic: Anthropic }[sdk].APIConnectionError)
      expect(error.cause).toMatchObject({ _tag: 'PendingTimeout' })
      expect(scope.status.counters.expired).toBe(1)
      expect(emulator.log()).toEqual([])
    },
  )

  it.each(['openai', 'anthropic'] as const)(
    'answered in %s: its own error, with the call id',
    async (sdk) => {
      const { scope, ask } = await refusing('respond')
      const error = await failureOf(withCall({ lane: 'auxiliary' }, () => ask[sdk]()))
      expect(error).toBeInstanceOf({ openai: OpenAI, anthropic: Anthropic }[sdk].InternalServerError)
      expect((error as { headers?: Headers }).headers?.get('x-rightofway-call-id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(scope.status.counters.expired).toBe(1)
    },
  )

  it.each(['openai', 'anthropic'] as const)(
    'a shed call and a spent refusal are RateLimitErrors of %s',
    async (sdk) => {
      const emulator = await emulated()
      const scope = await opened({ ...brisk, qos: { burstCalls: 1, callsPerSecond: 0.05 } })
      const client = { fetch: lanedFetch(scope), maxRetries: 2, apiKey: 'k' }
      const openai = new OpenAI({ ...client, baseURL: `${emulator.url}/v1` })
      const anthropic = new Anthropic({ ...client, baseURL: emulator.url })
      const headers = { 'x-emulator-fault': 'spend-cap' }
      const ask = () =>
        sdk === 'openai'
          ? openai.chat.completions.create(chat, { headers })
          : anthropic.messages.create(message, { headers })
      const { RateLimitError } = { openai: OpenAI, anthropic: Anthropic }[sdk]
      if (sdk === 'openai') expect(await failureOf(ask())).toBeInstanceOf(RateLimitError)
      else await failureOf(ask())
      const shed = await failureOf(ask())
      expect(shed).toBeInstanceOf(RateLimitError)
      expect(shed.message).toContain('BUSY')
      expect(emulator.log()).toHaveLength(1)
    },
  )
})

it('a retry after a broken connection is not taken for the retry of an older refusal', async () => {
  const scope = await opened({ ...brisk, auxiliaryPendingTimeoutMs: 20 })
  let sent = 0
  const send = async () => {
    sent += 1
    if (sent === 1) throw new TypeError('fetch failed')
    return Response.json({ choices: [] })
  }
  const fetch = lanedFetch(scope, { refusals: 'throw', fetch: send as typeof globalThis.fetch })
  const openai = new OpenAI({ fetch, maxRetries: 1, apiKey: 'k', baseURL: 'http://127.0.0.1:1/v1' })
  const ask = () => withCall({ lane: 'auxiliary' }, () => openai.chat.completions.create(chat))
  const { cause } = await scope.turn(() => failureOf(ask()))
  expect(cause).toMatchObject({ _tag: 'PendingTimeout' })
  expect((await withCall({ lane: 'primary' }, () => openai.chat.completions.create(chat))).choices).toEqual(
    [],
  )
  expect(sent).toBe(2)
})

const rateLimited = (): APICallError =>
  new APICallError({
    message: 'slow down',
    url: 'http://provider',
    requestBodyValues: {},
    statusCode: 429,
    responseHeaders: { 'retry-after': '1' },
    responseBody: '{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}',
  })

const overloaded = (): APICallError =>
  new APICallError({
    message: 'Overloaded',
    url: 'http://provider',
    requestBodyValues: {},
    statusCode: 529,
    responseBody: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
  })

describe('the AI SDK', () => {
  const usage = {
    inputTokens: { total: 900, noCache: 300, cacheRead: 500, cacheWrite: 100 },
    outputTokens: { total: 3, text: 3, reasoning: 0 },
  }
  const finishReason = { unified: 'stop' as const, raw: 'stop' }
  const answer = { content: [{ type: 'text' as const, text: 'Hello' }], finishReason, usage, warnings: [] }

  it("'s RetryError is read as the refusal that it wraps", () => {
    const wrapped = new RetryError({
      message: 'failed',
      reason: 'maxRetriesExceeded',
      errors: [rateLimited()],
    })
    expect(evidenceOfError('anthropic', wrapped)).toEqual(evidenceOfError('anthropic', rateLimited()))
    expect(evidenceOfError('anthropic', wrapped)).not.toBeNull()
  })

  it('with a laned model: a refusal goes back to its place, and the SDK sees an answer', async () => {
    const scope = await opened()
    let asked = 0
    const doGenerate = async () => {
      asked += 1
      if (asked === 1) throw overloaded()
      return answer
    }
    const model = lanedModel(new MockLanguageModelV4({ doGenerate }), scope)
    expect((await generateText({ model, prompt: 'Hi' })).text).toBe('Hello')
    expect(asked).toBe(2)
    expect(scope.status.counters).toMatchObject({ completed: 1, refusedByProvider: 1 })
    // As Anthropic's limiter counts: without what was read from the cache.
    expect(scope.status.recentInputTokens).toBe(400)
  })

  it('with a laned model: what stays refused is an APICallError that nobody retries, with its cause', async () => {
    const scope = await opened({ ...brisk, maxAttempts: 1 })
    let asked = 0
    const doGenerate = async () => {
      asked += 1
      throw rateLimited()
    }
    const model = lanedModel(new MockLanguageModelV4({ doGenerate }), scope)
    const error = await failureOf(generateText({ model, prompt: 'Hi' }))
    expect(APICallError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ statusCode: 429, isRetryable: false, cause: { _tag: 'AttemptsExhausted' } })
    expect(asked).toBe(1)
  })

  it('with a laned model: a fault that the SDK would retry is not', async () => {
    const scope = await opened()
    let asked = 0
    const doGenerate = async () => {
      asked += 1
      throw new APICallError({ message: 'down', url: 'u', requestBodyValues: {}, statusCode: 500 })
    }
    const error = await failureOf(
      generateText({ model: lanedModel(new MockLanguageModelV4({ doGenerate }), scope), prompt: 'Hi' }),
    )
    expect(error).toMatchObject({ statusCode: 500, isRetryable: false })
    expect(asked).toBe(1)
  })

  it('with a laned model: a refusal of the lanes is an APICallError with its cause', async () => {
    const scope = await opened({ ...brisk, auxiliaryPendingTimeoutMs: 20 })
    scope.beginTurn('t')
    const model = lanedModel(new MockLanguageModelV4({ doGenerate: answer }), scope)
    const error = await failureOf(
      withCall({ lane: 'auxiliary' }, () => generateText({ model, prompt: 'Hi' })),
    )
    expect(APICallError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ statusCode: 503, isRetryable: false, cause: { _tag: 'PendingTimeout' } })
  })

  it('with a laned model: a stream holds its permit to its end, and an abort frees it', async () => {
    const scope = await opened()
    const model = lanedModel(
      new MockLanguageModelV4({
        doStream: async () => ({
          stream: simulateReadableStream({
            chunks: [
              { type: 'stream-start', warnings: [] },
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: 'Hello' },
              { type: 'text-end', id: '1' },
              { type: 'finish', finishReason, usage },
            ],
          }),
        }),
      }),
      scope,
    )
    const { textStream } = streamText({ model, prompt: 'Hi' })
    for await (const _ of textStream) expect(scope.status.primary.inFlight).toBe(1)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
    expect(scope.status.recentInputTokens).toBe(400)
    const stop = new AbortController()
    const stopped = streamText({ model, prompt: 'Hi', abortSignal: stop.signal })
    for await (const _ of stopped.textStream) stop.abort()
    await vi.waitFor(() => expect(scope.status.primary.inFlight).toBe(0))
  })
})
