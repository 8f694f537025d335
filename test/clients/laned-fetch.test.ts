/** A `fetch` with lanes, under real SDKs, against a provider that enforces its limits. */

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { withCall } from '../../src/clients/call-context.ts'
import { type LanedFetchOptions, lanedFetch } from '../../src/clients/laned-fetch.ts'
import { type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { type LaneHost, openHost, PendingTimeout, type PolicyInput, withPriority } from '../../src/index.ts'

const brisk: PolicyInput = { pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 }

const message = {
  model: 'emulator-large',
  max_tokens: 12,
  messages: [{ role: 'user' as const, content: 'Hi' }],
}
const chat = { model: 'emulator-large', messages: [{ role: 'user' as const, content: 'Hi' }] }

const setting = async (
  policy: PolicyInput = brisk,
  emulated: Partial<EmulatorOptions> = {},
  options: LanedFetchOptions = {},
) => {
  const latency = { firstTokenMs: 0, perOutputTokenMs: 0 }
  const emulator = await startEmulator({ rules: [], latency, ...emulated })
  const host = await openHost()
  onTestFinished(async () => {
    await host.close()
    await emulator.close()
  })
  const fetch = lanedFetch(host, { policy, provider: 'anthropic', ...options })
  const anthropic = new Anthropic({ apiKey: 'sk-a', baseURL: emulator.url, maxRetries: 2, fetch })
  const openai = new OpenAI({ apiKey: 'sk-o', baseURL: `${emulator.url}/v1`, maxRetries: 2, fetch })
  return { emulator, host, fetch, anthropic, openai, kinds: () => emulator.log().map(({ kind }) => kind) }
}

const counters = (host: LaneHost) => {
  const statuses = host.status()
  const sum = (pick: (status: (typeof statuses)[number]) => number): number =>
    statuses.reduce((total, status) => total + pick(status), 0)
  return {
    completed: sum(({ counters: { completed } }) => completed),
    inFlight: sum(({ primary, auxiliary }) => primary.inFlight + auxiliary.inFlight),
    waiting: sum(({ primary, auxiliary }) => primary.waiting + auxiliary.waiting),
  }
}

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

describe('a whole answer', () => {
  it('of Anthropic is as without lanes, and settles its call with its usage', async () => {
    const { host, anthropic } = await setting()
    const answer = await anthropic.messages.create(message, {
      headers: { 'x-emulator-input-tokens': '5000' },
    })
    expect(answer.usage).toMatchObject({ input_tokens: 5_000, output_tokens: 12 })
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 1, inFlight: 0 }))
    expect(host.status()[0]?.recentInputTokens).toBe(5_000)
  })

  it('of OpenAI, chat and responses', async () => {
    const { host, openai } = await setting()
    expect((await openai.chat.completions.create(chat)).usage?.completion_tokens).toBeGreaterThan(0)
    const response = await openai.responses.create({ model: 'emulator-large', input: 'Hi' })
    expect(response.usage?.output_tokens).toBeGreaterThan(0)
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 2, inFlight: 0 }))
  })

  it('is in a scope of its key and its model, without the key', async () => {
    const { host, anthropic } = await setting()
    await anthropic.messages.create(message)
    const names = host.status().map(({ scope }) => scope)
    expect(names).toHaveLength(1)
    expect(names[0]).toMatch(/^anthropic\/[0-9a-f]{16}\/emulator-large$/)
  })

  it('of a request that asks no model needs no permit', async () => {
    const { host, openai } = await setting()
    expect((await openai.models.list()).data.length).toBeGreaterThan(0)
    expect(host.status()).toEqual([])
  })
})

