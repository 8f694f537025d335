/** What shares one limit: by the table, and by the waits that calls take over from each other. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { startGateway } from '../../../src/gateway/gateway.ts'
import { familyOf } from '../../../src/gateway/routing/model-family.ts'
import { makeRouting } from '../../../src/gateway/routing/routing.ts'
import type { ScopesInput } from '../../../src/gateway/routing/schema.ts'
import { Subject } from '../../../src/gateway/routing/subject.ts'
import { openHost } from '../../../src/host/host.ts'
import { fingerprint } from '../../../src/index.ts'
import { answerJson, answerStatus, post, type ScriptedUpstream, secret, startUpstream } from '../setting.ts'

interface Asked {
  readonly provider?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const named = (
  model: string,
  { provider = 'anthropic', headers = {}, body = '{}' }: Asked,
  scopes?: ScopesInput,
) => {
  const { namer } = makeRouting(scopes === undefined ? {} : { scopes })
  const upstream = { name: provider, provider }
  const request = { upstream, path: '/v1/messages', query: null, headers, model, body: Buffer.from(body) }
  return namer.identify(new Subject(request, secret))
}

describe('the table', () => {
  it.each([
    ['anthropic', 'claude-opus-4-6', 'claude-opus-4'],
    ['anthropic', 'claude-opus-4-5-20251101', 'claude-opus-4'],
    ['anthropic', 'claude-sonnet-4-6[1m]', 'claude-sonnet-4'],
    ['anthropic', 'claude-haiku-4-5-20251001', 'claude-haiku-4-5'],
    ['anthropic', 'claude-haiku-4-5', 'claude-haiku-4-5'],
    ['anthropic', 'claude-3-7-sonnet-latest', 'claude-3-7-sonnet'],
    ['openai', 'openai/gpt-5.4', 'gpt-5.4'],
    ['openai', 'gpt-4o-2024-08-06', 'gpt-4o'],
    ['openai', '*', '*'],
    ['vllm', 'a/llama-20250101', 'a/llama-20250101'],
    ['bedrock', 'anthropic.claude-opus-4-6-v1:0', 'anthropic.claude-opus-4-6-v1:0'],
  ])('%s: %s has the limit of %s', (provider, model, scope) => {
    expect(named(model, { provider }).model).toBe(scope)
  })

  it('a family is a name, whatever the model', () => {
    expect([familyOf('-latest'), familyOf('a/'), familyOf('x@20250101')]).toEqual(['-latest', 'a/', 'x'])
  })

  it('fast mode is a limit of its own', () => {
    const { model, rows } = named('claude-opus-4-6', { body: '{"speed":"fast"}' })
    expect([model, rows.limit, rows.model]).toEqual([
      'claude-opus-4+fast',
      'model-families/fast',
      'model-families/opus-4',
    ])
    expect(named('claude-opus-4-6', { body: '{"speed":"standard"}' }).model).toBe('claude-opus-4')
  })

  it('a credential is told by key, account, claim or upstream, and shown as no client wrote it', () => {
    const claims = Buffer.from('{"https://a.example/auth":{"account":"acc-1"}}').toString('base64url')
    const bearer = { authorization: `Bearer h.${claims}.s` }
    const account = { ...bearer, 'chatgpt-account-id': 'acc-1' }
    expect(named('m', { headers: { 'x-api-key': 'k' } }).credential).toBe(fingerprint('k', secret))
    expect(named('m', { headers: account }).credential).toBe(fingerprint('acc-1', secret))
    const claim = [{ credential: '{jwt:/https:~1~1a.example~1auth/account}' }]
    expect(named('m', { headers: bearer }, claim).credential).toBe(fingerprint('acc-1', secret))
    expect(named('m', { headers: bearer }, [{ credential: 'ours' }]).credential).toBe('ours')
    const prints = [fingerprint('k1', secret), fingerprint('k2', secret)]
    const table = prints.map((credential) => ({ when: { credential }, credential: 'acme' }))
    expect(named('m', { headers: { 'x-api-key': 'k2' } }, table).credential).toBe('acme')
    expect(named('m', { headers: { 'x-api-key': 'k3' } }, table).credential).toBe(fingerprint('k3', secret))
  })

  it.each<[object, string]>([
    [{ credential: '{jwt}' }, 'config.scopes.0.credential'],
    [{ model: '{family' + '|x}' }, 'config.scopes.0.model'],
    [{ preset: 'x' }, 'config.scopes.0'],
  ])('%j is refused, with its field', (row, field) => {
    expect(() => parseConfig({ scopes: [row] })).toThrow(field)
  })
})

const start = async (upstream: ScriptedUpstream, scopes?: ScopesInput) => {
  const host = await openHost({ journal: ':memory:' })
  const config = parseConfig({
    port: 0,
    upstreams: [{ name: 'anthropic', baseUrl: upstream.url }],
    policies: { '*': { capacity: 1 } },
    ...(scopes === undefined ? {} : { scopes }),
  })
  const gateway = await startGateway({ host, config, secret })
  onTestFinished(async () => {
    const closed = host.close({ graceMs: 1_000 })
    await gateway.close()
    await closed
  })
  const waiting = () => host.status().reduce((sum, { primary }) => sum + primary.waiting, 0)
  return { host, waiting, url: `${gateway.url}/anthropic` }
}
const body = (model: string) =>
  JSON.stringify({ model, max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] })

describe('through the gateway', () => {
  it('two keys of one organization and two models of one family share one scope', async () => {
    const upstream = await startUpstream()
    const table: ScopesInput = [
      ...['key-a', 'key-b'].map((key) => ({
        when: { credential: fingerprint(key, secret) },
        credential: 'acme',
      })),
      { preset: 'model-families' },
    ]
    const { url, host, waiting } = await start(upstream, table)
    const one = post(url, { 'x-api-key': 'key-a' }, { body: body('claude-opus-4-6') })
    const first = await upstream.next()
    const other = post(url, { 'x-api-key': 'key-b' }, { body: body('claude-opus-4-5-20251101') })
    await vi.waitFor(() => expect(waiting()).toBe(1))
    answerJson(first)
    answerJson(await upstream.next())
    expect([(await one).status, (await other).status]).toEqual([200, 200])
    expect(host.status().map(({ scope }) => scope)).toEqual(['anthropic/acme/claude-opus-4'])
  })

  it('a rotated token keeps its wait, and fast mode has a wait of its own', async () => {
    const upstream = await startUpstream()
    const { url, host, waiting } = await start(upstream)
    const bearer = (token: string) => ({
      'x-api-key': '',
      authorization: `Bearer ${token}`,
      'chatgpt-account-id': 'acc-1',
    })
    const fast = JSON.stringify({ ...JSON.parse(body('claude-opus-4-6')), speed: 'fast' })
    const leave = new AbortController()
    const limited = post(url, bearer('tok-1'), { body: fast, signal: leave.signal })
    const limit = { type: 'rate_limit_error', message: 'slow down' }
    answerStatus(await upstream.next(), 429, limit, { 'retry-after': '20' })
    await vi.waitFor(() => expect(waiting()).toBe(1))
    const rotated = post(url, bearer('tok-2'), { body: fast, signal: leave.signal })
    await vi.waitFor(() => expect(waiting()).toBe(2))
    const standard = post(url, bearer('tok-3'), { body: body('claude-opus-4-6') })
    answerJson(await upstream.next())
    expect((await standard).status).toBe(200)
    expect(upstream.arrivals.length).toBe(2)
    expect(host.status().map(({ scope }) => scope.split('/')[2])).toEqual([
      'claude-opus-4+fast',
      'claude-opus-4',
    ])
    leave.abort()
    await Promise.allSettled([limited, rotated])
  })
})
