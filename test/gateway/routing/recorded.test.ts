/**
 * Requests as agents and SDKs send them, over a socket and through the gateway to the emulator: each has its class, lane,
 * principal and scope, an estimate within a factor of two, and its answer byte for byte.
 */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { type Gateway, startGateway } from '../../../src/gateway/gateway.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { fingerprint, type LaneHost, openHost } from '../../../src/index.ts'
import { secret } from '../setting.ts'
import { claudeBody, claudeCode, codex, type Headers } from './agents.ts'

interface Sent {
  readonly target: string
  readonly headers: Headers
  readonly body: string
}

interface Answered {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly bytes: string
}

const send = (base: string, { target, headers, body }: Sent): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const asked = request(new URL(base + target), { method: 'POST', headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        // The emulator stamps its answers with the time of day.
        const bytes = text.replaceAll(/"created(?:_at)?":\d+/g, '"created":0')
        resolve({ status: answer.statusCode, type: answer.headers['content-type'], bytes })
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })

/** Two emulators that answer alike: one is asked directly, the other through the gateway. */
const emulators: Emulator[] = []
let host: LaneHost
let gateway: Gateway

beforeAll(async () => {
  for (let one = 0; one < 2; one += 1)
    emulators.push(await startEmulator({ rules: [], latency: { firstTokenMs: 1, perOutputTokenMs: 0 } }))
  host = await openHost()
  const upstreams = ['anthropic', 'openai'].map((name) => ({ name, baseUrl: emulators[1]!.url }))
  gateway = await startGateway({ host, config: parseConfig({ port: 0, upstreams }), secret })
})
afterAll(async () => {
  await gateway.close()
  await host.close()
  await Promise.all(emulators.map((emulator) => emulator.close()))
})

const words = 'word '.repeat(1_000)
const json = { 'content-type': 'application/json' }
const bearer = { ...json, authorization: 'Bearer sk-example' }
const chat = (model: string, more: object = {}) =>
  JSON.stringify({
    model,
    messages: [{ role: 'user', content: words }],
    stream: true,
    max_tokens: 20,
    ...more,
  })
const responses = JSON.stringify({ model: 'gpt-5.4', input: words, stream: true, max_output_tokens: 20 })
const ofClaude = JSON.stringify({ ...JSON.parse(claudeBody(words)), stream: true, max_tokens: 20 })

interface Expected {
  readonly scope: string
  readonly priorityClass: string
  readonly lane: 'primary' | 'auxiliary'
  /** Input tokens, by hand: one for each word, one for four letters of prose. */
  readonly tokens: number
  readonly turn: boolean
}

const anthropic = `anthropic/${fingerprint('sk-ant-example', secret)}`
const openai = `openai/${fingerprint('sk-example', secret)}`
const untagged = { priorityClass: 'orchestration', lane: 'primary', turn: false, tokens: 1_000 } as const

it.each<[string, Sent, Expected]>([
  [
    "Claude Code, a person's call",
    { target: '/anthropic/v1/messages', headers: claudeCode(), body: ofClaude },
    {
      scope: `${anthropic}/claude-opus-4`,
      priorityClass: 'interactive',
      lane: 'primary',
      turn: true,
      tokens: 11_500,
    },
  ],
  [
    'Claude Code, a subagent',
    {
      target: '/anthropic/v1/messages?beta=true',
      headers: claudeCode({ 'x-claude-code-agent-id': 'a1' }),
      body: ofClaude,
    },
    {
      scope: `${anthropic}/claude-opus-4`,
      priorityClass: 'orchestration',
      lane: 'primary',
      turn: true,
      tokens: 11_500,
    },
  ],
  [
    'Claude Code, a compaction',
    {
      target: '/anthropic/v1/messages',
      headers: claudeCode({ 'x-claude-code-compaction': 'true' }),
      body: ofClaude,
    },
    {
      scope: `${anthropic}/claude-opus-4`,
      priorityClass: 'background_ingestion',
      lane: 'auxiliary',
      turn: false,
      tokens: 11_500,
    },
  ],
  [
    "Codex, a person's turn",
    {
      target: '/openai/v1/responses',
      headers: codex({}, { 'accept-encoding': 'identity' }),
      body: responses,
    },
    { scope: `${openai}/gpt-5.4`, priorityClass: 'interactive', lane: 'primary', turn: true, tokens: 1_000 },
  ],
  [
    "OpenAI's SDK",
    {
      target: '/openai/v1/chat/completions',
      headers: { ...bearer, 'x-stainless-lang': 'js' },
      body: chat('gpt-5.4'),
    },
    { ...untagged, scope: `${openai}/gpt-5.4` },
  ],
  [
    "Anthropic's SDK",
    {
      target: '/anthropic/v1/messages',
      headers: {
        ...json,
        'x-api-key': 'sk-ant-example',
        'anthropic-version': '2023-06-01',
        'x-stainless-lang': 'python',
      },
      body: chat('claude-sonnet-4-6'),
    },
    { ...untagged, scope: `${anthropic}/claude-sonnet-4` },
  ],
  [
    'LangChain',
    {
      target: '/openai/v1/chat/completions',
      headers: { ...bearer, 'user-agent': 'langchain-openai/1.0' },
      body: chat('gpt-4o', { n: 1, temperature: 0.7 }),
    },
    { ...untagged, scope: `${openai}/gpt-4o` },
  ],
  [
    'OpenHands, by LiteLLM',
    {
      target: '/openai/v1/chat/completions',
      headers: { ...bearer, 'user-agent': 'litellm/1.80' },
      body: chat('openai/gpt-5.4', { tools: [] }),
    },
    { ...untagged, scope: `${openai}/gpt-5.4` },
  ],
  [
    'a JDK client, which wishes for HTTP/2',
    {
      target: '/openai/v1/chat/completions',
      headers: {
        ...bearer,
        connection: 'Upgrade, HTTP2-Settings',
        upgrade: 'h2c',
        'http2-settings': 'AAEAAEAAAAIAAAAA',
        'user-agent': 'Java-http-client/21',
      },
      body: chat('gpt-4o-mini'),
    },
    { ...untagged, scope: `${openai}/gpt-4o-mini` },
  ],
])('%s', async (_, sent, expected) => {
  using heard = host.watch()
  const through = await send(gateway.url, sent)
  const { 'http2-settings': _settings, upgrade: _upgrade, connection: _connection, ...plain } = sent.headers
  const direct = await send(emulators[0]!.url, {
    ...sent,
    headers: plain,
    target: sent.target.replace(/^\/\w+/, ''),
  })
  expect(through.status).toBe(200)
  expect(through).toEqual(direct)
  expect(through.bytes.length).toBeGreaterThan(200)
  for await (const { scope, event } of heard) {
    if (event.type !== 'call.submitted') continue
    const { priorityClass, lane, turnId, principal, inputTokens } = event.call
    expect({ scope, priorityClass, lane, turn: turnId !== null }).toEqual({
      scope: expected.scope,
      priorityClass: expected.priorityClass,
      lane: expected.lane,
      turn: expected.turn,
    })
    // The session of an agent is its principal.
    expect(principal === 'default').toBe(expected.tokens === untagged.tokens && !expected.turn)
    expect(inputTokens).toBeGreaterThan(expected.tokens / 2)
    expect(inputTokens).toBeLessThan(expected.tokens * 2)
    break
  }
  expect(kernelOf(host).failure).toBeNull()
})
