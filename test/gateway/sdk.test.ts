/** Real clients through the gateway to the emulator. */

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it, vi } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import { type Setting, startSetting } from './setting.ts'

const message = {
  model: 'emulator-large',
  max_tokens: 12,
  messages: [{ role: 'user' as const, content: 'Hi' }],
}
const chat = { model: 'emulator-large', messages: [{ role: 'user' as const, content: 'Hi' }] }
/** Refusals are tried again at once. */
const brisk = { pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 }

const anthropic = ({ gateway }: Setting, maxRetries = 0) =>
  new Anthropic({ apiKey: 'key-a', baseURL: `${gateway.url}/emulator/anthropic`, maxRetries })
const openai = ({ gateway }: Setting, maxRetries = 0) =>
  new OpenAI({ apiKey: 'key-o', baseURL: `${gateway.url}/emulator/openai/v1`, maxRetries })

const kinds = ({ gateway }: Setting) => gateway.emulator.log().map(({ kind }) => kind)

const failed = async (
  promise: PromiseLike<unknown>,
): Promise<Error & { status?: number; headers?: Headers }> => {
  try {
    await promise
  } catch (error) {
    return error as Error & { status?: number; headers?: Headers }
  }
  throw new Error('it was expected to fail')
}

describe('the official SDKs, through the gateway to the emulator', () => {
  it('Anthropic: a whole message', async () => {
    const setting = await startSetting()
    const answer = await anthropic(setting).messages.create(message)
    expect(answer.usage.output_tokens).toBe(12)
    expect(kinds(setting)).toEqual(['accepted', 'completed'])
    expect(setting.inFlight()).toBe(0)
  })

  it('Anthropic: a stream, and the usage in it settles the call', async () => {
    const setting = await startSetting()
    const stream = anthropic(setting).messages.stream(message, {
      headers: { 'x-emulator-input-tokens': '5000', 'x-rightofway-input-tokens': '10' },
    })
    const final = await stream.finalMessage()
    expect(final.stop_reason).toBe('max_tokens')
    await vi.waitFor(() => expect(setting.host.status()[0]?.counters.completed).toBe(1))
    // The client said 10; what counts in the end is what the stream said.
    expect(setting.host.status()[0]?.recentInputTokens).toBe(5_000)
  })

  it('OpenAI: chat completions, whole and streamed', async () => {
    const setting = await startSetting()
    const whole = await openai(setting).chat.completions.create(chat)
    expect(whole.usage?.completion_tokens).toBeGreaterThan(0)
    const stream = await openai(setting).chat.completions.create({
      ...chat,
      stream: true,
      stream_options: { include_usage: true },
    })
    let tokens = 0
    for await (const chunk of stream) tokens = chunk.usage?.completion_tokens ?? tokens
    expect(tokens).toBe(whole.usage?.completion_tokens)
    expect(kinds(setting)).toEqual(['accepted', 'completed', 'accepted', 'completed'])
  })

  it('OpenAI: responses, whole and streamed', async () => {
    const setting = await startSetting()
    const whole = await openai(setting).responses.create({ model: 'emulator-large', input: 'Hi' })
    const stream = openai(setting).responses.stream({ model: 'emulator-large', input: 'Hi' })
    const final = await stream.finalResponse()
    expect(final.usage?.output_tokens).toBe(whole.usage?.output_tokens)
    await vi.waitFor(() => expect(setting.host.status()[0]?.counters.completed).toBe(2))
  })

  it('a model list needs no permit', async () => {
    const setting = await startSetting()
    const models = await openai(setting).models.list()
    expect(models.data.length).toBeGreaterThan(0)
    const { input_tokens: tokens } = await anthropic(setting).messages.countTokens({
      model: 'emulator-large',
      messages: message.messages,
    })
    expect(tokens).toBeGreaterThan(0)
    expect(setting.host.status()).toEqual([])
    expect(setting.gateway.counters).toMatchObject({ calls: 0, forwarded: 2 })
  })

  it('an abort in the middle of a stream reaches the provider and settles the permit', async () => {
    const setting = await startSetting({ emulator: { perOutputTokenMs: 5 } })
    const stream = await anthropic(setting).messages.create({ ...message, max_tokens: 60, stream: true })
    for await (const { type } of stream) {
      if (type === 'content_block_delta') stream.controller.abort()
    }
    await vi.waitFor(() => expect(kinds(setting)).toEqual(['accepted', 'aborted']))
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(setting.gateway.counters.clientAborts).toBe(1)
    expect(setting.host.status()[0]?.counters.completed).toBe(0)
  })
})

