/** A stream that `run` gave holds its permit until its end, its break or its abort, in every SDK's own class. */
import Anthropic from '@anthropic-ai/sdk'
import { streamText } from 'ai'
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'
import { Effect } from 'effect'
import OpenAI from 'openai'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startEmulator } from '../../src/emulator/index.ts'
import {
  AnswerUnread,
  type CallRequest,
  Host,
  ManualClock,
  openHost,
  type Permit,
  type PolicyInput,
  Preempted,
  type RunOptions,
} from '../../src/index.ts'

const brisk: PolicyInput = { pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 }
const message = {
  model: 'emulator-large',
  max_tokens: 12,
  messages: [{ role: 'user' as const, content: 'Hi' }],
}
const chat = {
  model: 'emulator-large',
  messages: [{ role: 'user' as const, content: 'Hi' }],
  stream_options: { include_usage: true },
}
const headers = { 'x-emulator-input-tokens': '7000' }

const setting = async (policy: PolicyInput = brisk, perOutputTokenMs = 0) => {
  const emulator = await startEmulator({ rules: [], latency: { firstTokenMs: 0, perOutputTokenMs } })
  const host = await openHost()
  onTestFinished(async () => {
    await host.close()
    await emulator.close()
  })
  const scope = host.scope('anthropic/k/m', policy)
  const anthropic = new Anthropic({ apiKey: 'sk-a', baseURL: emulator.url, maxRetries: 0 })
  const openai = new OpenAI({ apiKey: 'sk-o', baseURL: `${emulator.url}/v1`, maxRetries: 0 })
  return { emulator, scope, anthropic, openai }
}

type Setting = Awaited<ReturnType<typeof setting>>

const drain = async (stream: AsyncIterable<unknown>): Promise<number> => {
  let chunks = 0
  for await (const _ of stream) chunks += 1
  return chunks
}

const model = (chunkDelayInMs: number | null = null) =>
  new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream({
        initialDelayInMs: null,
        chunkDelayInMs,
        chunks: [
          { type: 'stream-start', warnings: [] },
          { type: 'text-start', id: '1' },
          ...['Hel', 'lo', '!'].map((delta) => ({ type: 'text-delta' as const, id: '1', delta })),
          { type: 'text-end', id: '1' },
          {
            type: 'finish',
            finishReason: { unified: 'stop', raw: 'stop' },
            usage: {
              inputTokens: { total: 7_000, noCache: 7_000, cacheRead: 0, cacheWrite: 0 },
              outputTokens: { total: 3, text: 3, reasoning: 0 },
            },
          },
        ],
      }),
    }),
  })

/** How each shape is made under a permit, and how it is read to its end. */
const shapes: ReadonlyArray<
  readonly [string, (setting: Setting, permit: Permit) => unknown, (stream: never) => Promise<number>]
