/** Which requests are calls, and which model they ask: by the table, and through the gateway. */
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { routeRows } from '../../../src/gateway/routing/route-rows.ts'
import { makeRouteTable, modelAsked, shippedRoutes } from '../../../src/gateway/routing/route-table.ts'
import { makeRouting } from '../../../src/gateway/routing/routing.ts'
import { answerJson, post, type Setting, startSetting, startUpstream } from '../setting.ts'

const json = 'application/json'
const asked = (path: string, body: string | Buffer, { query = null as string | null, type = json } = {}) =>
  modelAsked({ found: shippedRoutes.rowOf(path), query, contentType: type, body: Buffer.from(body) }).model

/** A form as a browser writes it: the file comes first. */
const form = (fields: Readonly<Record<string, string>>, file = Buffer.alloc(0)): Buffer => {
  const part = (name: string, rest: string, content: string | Buffer) =>
    Buffer.concat([
      Buffer.from(`--b0\r\ncontent-disposition: form-data; name="${name}"${rest}\r\n\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ])
  return Buffer.concat([
    part('file', '; filename="model.wav"\r\ncontent-type: audio/wav', file),
    ...Object.entries(fields).map(([name, value]) => part(name, '', value)),
    Buffer.from('--b0--\r\n'),
  ])
}
const formType = 'multipart/form-data; boundary=b0'

describe('the route table', () => {
  it('has each row found by its own path, before every other', () => {
    for (const row of routeRows) {
      const path = `/base${row.path.replaceAll('{model}', 'some-model').replaceAll('{any}', 'x1')}`
      const { row: found, modelInPath } = shippedRoutes.rowOf(path)
      expect([found.kind, found.path], path).toEqual([row.kind, row.path])
      expect(modelInPath, path).toBe(row.path.includes('{model}') ? 'some-model' : null)
      expect(shippedRoutes.rowOf(`${path}/`).row, path).toBe(found)
    }
  })

  it.each([
    ['/v1/chat/completions', 'generating'],
    ['/v1/responses/compact', 'generating'],
    ['/v1/threads/t/runs', 'generating'],
    ['/v1/threads/t/messages', 'bookkeeping'],
    ['/v1/messages', 'generating'],
    ['/v1/messages/batches', 'bookkeeping'],
    ['/v1/messages/count_tokens', 'counting'],
    ['/v1/projects/p/locations/global/publishers/anthropic/models/count-tokens:rawPredict', 'counting'],
    ['/v1/projects/p/locations/global/publishers/anthropic/models/claude-x@1:rawPredict', 'generating'],
    ['/v1beta/models/g:batchGenerateContent', 'bookkeeping'],
    ['/v1beta/models/g:asyncBatchEmbedContent', 'bookkeeping'],
    ['/model/anthropic.claude-v2:0/invoke', 'generating'],
    ['/tokenize', 'counting'],
    ['/api/pull', 'bookkeeping'],
    ['/openai/deployments/d/audio/transcriptions', 'generating'],
    ['/v1/audio/speech', 'generating'],
    ['/v1/nothing/known', 'generating'],
    ['/v1/chat%2Fcompletions', 'generating'],
    ['/', 'generating'],
  ])('%s is %s', (path, kind) => {
    expect(shippedRoutes.rowOf(path).row.kind).toBe(kind)
  })

  it.each<[string, string, string | Buffer, string, object?]>([
    ['an escaped name', '/v1/messages', '{"\\u006dodel":"opus"}', 'opus'],
    ['the last of two', '/v1/messages', '{"model":"one","model":"two"}', 'two'],
    ['models', '/v1/chat/completions', '{"models":["a/x","b/y"]}', 'a/x'],
    ['a saved prompt', '/v1/responses', '{"prompt":{"id":"pmpt_1"},"input":"hi"}', 'prompt:pmpt_1'],
    ['an assistant', '/v1/threads/t/runs', '{"assistant_id":"asst_1"}', 'assistant:asst_1'],
    ['nothing', '/v1/responses', '{"input":"hi"}', '*'],
    ['nothing, nowhere known', '/v1/other', 'not even JSON', 'unknown'],
    ['a deployment', '/openai/deployments/my%20gpt/embeddings', '{}', 'my gpt'],
    ['a model with a colon', '/model/anthropic.claude-v2%3A0/converse', '{}', 'anthropic.claude-v2:0'],
    ['a query', '/v1/listen', 'RIFF', 'nova', { query: 'a=1&model=nova' }],
    [
      'a part of a form',
      '/v1/audio/transcriptions',
      form({ model: 'whisper-1' }),
      'whisper-1',
      { type: formType },
    ],
    ['a form without it', '/v1/images/edits', form({ prompt: 'a cat' }), '*', { type: formType }],
    [
      'a form without boundary',
      '/v1/images/edits',
      form({ model: 'x' }),
      '*',
      { type: 'multipart/form-data' },
    ],
  ])('finds the model that a request asks: %s', (_, path, body, model, rest) => {
    expect(asked(path, body, rest)).toBe(model)
  })

  it('finds the part of a form wherever a file stands, and reads no file as one', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(asked('/v1/images/edits', form({ model: 'm' }, Buffer.from(bytes)), { type: formType })).toBe(
          'm',
        )
      }),
    )
    const file = Buffer.from('--b0; content-disposition: form-data; name="model"')
    expect(asked('/v1/images/edits', form({ model: 'm' }, file), { type: formType })).toBe('m')
  })

  it('has rows of the configuration first', () => {
    const routing = makeRouting(
      parseConfig({
        routes: [
          { path: '/chat/completions', kind: 'bookkeeping' },
          { path: '/jobs/{model}/start', kind: 'generating' },
          { path: '/v9/paint', kind: 'generating', model: ['/engine'], estimate: 'input' },
        ],
      }),
    )
    expect(routing.routes.rowOf('/v1/chat/completions').row.kind).toBe('bookkeeping')
    expect(routing.routes.rowOf('/jobs/m1/start').modelInPath).toBe('m1')
    const found = routing.routes.rowOf('/v9/paint')
    expect(
      modelAsked({ found, query: null, contentType: json, body: Buffer.from('{"engine":"e"}') }),
    ).toEqual({
      model: 'e',
      from: '/engine',
    })
    expect(() => parseConfig({ routes: [{ path: 'x', kind: 'generating' }] })).toThrow(
      /config\.routes\.0\.path/,
    )
    expect(() => parseConfig({ routes: [{ path: '/x', kind: 'other' }] })).toThrow(/config\.routes\.0\.kind/)
    expect(() => parseConfig({ routes: [{ path: '/x', kind: 'counting', model: ['model'] }] })).toThrow(
      /model/,
    )
  })

  it('never throws, whatever the path', () => {
    const table = makeRouteTable()
    fc.assert(fc.property(fc.string(), (path) => void table.rowOf(path).row.kind))
  })
})

const scopesOf = ({ host }: Setting) => host.status().map(({ scope }) => scope.split('/').slice(2).join('/'))

describe('through the gateway', () => {
  it.each<[string, string, Record<string, string>, string | Buffer<ArrayBuffer>, string]>([
    ['a saved prompt', '/v1/responses', {}, '{"prompt":{"id":"pmpt_x"},"input":"hi"}', 'prompt:pmpt_x'],
    ['models', '/v1/chat/completions', {}, '{"models":["a","b"]}', 'a'],
    ['an image', '/v1/images/generations', {}, '{"model":"dall-e","prompt":"x"}', 'dall-e'],
    ['a run', '/v1/threads/t/runs', {}, '{"assistant_id":"a1"}', 'assistant:a1'],
    ['a mislabelled call', '/v1/messages', { 'content-type': 'image/json' }, '{"model":"m"}', 'm'],
    ['a JSON suffix', '/v1/messages', { 'content-type': 'application/vnd.x+json' }, '{"model":"m"}', 'm'],
    ['an unknown endpoint', '/v7/dream', {}, '{}', 'unknown'],
    [
      'a transcription',
      '/v1/audio/transcriptions',
      { 'content-type': formType },
      Buffer.from(form({ model: 'whisper-1' }, Buffer.alloc(50_000, 7))),
      'whisper-1',
    ],
  ])('%s is a call of its scope, and keeps its bytes', async (_, path, headers, body, scope) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai' })
    const answer = post(setting.scripted, headers, { path, body })
    const arrival = await upstream.next()
    expect(arrival.bytes.equals(Buffer.from(body))).toBe(true)
    expect(setting.inFlight()).toBe(1)
    answerJson(arrival)
    expect((await answer).status).toBe(200)
    expect(scopesOf(setting)).toEqual([scope])
    expect(setting.gateway.counters).toMatchObject({ calls: 1, forwarded: 0 })
  })

  it.each([
    ['/tokenize', '{"model":"m","prompt":"x"}'],
    ['/api/pull', '{"model":"m"}'],
    ['/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict', '{"model":"m"}'],
    ['/v1beta/models/m:batchGenerateContent', '{}'],
    ['/v1/assistants', '{"model":"m"}'],
  ])('%s takes no permit', async (path, body) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, {}, { path, body })
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ calls: 0, forwarded: 1 })
    expect(setting.host.status()).toEqual([])
  })

  it('no head is waited for with a limit where a model works, and a refusal of a form stays hidden', async () => {
    const heads: Array<number> = []
    const upstream = await startUpstream()
    const { makeTransport } = await import('../../../src/gateway/passage/transport.ts')
    const transport = makeTransport({})
    const setting = await startSetting({
      upstream,
      transport: {
        ...transport,
        close: () => transport.close(),
        send: (request, listener) => {
          heads.push(request.headTimeoutMs)
          return transport.send(request, listener)
        },
      },
    })
    const headers = { 'content-type': formType }
    const body = Buffer.from(form({ model: 'whisper-1' }))
    const answer = post(setting.scripted, headers, { path: '/v1/audio/transcriptions', body })
    const { response } = await upstream.next()
    response.writeHead(429, { 'retry-after': '0', 'content-type': json })
    response.end('{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}')
    const again = await upstream.next()
    expect(again.bytes.equals(body)).toBe(true)
    answerJson(again)
    expect((await answer).status).toBe(200)
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(heads).toEqual([0, 0])
  })
})
