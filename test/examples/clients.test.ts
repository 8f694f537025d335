/** Every client of examples/clients, with its real package: what its lanes do, and what its users see. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { aiSdkClient } from '../../examples/clients/ai-sdk.ts'
import { anthropicClient } from '../../examples/clients/anthropic.ts'
import type { ExampleClient } from '../../examples/clients/client.ts'
import { genaiClient } from '../../examples/clients/google-genai.ts'
import { langChainClient } from '../../examples/clients/langchain.ts'
import { openaiClient } from '../../examples/clients/openai.ts'
import { agentsClient } from '../../examples/clients/openai-agents.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { type LaneScope, openHost, type PolicyInput, withCall } from '../../src/index.ts'
import { type ProviderPace, startProvider } from './provider.ts'

const clients: ReadonlyArray<
  readonly [string, string, (scope: LaneScope, address: string) => ExampleClient]
> = [
  ['openai', 'openai', openaiClient],
  ['@anthropic-ai/sdk', 'anthropic', anthropicClient],
  ['ai', 'anthropic', aiSdkClient],
  ['@openai/agents', 'openai', agentsClient],
  ['LangChain.js', 'openai', langChainClient],
  ['@google/genai', 'gemini', genaiClient],
]

const brisk: PolicyInput = { capacity: 4, reserve: 0, pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 }

describe.each(clients)('%s', (_, provider, connect) => {
  const setting = async (policy: PolicyInput = brisk, pace: ProviderPace = {}) => {
    const served = await startProvider(pace)
    const host = await openHost()
    onTestFinished(async () => {
      await host.close()
      await served.close()
    })
    const calls: Array<{ readonly lane: string; readonly principal: string }> = []
    kernelOf(host).observe(({ event }) => {
      if (event.type === 'call.submitted') calls.push(event.call)
    })
    const scope = host.scope({ provider, credential: 'k', model: 'm' }, policy)
    return { served, scope, calls, client: connect(scope, served.url) }
  }

  it('answers a plain call, which is completed with its usage', async () => {
    const { client, scope, calls, served } = await setting()
    expect((await client.plain('Hello')).length).toBeGreaterThan(3)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
    expect(scope.status.primary.inFlight).toBe(0)
    expect(scope.status.recentInputTokens).toBeGreaterThan(0)
    expect([calls.length, served.requests]).toEqual([1, 1])
  })

  it('streams, and its permit is held until the end', async () => {
    const { client, scope, calls } = await setting(brisk, { perOutputTokenMs: 4 })
    let [text, held] = ['', 0]
    for await (const piece of client.stream('Hello')) {
      text += piece
      held = Math.max(held, scope.status.primary.inFlight)
    }
    expect(text.length).toBeGreaterThan(3)
    expect(held).toBe(1)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
    expect(scope.status.primary.inFlight).toBe(0)
    expect(scope.status.recentInputTokens).toBeGreaterThan(0)
    expect(calls).toHaveLength(1)
  })

  it('uses a tool: each round is a call of its own', async () => {
    const { client, scope, calls, served } = await setting()
    expect((await client.toolLoop('What is the weather?')).length).toBeGreaterThan(3)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(2))
    expect([calls.length, served.requests]).toEqual([2, 2])
  })

  it('is aborted while it waits, while it runs and while it streams; the place is free at once', async () => {
    const { client, scope, served } = await setting({ ...brisk, capacity: 1 }, { perOutputTokenMs: 20 })
    const streaming = new AbortController()
    const pieces = client.stream('Hello', { signal: streaming.signal })[Symbol.asyncIterator]()
    await pieces.next()
    expect(scope.status.primary.inFlight).toBe(1)
    const waiting = new AbortController()
    const second = client.plain('Hello', { signal: waiting.signal })
    await vi.waitFor(() => expect(scope.status.primary.waiting).toBe(1))
    waiting.abort()
    await expect(second).rejects.toThrow()
    expect(scope.status.primary.waiting).toBe(0)
    streaming.abort()
    await (async () => {
      for (let step = await pieces.next(); step.done !== true; step = await pieces.next());
    })().catch(() => {})
    await vi.waitFor(() => expect(scope.status.primary.inFlight).toBe(0))
    await vi.waitFor(() => expect(served.abandoned).toBe(1))
    expect(scope.status.counters.completed).toBe(0)
  })

  it('never sees a refusal that passes, and its SDK does not try again by itself', async () => {
    const { client, scope, calls, served } = await setting()
    served.refuseNext(2)
    expect((await client.plain('Hello')).length).toBeGreaterThan(3)
    expect(scope.status.counters.refusedByProvider).toBe(2)
    expect([calls.length, served.requests]).toEqual([1, 3])
  })

  it("sees a refusal that stays as its SDK's own error, after one submission", async () => {
    const { client, calls, served } = await setting({ ...brisk, maxAttempts: 1 })
    served.refuseNext(9)
    const error = await client.plain('Hello').then(
      () => null,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(Error)
    expect(client.isRateLimit(error)).toBe(true)
    expect([calls.length, served.requests]).toEqual([1, 1])
  })

  it('gives its place to a primary, and is sent again from its own', async () => {
    const { client, scope, calls, served } = await setting(
      { ...brisk, capacity: 1, inFlight: 'cancel' },
      { firstTokenMs: 300 },
    )
    const background = withCall({ lane: 'auxiliary', principal: 'indexer' }, () => client.plain('Index this'))
    await vi.waitFor(() => expect(served.requests).toBe(1))
    const primary = client.plain('Hello')
    expect((await primary).length).toBeGreaterThan(3)
    expect((await background).length).toBeGreaterThan(3)
    expect(scope.status.counters.preemptions).toBe(1)
    expect(calls).toMatchObject([{ lane: 'auxiliary', principal: 'indexer' }, { lane: 'primary' }])
    expect(served.requests).toBe(3)
  })
})
