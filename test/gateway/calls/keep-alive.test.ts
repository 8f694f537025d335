/** A call waits longer than a proxy in front keeps a silent connection: its client gets its answer all the same. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it, vi } from 'vitest'
import { ManualClock } from '../../../src/index.ts'
import { hasNginx, startNginx } from '../nginx.ts'
import { raw } from '../raw.ts'
import {
  answerJson,
  answerStatus,
  event,
  overloaded,
  post,
  type SettingOptions,
  startSetting,
  startUpstream,
} from '../setting.ts'

const one = { capacity: 1, reserve: 0, pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 } as const
const streamed = { body: JSON.stringify({ model: 'm', max_tokens: 8, stream: true, messages: [] }) }
const marked = { 'x-forwarded-for': '10.0.0.1' }
const comment = ': the call waits for its turn\n\n'

const whole =
  event('message_start', { message: { usage: { input_tokens: 4, output_tokens: 1 } } }) +
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hi' } }) +
  event('message_stop')

/** A call runs, and the one of `ask` waits behind it. */
const behindAnother = async <A>(options: SettingOptions, ask: (base: string) => Promise<A>) => {
  const upstream = await startUpstream()
  const clock = new ManualClock(1_700_000_000_000)
  const setting = await startSetting({ upstream, clock, policy: one, keepAlive: 'comments', ...options })
  const first = post(setting.scripted)
  const running = await upstream.next()
  const answer = ask(setting.scripted)
  await vi.waitFor(() => expect(setting.waiting()).toBe(1))
  const proceed = async () => {
    answerJson(running)
    await first
    return upstream.next()
  }
  return { upstream, clock, setting, answer, proceed }
}

