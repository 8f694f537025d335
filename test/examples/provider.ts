/**
 * A provider for the examples: the emulator, with answers of its own where the emulator has none. It asks for the
 * tool once where tools are offered, refuses when told to, and speaks Gemini.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startEmulator } from '../../src/emulator/index.ts'

type Json = Readonly<Record<string, unknown>>

export interface ExampleProvider {
  readonly url: string
  /** Requests for answers that came so far. */
  readonly requests: number
  /** The next so many are refused with 429. */
  refuseNext(count: number): void
  /** Requests whose client went away before it had the whole answer. */
  readonly abandoned: number
  close(): Promise<void>
}

export interface ProviderPace {
  readonly firstTokenMs?: number
  readonly perOutputTokenMs?: number
}

const args = { city: 'Ghent' }
const usageOfChat = { prompt_tokens: 50, completion_tokens: 5, total_tokens: 55 }

/** What a model says that wants the tool, on each wire. */
const toolAnswers: Readonly<Record<string, Json>> = {
  chat: {
    ...{
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'emulator-large',
      usage: usageOfChat,
    },
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'weather', arguments: JSON.stringify(args) },
            },
          ],
        },
      },
    ],
  },
  messages: {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'emulator-large', stop_sequence: null },
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: args }],
    usage: { input_tokens: 50, output_tokens: 5 },
  },
  gemini: {
    candidates: [
      {
        content: { role: 'model', parts: [{ functionCall: { name: 'weather', args } }] },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 50, candidatesTokenCount: 5, totalTokenCount: 55 },
  },
}

const refusals: Readonly<Record<string, Json>> = {
  chat: {
    error: {
      message:
        'Rate limit reached for emulator-large on tokens per min (TPM): Limit 30000, Used 30000, Requested 50.',
      ...{ type: 'tokens', param: null, code: 'rate_limit_exceeded' },
    },
  },
  messages: {
    type: 'error',
    error: { type: 'rate_limit_error', message: 'This request would exceed the rate limit' },
  },
  gemini: { error: { code: 429, message: 'Resource has been exhausted', status: 'RESOURCE_EXHAUSTED' } },
}

const wireOf = (path: string): 'chat' | 'messages' | 'gemini' => {
  if (path.includes(':')) return 'gemini'
  return path.includes('/messages') ? 'messages' : 'chat'
}

const asksForTool = (wire: string, body: Json): boolean => {
  if (!Array.isArray(body['tools']) || body['tools'].length === 0) return false
  const answered = { chat: '"role":"tool"', messages: '"tool_result"', gemini: '"functionResponse"' }[
    wire
  ] as string
  return !JSON.stringify(body['messages'] ?? body['contents']).includes(answered)
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

const send = (response: ServerResponse, status: number, value: Json): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' })
  response.end(JSON.stringify(value))
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const words = ['It ', 'is ', 'a ', 'quiet ', 'day.']
const geminiChunk = (text: string, isLast: boolean): Json => ({
  candidates: [
    { content: { role: 'model', parts: [{ text }] }, ...(isLast ? { finishReason: 'STOP' } : {}) },
  ],
  usageMetadata: { promptTokenCount: 50, candidatesTokenCount: 5, totalTokenCount: 55 },
})

const answerGemini = async (
  response: ServerResponse,
  isStream: boolean,
  { firstTokenMs = 0, perOutputTokenMs = 0 }: ProviderPace,
): Promise<void> => {
  await pause(firstTokenMs)
  if (!isStream) return send(response, 200, geminiChunk(words.join(''), true))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const [index, word] of words.entries()) {
    if (response.destroyed) return
    response.write(`data: ${JSON.stringify(geminiChunk(word, index === words.length - 1))}\r\n\r\n`)
    await pause(perOutputTokenMs)
  }
  response.end()
}

export const startProvider = async (pace: ProviderPace = {}): Promise<ExampleProvider> => {
  const { firstTokenMs = 0, perOutputTokenMs = 0 } = pace
  const emulator = await startEmulator({ rules: [], latency: { firstTokenMs, perOutputTokenMs } })
  let [requests, toRefuse, abandoned] = [0, 0, 0]
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await bodyOf(request)
    const path = request.url ?? '/'
    requests += 1
    const wire = wireOf(path)
    response.once('close', () => {
      if (!response.writableFinished) abandoned += 1
    })
    if (toRefuse > 0) {
      toRefuse -= 1
      return send(response, 429, refusals[wire] as Json)
    }
    if (asksForTool(wire, JSON.parse(text) as Json)) return send(response, 200, toolAnswers[wire] as Json)
    if (wire === 'gemini') return answerGemini(response, path.includes(':stream'), pace)
    const headers = Object.entries(request.headers).filter(
      ([name]) => !/^(?:host|connection|content-length)$/.test(name),
    )
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const upstream = await fetch(emulator.url + path, {
      method: 'POST',
      headers: Object.fromEntries(headers) as Record<string, string>,
      body: text,
      signal: gone.signal,
    })
    response.writeHead(upstream.status, {
      'content-type': upstream.headers.get('content-type') ?? 'application/json',
    })
    for await (const chunk of upstream.body as ReadableStream<Uint8Array>) response.write(chunk)
    response.end()
  }
  const server = createServer((request, response) => {
    response.on('error', () => {})
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests
    },
    get abandoned() {
      return abandoned
    },
    refuseNext: (count) => {
      toRefuse = count
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await emulator.close()
    },
  }
}