describe('a stream', () => {
  it('of Anthropic holds its place until its end, and settles with the usage in it', async () => {
    const { host, anthropic } = await setting(brisk, { latency: { firstTokenMs: 0, perOutputTokenMs: 2 } })
    const stream = await anthropic.messages.create(
      { ...message, stream: true },
      { headers: { 'x-emulator-input-tokens': '7000' } },
    )
    expect(counters(host).inFlight).toBe(1)
    let events = 0
    for await (const _ of stream) events += 1
    expect(events).toBeGreaterThan(5)
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 1, inFlight: 0 }))
    expect(host.status()[0]?.recentInputTokens).toBe(7_000)
  })

  it('of OpenAI, chat and responses', async () => {
    const { host, openai } = await setting()
    const stream = await openai.chat.completions.create({
      ...chat,
      stream: true,
      stream_options: { include_usage: true },
    })
    let tokens = 0
    for await (const chunk of stream) tokens = chunk.usage?.completion_tokens ?? tokens
    expect(tokens).toBeGreaterThan(0)
    const final = await openai.responses.stream({ model: 'emulator-large', input: 'Hi' }).finalResponse()
    expect(final.status).toBe('completed')
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 2, inFlight: 0 }))
  })

  it('that its reader drops frees its place at once', async () => {
    const { host, anthropic, kinds } = await setting(brisk, {
      latency: { firstTokenMs: 0, perOutputTokenMs: 5 },
    })
    const stream = await anthropic.messages.create({ ...message, max_tokens: 60, stream: true })
    for await (const { type } of stream) if (type === 'content_block_delta') break
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 0, inFlight: 0 }))
    await vi.waitFor(() => expect(kinds()).toEqual(['accepted', 'aborted']))
  })

  it('that is aborted while nobody reads it frees its place at once', async () => {
    const { host, fetch, emulator } = await setting(brisk, {
      latency: { firstTokenMs: 0, perOutputTokenMs: 5 },
    })
    const stop = new AbortController()
    const response = await fetch(`${emulator.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'sk-a', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      body: JSON.stringify({ ...message, max_tokens: 60, stream: true }),
      signal: stop.signal,
    })
    stop.abort(new Error('enough'))
    await vi.waitFor(() => expect(counters(host).inFlight).toBe(0))
    await expect(response.text()).rejects.toThrow('enough')
  })

  it('with an error inside reaches its reader, and is evidence', async () => {
    const { host, anthropic } = await setting()
    const stream = await anthropic.messages.create(
      { ...message, stream: true },
      { headers: { 'x-emulator-fault': 'in-stream-error' } },
    )
    const error = await failed(
      (async () => {
        for await (const _ of stream);
      })(),
    )
    expect(error.message).toContain('overloaded_error')
    await vi.waitFor(() => expect(counters(host).inFlight).toBe(0))
    expect(host.status()[0]?.counters.refusedByProvider).toBe(1)
  })
})

describe('a refusal of the provider', () => {
  it('that passes is absorbed: the SDK sees a success and retries nothing', async () => {
    const rules = [{ rule: 'token-bucket' as const, inputTokensPerMinute: 60_000, states: 'none' as const }]
    const { anthropic, emulator } = await setting(brisk, { rules })
    const headers = { 'x-emulator-input-tokens': '59990' }
    await anthropic.messages.create(message, { headers })
    const second = await withCall({ lane: 'auxiliary' }, () =>
      anthropic.messages.create(message, { headers: { 'x-emulator-input-tokens': '500' } }),
    )
    expect(second.type).toBe('message')
    expect(emulator.provider.totals().refused).toBeGreaterThan(0)
  })

  it('that stays is passed on when attempts are spent, once: the SDK is told not to try on', async () => {
    const rules = [{ rule: 'token-bucket' as const, inputTokensPerMinute: 10, states: 'none' as const }]
    const { anthropic, kinds } = await setting({ ...brisk, maxAttempts: 3 }, { rules })
    const error = await failed(
      withCall({ lane: 'auxiliary' }, () =>
        anthropic.messages.create(message, { headers: { 'x-emulator-input-tokens': '1000' } }),
      ),
    )
    expect(error.status).toBe(429)
    expect(error.message).toContain('rate_limit_error')
    expect(kinds()).toEqual(['refused', 'refused', 'refused'])
  })

  it('that waiting does not mend is passed on at once', async () => {
    const { openai, kinds } = await setting()
    const error = await failed(
      openai.chat.completions.create(chat, { headers: { 'x-emulator-fault': 'spend-cap' } }),
    )
    expect(error.status).toBe(429)
    expect(kinds()).toEqual(['refused'])
  })

  it('teaches the limits that its headers show', async () => {
    const rules = [
      { rule: 'token-bucket' as const, inputTokensPerMinute: 120_000, states: 'retry-after' as const },
    ]
    const { anthropic, host } = await setting(brisk, { rules })
    await anthropic.messages.create(message)
    const [runner] = [...kernelOf(host).runners.values()]
    expect(runner?.context.budget.inputTokensPerMinute?.limit).toBe(120_000)
  })
})

describe('lanes', () => {
  it('are what the code around the SDK says', async () => {
    const { host, anthropic } = await setting()
    const calls: unknown[] = []
    kernelOf(host).observe(({ event }) => {
      if (event.type === 'call.submitted') calls.push(event.call)
    })
    await withCall({ lane: 'auxiliary', principal: 'residence-a', turnId: 't1' }, () =>
      anthropic.messages.create(message),
    )
    await withPriority('background_ingestion', () => anthropic.messages.create(message))
    await anthropic.messages.create(message)
    expect(calls).toMatchObject([
      { lane: 'auxiliary', principal: 'residence-a', turnId: 't1' },
      { lane: 'auxiliary', priorityClass: 'background_ingestion' },
      { lane: 'primary', priorityClass: 'orchestration' },
    ])
  })

  it('a primary goes before the background that waits', async () => {
    const { host, anthropic, emulator } = await setting(
      { ...brisk, capacity: 1 },
      { latency: { firstTokenMs: 200, perOutputTokenMs: 0 } },
    )
    const said = (name: string, lane: 'primary' | 'auxiliary') =>
      withCall({ lane }, () => anthropic.messages.create(message, { headers: { 'idempotency-key': name } }))
    const work = ['a1', 'a2', 'a3'].map((name) => said(name, 'auxiliary'))
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ inFlight: 1, waiting: 2 }))
    await Promise.all([...work, said('p', 'primary')])
    const order = emulator.log().flatMap(({ kind, callId }) => (kind === 'accepted' ? [callId] : []))
    expect(order).toEqual(['a1', 'p', 'a2', 'a3'])
  })

  it('a call that is aborted while it waits leaves its queue, and never reaches the provider', async () => {
    const { host, anthropic, kinds } = await setting()
    await anthropic.messages.create(message)
    const scope = host.scope(host.status()[0]?.scope as string)
    scope.beginTurn('t')
    const stop = new AbortController()
    const error = failed(
      withCall({ lane: 'auxiliary' }, () => anthropic.messages.create(message, { signal: stop.signal })),
    )
    await vi.waitFor(() => expect(counters(host).waiting).toBe(1))
    stop.abort()
    expect((await error).constructor.name).toBe('APIUserAbortError')
    expect(counters(host)).toMatchObject({ waiting: 0, inFlight: 0 })
    expect(kinds()).toEqual(['accepted', 'completed'])
  })

  it('a call that gets no permit is answered with a problem that the SDK does not try again', async () => {
    const { host, anthropic, kinds } = await setting({ ...brisk, auxiliaryPendingTimeoutMs: 30 })
    await anthropic.messages.create(message)
    host.scope(host.status()[0]?.scope as string).beginTurn('t')
    const error = await failed(withCall({ lane: 'auxiliary' }, () => anthropic.messages.create(message)))
    expect(error.status).toBe(503)
    expect(error.message).toContain('rightofway_pending_timeout')
    expect(counters(host).waiting).toBe(0)
    expect(host.status()[0]?.counters.expired).toBe(1)
    expect(kinds()).toEqual(['accepted', 'completed'])
  })

  it('a call that is shed is answered with 429, BUSY and a retry-after, and nothing is sent', async () => {
    const { host, anthropic, kinds } = await setting({
      ...brisk,
      qos: { burstCalls: 1, callsPerSecond: 0.05 },
    })
    await anthropic.messages.create(message)
    const error = await failed(anthropic.messages.create(message))
    expect(error.status).toBe(429)
    expect(error.message).toContain(
      'BUSY: the principal sends calls of this class too fast, retry with backoff',
    )
    expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(10)
    expect(host.status()[0]?.counters.rejected).toBe(1)
    expect(kinds()).toEqual(['accepted', 'completed'])
  })

  it('or, where the caller prefers, its error is thrown', async () => {
    const host = await openHost()
    onTestFinished(() => host.close())
    const scope = host.scope('s', { ...brisk, auxiliaryPendingTimeoutMs: 30 })
    scope.beginTurn('t')
    const fetch = lanedFetch(scope, { refusals: 'throw', call: () => ({ lane: 'auxiliary' }) })
    const error = await failed(fetch('http://127.0.0.1:1/', { method: 'POST', body: '{}' }))
    expect(error).toBeInstanceOf(PendingTimeout)
  })

  it('an auxiliary whose place a primary takes is sent again from its place', async () => {
    const policy: PolicyInput = { ...brisk, capacity: 2, reserve: 0, inFlight: 'cancel' }
    const { anthropic, kinds, host } = await setting(policy, {
      latency: { firstTokenMs: 400, perOutputTokenMs: 0 },
    })
    const work = withCall({ lane: 'auxiliary' }, () => anthropic.messages.create(message))
    await vi.waitFor(() => expect(counters(host).inFlight).toBe(1))
    const primary = anthropic.messages.create(message)
    expect((await Promise.all([work, primary])).map(({ type }) => type)).toEqual(['message', 'message'])
    expect(kinds().filter((kind) => kind === 'completed')).toHaveLength(2)
    await vi.waitFor(() => expect(counters(host)).toMatchObject({ completed: 2, inFlight: 0, waiting: 0 }))
  })
})

describe('a fetch with lanes', () => {
  it('takes a Request as well as an address', async () => {
    const { fetch, emulator, host } = await setting()
    const request = new Request(`${emulator.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'sk-a', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      body: JSON.stringify(message),
    })
    const response = await fetch(request)
    expect(response.status).toBe(200)
    expect(response.url).toBe(request.url)
    expect(await response.json()).toMatchObject({ type: 'message' })
    await vi.waitFor(() => expect(counters(host).completed).toBe(1))
  })

  it('passes a failure of the connection on, and frees the place', async () => {
    const { host, fetch } = await setting()
    await expect(
      fetch('http://127.0.0.1:1/v1/messages', { method: 'POST', body: JSON.stringify(message) }),
    ).rejects.toThrow()
    expect(counters(host)).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  it('of one scope sends everything through that one', async () => {
    const { host, emulator } = await setting()
    const scope = host.scope('openai/k/all', brisk)
    const openai = new OpenAI({ apiKey: 'x', baseURL: `${emulator.url}/v1`, fetch: lanedFetch(scope) })
    await openai.chat.completions.create(chat)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
  })
})