> = [
  [
    'messages.create({ stream: true })',
    ({ anthropic }, { signal }) =>
      anthropic.messages.create({ ...message, stream: true }, { signal, headers }),
    drain,
  ],
  [
    'messages.stream()',
    ({ anthropic }, { signal }) => anthropic.messages.stream(message, { signal, headers }),
    drain,
  ],
  [
    'messages.stream(), awaited for its last message only',
    ({ anthropic }, { signal }) => anthropic.messages.stream(message, { signal, headers }),
    async (stream: ReturnType<Anthropic['messages']['stream']>) =>
      (await stream.finalMessage()).content.length + 1,
  ],
  [
    'messages.create().withResponse()',
    ({ anthropic }, { signal }) =>
      anthropic.messages.create({ ...message, stream: true }, { signal, headers }).withResponse(),
    async ({ data }: { data: AsyncIterable<unknown> }) => drain(data),
  ],
  [
    'chat.completions.create({ stream: true })',
    ({ openai }, { signal }) =>
      openai.chat.completions.create({ ...chat, stream: true }, { signal, headers }),
    drain,
  ],
  [
    'one branch of its tee()',
    ({ openai }, { signal }) =>
      openai.chat.completions.create({ ...chat, stream: true }, { signal, headers }),
    async (stream: { tee(): [AsyncIterable<unknown>, AsyncIterable<unknown>] }) => drain(stream.tee()[1]),
  ],
  [
    'its toReadableStream()',
    ({ openai }, { signal }) =>
      openai.chat.completions.create({ ...chat, stream: true }, { signal, headers }),
    async (stream: { toReadableStream(): ReadableStream }) => drain(stream.toReadableStream()),
  ],
  [
    'toReadableStream() inside',
    async ({ openai }, { signal }) =>
      (
        await openai.responses.create({ model: 'm', input: 'Hi', stream: true }, { signal, headers })
      ).toReadableStream(),
    drain,
  ],
  [
    'chat.completions.stream()',
    ({ openai }, { signal }) => openai.chat.completions.stream(chat, { signal, headers }),
    drain,
  ],
  [
    'responses.create({ stream: true })',
    ({ openai }, { signal }) =>
      openai.responses.create({ model: 'emulator-large', input: 'Hi', stream: true }, { signal, headers }),
    drain,
  ],
  [
    'responses.stream()',
    ({ openai }, { signal }) =>
      openai.responses.stream({ model: 'emulator-large', input: 'Hi' }, { signal, headers }),
    drain,
  ],
  [
    'the bytes of a body',
    async ({ emulator }, { signal }) =>
      (
        await fetch(`${emulator.url}/v1/messages`, {
          method: 'POST',
          headers: {
            ...headers,
            'x-api-key': 'a',
            'anthropic-version': '2023-06-01',
            'content-type': 'application/json',
          },
          body: JSON.stringify({ ...message, stream: true }),
          signal,
        })
      ).body,
    drain,
  ],
  [
    'streamText()',
    (_, { signal: abortSignal }) => streamText({ model: model(), prompt: 'Hi', maxRetries: 0, abortSignal }),
    ({ textStream }: { textStream: AsyncIterable<string> }) => drain(textStream),
  ],
  ['streamText().textStream', () => streamText({ model: model(), prompt: 'Hi' }).fullStream, drain],
  [
    'a generator',
    async function* (): AsyncGenerator<object> {
      yield { usage: null }
      yield { usage: { prompt_tokens: 7_000, completion_tokens: 2 } }
    },
    drain,
  ],
]

describe.each(shapes)('%s', (name, make, read) => {
  it('holds its permit until its end, and settles it with its usage', async () => {
    const its = await setting()
    const { scope } = its
    const request: CallRequest = { id: 'c' }
    const outcome = new Promise<number>((resolve, reject) => {
      scope
        .run(request, async (permit) => ({ wrapped: await make(its, permit) }).wrapped as never)
        .then(async (stream) => {
          // Those that run by themselves may have ended by now.
          if (!/^(messages|chat.completions|responses)\.stream|^streamText\(\)$/.test(name))
            expect(scope.status.primary.inFlight).toBe(1)
          return read(stream)
        })
        .then(resolve, reject)
    })
    expect(await outcome).toBeGreaterThan(0)
    await vi.waitFor(() => expect(scope.status.counters.completed).toBe(1))
    expect(scope.status.primary.inFlight).toBe(0)
    expect(scope.status.recentInputTokens).toBe(7_000)
  })
})

const endless = async function* (): AsyncGenerator<number> {
  for (let n = 0; ; n += 1) yield n
}

const endlessReadable = () =>
  new ReadableStream<number>({ pull: (controller) => controller.enqueue(1) }, { highWaterMark: 0 })