describe('with comments', () => {
  it.each([
    ['a plain client', {}],
    ['a client behind a proxy', marked],
  ])('%s of a stream hears them, and then its answer', async (_, headers) => {
    const { clock, answer, proceed } = await behindAnother({}, (base) => post(base, headers, streamed))
    clock.advance(15_000)
    const received = await answer
    const { status } = received
    expect([status, received.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(received.headers.get('x-rightofway-call-id')).not.toBe(null)
    clock.advance(15_000)
    const { response } = await proceed()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(whole)
    expect(await received.text()).toBe(comment + comment + whole)
  })

  it('a client that waits less than one interval gets the head of the provider', async () => {
    const { answer, proceed } = await behindAnother({}, (base) => post(base, {}, streamed))
    const { response } = await proceed()
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-of': 'the provider' })
    response.end(whole)
    const received = await answer
    expect([received.headers.get('x-of'), await received.text()]).toEqual(['the provider', whole])
  })

  it.each([
    ['without stream: true', '/v1/messages', '{"model":"m"}'],
    ['whose stream is no event stream', '/api/chat', '{"model":"m","stream":true}'],
  ])('a call %s hears neither a comment nor a 102', async (_, path, body) => {
    const { clock, answer, proceed } = await behindAnother({}, (base) =>
      raw(
        base,
        `POST /scripted${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: key-a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        { untilMs: 10_000 },
      ),
    )
    clock.advance(15_000)
    answerJson(await proceed())
    expect((await answer).text).toMatch(/^HTTP\/1\.1 200 OK/)
  })

  it('a refusal is absorbed behind them as before them', async () => {
    const { upstream, clock, answer, proceed } = await behindAnother({}, (base) => post(base, {}, streamed))
    clock.advance(15_000)
    answerStatus(await proceed(), 529, overloaded)
    await vi.waitFor(() => {
      clock.advance(10)
      expect(upstream.arrivals.length).toBe(3)
    })
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(whole)
    expect(await (await answer).text()).toBe(comment + whole)
  })

  it('the Anthropic SDK throws the refusal that comes behind them', async () => {
    const { clock, answer, proceed } = await behindAnother({}, async (base) => {
      const client = new Anthropic({ baseURL: base, apiKey: 'key-a', maxRetries: 0 })
      const stream = client.messages.stream({ model: 'm', max_tokens: 8, messages: [] })
      return stream.finalMessage().catch((error: unknown) => error)
    })
    clock.advance(15_000)
    answerStatus(await proceed(), 400, { type: 'invalid_request_error', message: 'max_tokens: too many' })
    const error = await answer
    expect(error).toBeInstanceOf(Anthropic.APIError)
    expect(String(error)).toContain('max_tokens: too many')
  })

  it.each(['chat', 'responses'] as const)('the OpenAI SDK throws it too (%s)', async (kind) => {
    const { clock, answer, proceed } = await behindAnother({ wire: 'openai' }, async (base) => {
      const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'key-a', maxRetries: 0 })
      const read = async () => {
        const stream =
          kind === 'chat'
            ? await client.chat.completions.create({ model: 'm', stream: true, messages: [] })
            : await client.responses.create({ model: 'm', stream: true, input: 'x' })
        const events: Array<unknown> = []
        for await (const one of stream) events.push(one)
        return events
      }
      return read().catch((error: unknown) => error)
    })
    clock.advance(15_000)
    answerStatus(await proceed(), 400, { type: 'invalid_request_error', message: 'no such tool' })
    const error = await answer
    expect(String(error instanceof Error ? error : JSON.stringify(error))).toContain('no such tool')
  })

  it.each([
    ['anthropic', '/v1/messages', 'event: error\ndata: {"type":"error","error":{"type":"rightofway_'],
    ['openai', '/v1/chat/completions', 'data: {"error":{"type":"rightofway_'],
    ['openai', '/v1/responses', 'event: error\ndata: {"type":"error"'],
    ['gemini', '/v1/models/m:streamGenerateContent?alt=sse', 'data: {"error":{"code":504'],
  ] as const)('the end of its time is an error event (%s %s)', async (wire, path, begins) => {
    const { clock, answer } = await behindAnother({ wire }, (base) =>
      post(base, { 'x-rightofway-deadline-ms': '20000' }, { ...streamed, path }),
    )
    clock.advance(15_000)
    const received = await answer
    clock.advance(5_000)
    const text = await received.text()
    expect(text.startsWith(comment + begins)).toBe(true)
    expect(text).toContain('never sent to the provider')
    expect(text.endsWith('}\n\n')).toBe(true)
  })

  it.each([
    ['a JSON text', { 'content-type': 'application/json' }],
    ['an encoded stream', { 'content-type': 'text/event-stream', 'content-encoding': 'br' }],
  ])('%s cannot follow them, and that is said', async (_, head) => {
    const { clock, answer, proceed, setting } = await behindAnother({}, (base) => post(base, {}, streamed))
    clock.advance(15_000)
    const received = await answer
    const { response } = await proceed()
    response.writeHead(200, head)
    response.end('{}')
    expect(await received.text()).toContain('rightofway_no_event_stream')
    await vi.waitFor(() => expect([setting.inFlight(), setting.gateway.liveCalls]).toEqual([0, 0]))
    expect(setting.gateway.counters).toMatchObject({ upstreamFailures: 1, faults: 0 })
  })
})

describe.skipIf(!hasNginx)('through nginx, whose patience is shorter than the wait', () => {
  const impatient = 'proxy_read_timeout 1s;'
  const kinds = [
    ['HTTP/1.0, as it speaks by default', impatient],
    ['HTTP/1.1 with marks', `${impatient} proxy_http_version 1.1; proxy_set_header X-Real-IP $remote_addr;`],
    ['HTTP/1.1 without a mark', `${impatient} proxy_http_version 1.1;`],
  ] as const

  /** Real time: nginx has no other. The wait takes 2.5 s, its patience is 1 s. */
  const through = async (directives: string, keepAlive: 'informational' | 'comments') => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one, keepAlive, interimAnswersMs: 300 })
    const nginx = await startNginx(setting.scripted, directives)
    const first = post(setting.scripted)
    const running = await upstream.next()
    const answer = post(`${nginx}/scripted`, {}, streamed)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    answerJson(running)
    await first
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(whole)
    const received = await answer
    return { status: received.status, text: await received.text() }
  }

  it.each(kinds)('%s, comments carry the call over', async (_, directives) => {
    const { status, text } = await through(directives, 'comments')
    expect([status, text.replaceAll(comment, '')]).toEqual([200, whole])
    expect(text.startsWith(comment)).toBe(true)
  })

  it('without them it is told 504 by nginx', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: one, interimAnswersMs: 300 })
    const nginx = await startNginx(setting.scripted, impatient)
    const first = post(setting.scripted)
    const running = await upstream.next()
    expect((await post(`${nginx}/scripted`, {}, streamed)).status).toBe(504)
    answerJson(running)
    await first
  })
})
