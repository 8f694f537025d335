/** An answer's place is free at the provider's end, whether or not anybody reads it by then. */

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { withCall } from '../../src/clients/call-context.ts'
import { type LanedFetchOptions, lanedFetch } from '../../src/clients/laned-fetch.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { AnswerUnread, ManualClock, openHost, type PolicyInput, Preempted } from '../../src/index.ts'

const brisk: PolicyInput = { pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 }
const message = {
  model: 'emulator-large',
  max_tokens: 12,
  messages: [{ role: 'user' as const, content: 'Hi' }],
}
const chat = { model: 'emulator-large', messages: [{ role: 'user' as const, content: 'Hi' }] }

const setting = async (policy: PolicyInput = brisk, perOutputTokenMs = 0) => {
  const emulator = await startEmulator({ rules: [], latency: { firstTokenMs: 0, perOutputTokenMs } })
  const host = await openHost()
  onTestFinished(async () => {
    await host.close()
    await emulator.close()
  })
  const scope = host.scope('anthropic/k/m', policy)
  const fetch = lanedFetch(scope)
  const anthropic = new Anthropic({ apiKey: 'sk-a', baseURL: emulator.url, maxRetries: 0, fetch })
  const openai = new OpenAI({ apiKey: 'sk-o', baseURL: `${emulator.url}/v1`, maxRetries: 0, fetch })
  return { emulator, scope, fetch, anthropic, openai }
}

const auxiliary = { lane: 'auxiliary' } as const

describe('a primary and an auxiliary that start together and are awaited in order', () => {
  it('of Anthropic both come, the auxiliary awaited first', async () => {
    const { anthropic } = await setting()
    const primary = anthropic.messages.create(message)
    const background = withCall(auxiliary, () => anthropic.messages.create(message))
    expect((await background).type).toBe('message')
    expect((await primary).type).toBe('message')
  })

  it('of OpenAI both come, the auxiliary awaited first', async () => {
    const { openai } = await setting()
    const primary = openai.chat.completions.create(chat)
    const background = withCall(auxiliary, () => openai.chat.completions.create(chat))
    expect((await background).choices).toHaveLength(1)
    expect((await primary).choices).toHaveLength(1)
  })

  it('and a stream that is read only after it', async () => {
    const { anthropic, openai } = await setting()
    const stream = await anthropic.messages.create({ ...message, stream: true })
    expect((await withCall(auxiliary, () => anthropic.messages.create(message))).type).toBe('message')
    let events = 0
    for await (const _ of stream) events += 1
    expect(events).toBeGreaterThan(5)
    const chunks = await openai.chat.completions.create({ ...chat, stream: true })
    expect((await withCall(auxiliary, () => openai.chat.completions.create(chat))).choices).toHaveLength(1)
    let parts = 0
    for await (const _ of chunks) parts += 1
    expect(parts).toBeGreaterThan(1)
  })

  it('and an auxiliary that is asked for while the stream of the primary is being read', async () => {
    const { anthropic } = await setting()
    const stream = await anthropic.messages.create({ ...message, stream: true })
    for await (const { type } of stream) {
      if (type === 'content_block_start') await withCall(auxiliary, () => anthropic.messages.create(message))
    }
  })
})

it('a 200 whose body nobody reads frees its place, with its usage', async () => {
  const { scope, fetch, emulator } = await setting()
  const response = await fetch(`${emulator.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': 'sk-a',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      'x-emulator-input-tokens': '5000',
    },
    body: JSON.stringify(message),
  })
  expect(response.status).toBe(200)
  await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
  expect(scope.status.recentInputTokens).toBe(5_000)
  expect(await response.json()).toMatchObject({ type: 'message' })
})

describe('a body without end', () => {
  const endless = (type: string) => {
    let sent = 0
    const state = { cancelled: false, sentBytes: () => sent }
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 65_536
        controller.enqueue(new Uint8Array(65_536))
      },
      cancel: () => {
        state.cancelled = true
      },
    })
    const send = async () => new Response(body, { headers: { 'content-type': type } })
    return { state, send: send as typeof fetch }
  }

  const asked = async (type: string, options: LanedFetchOptions = {}) => {
    const clock = new ManualClock(1_000)
    const host = await openHost({ clock })
    onTestFinished(() => host.close())
    const scope = host.scope('openai/k/m')
    const { state, send } = endless(type)
    const fetch = lanedFetch(scope, { fetch: send, call: () => ({ id: 'c' }), ...options })
    const response = await fetch('http://127.0.0.1:1/v1/responses', { method: 'POST', body: '{}' })
    await vi.waitFor(() => expect(state.sentBytes()).toBeGreaterThan(4 * 1024 * 1024))
    return { clock, scope, state, response }
  }

  it.each(['text/event-stream', 'application/json'])(
    'of %s is read ahead within a bound, and given up when nobody reads it',
    async (type) => {
      const { clock, scope, state, response } = await asked(type)
      clock.advance(59_999)
      expect(state.sentBytes()).toBeLessThan(5 * 1024 * 1024)
      expect(scope.status.primary.inFlight).toBe(1)
      clock.advance(1)
      expect(scope.status.primary.inFlight).toBe(0)
      expect(scope.status.counters.completed).toBe(0)
      await vi.waitFor(() => expect(state.cancelled).toBe(true))
      const error = await response.text().catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(AnswerUnread)
      expect(error).toMatchObject({ scope: 'openai/k/m', callId: 'c' })
      expect((error as Error).message).toContain('unreadTimeoutMs = 60000')
    },
  )

  it('has its time again whenever its reader reads on', async () => {
    const { clock, scope, state, response } = await asked('text/event-stream', { unreadTimeoutMs: 100 })
    const reader = response.body!.getReader()
    let readBytes = 0
    for (let round = 0; round < 3; round += 1) {
      clock.advance(60)
      for (let chunks = 0; chunks < 3; chunks += 1) readBytes += (await reader.read()).value!.byteLength
      await vi.waitFor(() => expect(state.sentBytes()).toBeGreaterThan(4 * 1024 * 1024 + readBytes))
    }
    expect(scope.status.primary.inFlight).toBe(1)
    clock.advance(100)
    expect(scope.status.primary.inFlight).toBe(0)
  })

  it.each([0, -1, 1.5, Number.NaN, 2_147_483_648])('has no time of %d ms', async (unreadTimeoutMs) => {
    const host = await openHost()
    onTestFinished(() => host.close())
    expect(() => lanedFetch(host, { unreadTimeoutMs })).toThrow(
      `unreadTimeoutMs: expected an integer in [1, 2147483647], got ${unreadTimeoutMs}`,
    )
  })
})

it('a stream whose place a primary takes while it is read says that its call has ended', async () => {
  const policy: PolicyInput = { ...brisk, capacity: 2, reserve: 0, inFlight: 'cancel' }
  const { anthropic } = await setting(policy, 20)
  const stream = await withCall(auxiliary, () => anthropic.messages.create({ ...message, stream: true }))
  const reading = (async () => {
    for await (const _ of stream);
  })().catch((error: unknown) => error)
  await anthropic.messages.create(message)
  const error = await reading
  expect(error).toBeInstanceOf(Preempted)
  expect((error as Error).message).toContain('has ended; send it again under a new id')
})