describe('refusals of the provider', () => {
  it('one that passes is absorbed: the SDK sees a success', async () => {
    const rules = [{ rule: 'concurrency', maxConcurrent: 1 }]
    const setting = await startSetting({ policy: brisk, emulator: { rules, perOutputTokenMs: 5 } })
    const hung = new AbortController()
    const first = anthropic(setting).messages.create(message, {
      signal: hung.signal,
      headers: { 'x-emulator-fault': 'hang' },
    })
    await vi.waitFor(() => expect(kinds(setting)).toEqual(['accepted']))
    const second = anthropic(setting).messages.create(message).withResponse()
    await vi.waitFor(() => expect(kinds(setting)).toContain('refused'))
    hung.abort()
    await failed(first)
    const { data, response } = await second
    expect(data.type).toBe('message')
    expect(Number(response.headers.get('x-rightofway-attempts'))).toBeGreaterThan(1)
    expect(setting.gateway.counters.absorbedRefusals).toBeGreaterThan(0)
  })

  it("when attempts are spent, the provider's own answer reaches the client", async () => {
    const rules = [{ rule: 'token-bucket' as const, inputTokensPerMinute: 10, states: 'none' as const }]
    const setting = await startSetting({ policy: { ...brisk, maxAttempts: 3 }, emulator: { rules } })
    const error = await failed(
      anthropic(setting).messages.create(message, {
        headers: { 'x-emulator-input-tokens': '1000', 'x-resource-priority': 'background_ingestion' },
      }),
    )
    expect(error.status).toBe(429)
    expect(error.message).toContain('"type":"rate_limit_error"')
    expect(error.headers?.get('request-id')).toMatch(/^req_emulator/)
    expect(error.headers?.get('x-rightofway-attempts')).toBe('3')
    const log = setting.gateway.emulator.log()
    expect(log.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused'])
    expect(new Set(log.map(({ callId }) => callId)).size).toBe(1)
  })

  it.each(['anthropic', 'openai'] as const)('a spend cap is not tried again (%s)', async (wire) => {
    const setting = await startSetting({ policy: brisk })
    const headers = { 'x-emulator-fault': 'spend-cap' }
    const asked =
      wire === 'anthropic'
        ? anthropic(setting).messages.create(message, { headers })
        : openai(setting).chat.completions.create(chat, { headers })
    const error = await failed(asked)
    expect(error.status).toBe(wire === 'anthropic' ? 400 : 429)
    expect(kinds(setting)).toEqual(['refused'])
  })

  it('an error inside a stream reaches the client once, and is evidence', async () => {
    const setting = await startSetting({ policy: brisk })
    const stream = await anthropic(setting).messages.create(
      { ...message, stream: true },
      { headers: { 'x-emulator-fault': 'in-stream-error' } },
    )
    const error = await failed(
      (async () => {
        for await (const _ of stream);
      })(),
    )
    expect(error.message).toContain('overloaded_error')
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(setting.host.status()[0]?.counters).toMatchObject({ refusedByProvider: 1, completed: 0 })
    expect(setting.gateway.counters.streamErrors).toBe(1)
    expect(kinds(setting)).toEqual(['accepted', 'aborted'])
  })

  it('limits in the headers are learned', async () => {
    const rules = [{ rule: 'token-bucket', inputTokensPerMinute: 120_000, states: 'retry-after' }]
    const setting = await startSetting({ emulator: { rules } })
    await anthropic(setting).messages.create(message)
    const [runner] = [...kernelOf(setting.host).runners.values()]
    expect(runner?.context.budget.inputTokensPerMinute?.limit).toBe(120_000)
  })
})

describe("an SDK's own retries", () => {
  it('after a failure that it saw, the same id is a new dispatch', async () => {
    const rules = [{ rule: 'token-bucket' as const, inputTokensPerMinute: 1_000, states: 'none' as const }]
    const setting = await startSetting({ policy: { ...brisk, maxAttempts: 1 }, emulator: { rules } })
    // The bucket is all but empty then: the second is refused for now, not for good.
    const large = { 'x-emulator-input-tokens': '900' }
    await anthropic(setting).messages.create(message, { headers: large })
    const error = await failed(
      anthropic(setting, 1).messages.create(message, {
        headers: { ...large, 'idempotency-key': 'turn-7' },
      }),
    )
    expect(error.status).toBe(429)
    expect(
      setting.gateway.emulator
        .log()
        .filter(({ kind }) => kind === 'refused')
        .map(({ callId }) => callId),
    ).toEqual(['turn-7', 'turn-7:retry-1'])
    expect(setting.gateway.counters).toMatchObject({ calls: 3, sdkRetries: 1 })
  })

  it('after a success that it missed, nothing is sent twice', async () => {
    const setting = await startSetting()
    const headers = { 'idempotency-key': 'turn-8' }
    await anthropic(setting).messages.create(message, { headers })
    const error = await failed(
      anthropic(setting, 2).messages.create(message, {
        headers: { ...headers, 'x-stainless-retry-count': '1' },
      }),
    )
    expect(error.status).toBe(409)
    expect(error.message).toContain('use a new id')
    expect(kinds(setting)).toEqual(['accepted', 'completed'])
    // `x-should-retry: false` kept the SDK from asking again.
    expect(setting.gateway.counters.calls).toBe(2)
  })
})