describe.each([
  ['a generator', endless],
  ['an iterable', () => ({ [Symbol.asyncIterator]: endless })],
  ['a ReadableStream', endlessReadable],
])('%s', (_, make) => {
  const held = async (options: RunOptions<AsyncIterable<number>> = {}, policy: PolicyInput = brisk) => {
    const clock = new ManualClock(1_000)
    const host = await openHost({ clock })
    onTestFinished(() => host.close())
    const scope = host.scope('openai/k/m', policy)
    const stop = new AbortController()
    let permit: Permit | null = null
    const stream = await scope.run<AsyncIterable<number>>(
      { id: 'c', lane: 'auxiliary', signal: stop.signal },
      (given) => {
        permit = given
        return make()
      },
      options,
    )
    return { clock, scope, stop, stream, permit: permit as unknown as Permit }
  }

  it('frees its place where its reader breaks off', async () => {
    const { scope, stream } = await held()
    for await (const _ of stream) {
      expect(scope.status.auxiliary.inFlight).toBe(1)
      break
    }
    expect(scope.status.auxiliary.inFlight).toBe(0)
    expect(scope.status.counters.completed).toBe(0)
  })

  it('frees its place where its owner aborts it while nobody reads', async () => {
    const { scope, stop } = await held()
    stop.abort(new Error('enough'))
    expect(scope.status.auxiliary.inFlight).toBe(0)
  })

  it('is given up when nobody reads on, and its reader hears of it', async () => {
    const { clock, scope, stream, permit } = await held({ unreadTimeoutMs: 500 })
    const chunks = stream[Symbol.asyncIterator]()
    clock.advance(499)
    expect((await chunks.next()).done).toBe(false)
    clock.advance(499)
    expect(scope.status.auxiliary.inFlight).toBe(1)
    clock.advance(1)
    expect(scope.status.auxiliary.inFlight).toBe(0)
    expect(permit.signal.reason).toBeInstanceOf(AnswerUnread)
    await expect(chunks.next()).rejects.toThrow('unreadTimeoutMs = 500')
  })

  it('tells its reader when a primary took its place', async () => {
    const { scope, stream } = await held({}, { ...brisk, capacity: 1, reserve: 0, inFlight: 'cancel' })
    const chunks = stream[Symbol.asyncIterator]()
    await chunks.next()
    const primary = scope.run({ id: 'p' }, () => 'done')
    const error = await chunks.next().then(
      () => chunks.next(),
      (reason: unknown) => reason,
    )
    expect(await primary).toBe('done')
    expect(error).toBeInstanceOf(Preempted)
    expect((error as Error).message).toContain('send it again under a new id')
  })
})

it("the caller's own reader of usage is asked for a stream at its end", async () => {
  const { scope } = await setting()
  const finite = async function* (): AsyncGenerator<number> {
    yield 1
  }
  const usage = () => ({ inputTokens: 321, outputTokens: 1 })
  await drain(await scope.run({}, finite, { usage }))
  expect(scope.status.recentInputTokens).toBe(321)
})

describe('an error inside a stream', () => {
  it('reaches its reader, and is evidence', async () => {
    const { scope, anthropic } = await setting()
    const stream = await scope.run({}, ({ signal }) =>
      anthropic.messages.create(
        { ...message, stream: true },
        { signal, headers: { 'x-emulator-fault': 'in-stream-error' } },
      ),
    )
    await expect(drain(stream)).rejects.toThrow('overloaded_error')
    expect(scope.status.counters.refusedByProvider).toBe(1)
    expect(scope.status.primary.inFlight).toBe(0)
  })

  it('of a stream that runs by itself, also where it is a refusal', async () => {
    const { scope, anthropic } = await setting()
    const stream = await scope.run({}, ({ signal }) =>
      anthropic.messages.stream(message, { signal, headers: { 'x-emulator-fault': 'overloaded' } }),
    )
    await expect(stream.finalMessage()).rejects.toThrow('overloaded_error')
    await vi.waitFor(() => expect(scope.status.counters.refusedByProvider).toBe(1))
    expect(scope.status.primary.inFlight).toBe(0)
  })
})

it('a page of a list is no stream: its call ends with it', async () => {
  const { scope, openai } = await setting()
  const page = await scope.run({}, ({ signal }) => openai.models.list({ signal }))
  expect(scope.status.primary.inFlight).toBe(0)
  expect(page.data.length).toBeGreaterThan(0)
})

it('an Effect that gives a stream holds its permit too', async () => {
  const program = Effect.gen(function* () {
    const host = yield* Host
    const scope = host.scope('openai/k/m')
    const stream = yield* scope.run({}, () => Effect.succeed(endless()))
    const during = (yield* scope.status).primary.inFlight
    yield* Effect.promise(() => stream.return(undefined))
    return [during, (yield* scope.status).primary.inFlight]
  })
  expect(await Effect.runPromise(Effect.provide(program, Host.layer()))).toEqual([1, 0])
})
