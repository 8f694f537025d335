/** Where a stream ends: at its own terminal event, and nowhere before. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { lanedFetch } from '../../../src/clients/laned-fetch.ts'
import { openHost } from '../../../src/host/host.ts'
import { call, event, post, startSetting, startUpstream } from '../setting.ts'

interface Wire {
  readonly name: string
  readonly type: string
  readonly body: ReadonlyArray<string>
  readonly end: string
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const line = (value: unknown): string => `${JSON.stringify(value)}\n`

const wires: ReadonlyArray<Wire> = [
  {
    name: 'Anthropic',
    type: 'text/event-stream',
    body: [
      event('message_start', { message: { usage: { input_tokens: 40, output_tokens: 1 } } }),
      event('content_block_delta', { delta: { type: 'text_delta', text: 'hi' } }),
      event('message_delta', { usage: { output_tokens: 5 } }),
    ],
    end: event('message_stop'),
  },
  {
    name: 'Responses',
    type: 'text/event-stream',
    body: [event('response.created'), event('response.output_text.delta', { delta: 'hi' })],
    end: event('response.completed', { response: { usage: { input_tokens: 40, output_tokens: 5 } } }),
  },
  {
    name: 'chat chunks',
    type: 'text/event-stream; charset=utf-8',
    body: [
      data({ object: 'chat.completion.chunk', choices: [{ delta: { content: 'hi' }, finish_reason: null }] }),
    ],
    end:
      data({ choices: [{ delta: {}, finish_reason: 'stop' }] }) +
      data({ choices: [], usage: { prompt_tokens: 40, completion_tokens: 5 } }) +
      'data: [DONE]\n\n',
  },
  {
    name: 'Gemini',
    type: 'text/event-stream',
    body: [data({ candidates: [{ content: { parts: [{ text: 'hi' }] } }] })],
    end: data({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 5 },
    }),
  },
  {
    name: 'lines of Ollama',
    type: 'application/x-ndjson',
    body: [line({ message: { content: 'hi' }, done: false })],
    end: line({ done: true, prompt_eval_count: 40, eval_count: 5 }),
  },
]

const begin = async (wire: Wire) => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream })
  const answer = post(setting.scripted, { 'idempotency-key': 'call-1' })
  const { response } = await upstream.next()
  response.writeHead(200, { 'content-type': wire.type })
  for (const part of wire.body) response.write(part)
  const counters = () => setting.host.status()[0]?.counters
  return { setting, response, received: await answer, counters }
}

describe.each(wires)('a stream of $name', (wire) => {
  it('settles at its terminal event, while the upstream keeps the connection open', async () => {
    const { setting, response, received, counters } = await begin(wire)
    expect(setting.inFlight()).toBe(1)
    response.write(wire.end)
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(counters()).toMatchObject({ completed: 1 })
    const reader = received.body?.getReader()
    let text = ''
    while (!text.endsWith(wire.end)) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    expect(text).toBe(wire.body.join('') + wire.end)
    // The client does not wait for the end of the connection either.
    await reader?.cancel()
    await vi.waitFor(() => expect(setting.gateway.liveCalls).toBe(0))
    expect(setting.gateway.counters).toMatchObject({ clientAborts: 0, upstreamFailures: 0, faults: 0 })
    const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
      gateway: { estimates: Record<string, { samples: number }> }
    }
    expect(Object.values(lanes.gateway.estimates).map(({ samples }) => samples)).toEqual([1])
  })

  it('that closes cleanly without its terminal event is a failure that says so, and teaches nothing', async () => {
    const { setting, response, received, counters } = await begin(wire)
    response.end()
    expect(await received.text()).toBe(wire.body.join(''))
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(counters()).toMatchObject({ completed: 0 })
    expect(setting.gateway.counters.truncatedAnswers).toBe(1)
    const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
      gateway: { estimates: object }
    }
    expect(lanes.gateway.estimates).toEqual({})
    const explained = await setting.host.explain('call-1')
    expect(JSON.stringify(explained)).toContain('the answer ended without its end')
  })

  it('is read the same way by lanedFetch', async () => {
    const upstream = await startUpstream()
    const host = await openHost()
    onTestFinished(() => host.close())
    const scope = host.scope('p/c/m')
    const ask = (id: string) =>
      lanedFetch(scope, { call: () => ({ id, lane: 'primary' }) })(`${upstream.url}/v1/messages`, {
        method: 'POST',
        body: JSON.stringify(call),
      })
    const answers = [ask('whole')]
    const whole = await upstream.next()
    whole.response.writeHead(200, { 'content-type': wire.type })
    whole.response.write(wire.body.join('') + wire.end)
    const reader = (await answers[0])?.body?.getReader()
    await reader?.read()
    await vi.waitFor(() => expect(host.status()[0]?.counters.completed).toBe(1))
    expect(host.status()[0]?.primary.inFlight).toBe(0)
    await reader?.cancel()
    const cut = ask('cut')
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': wire.type })
    response.end(wire.body.join(''))
    expect(await (await cut).text()).toBe(wire.body.join(''))
    await vi.waitFor(() => expect(host.status()[0]?.primary.inFlight).toBe(0))
    expect(host.status()[0]?.counters.completed).toBe(1)
    expect(JSON.stringify(await host.explain('cut'))).toContain('ended without its end')
  })
})

it('a stream of a wire that nobody knows ends where it ends', async () => {
  const unknown: Wire = { name: 'other', type: 'text/event-stream', body: [data({ token: 'a' })], end: '' }
  const { setting, response, received, counters } = await begin(unknown)
  response.end()
  await received.text()
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  expect([counters()?.completed, setting.gateway.counters.truncatedAnswers]).toEqual([1, 0])
})

it('chat chunks without [DONE] are whole once the model has said why it stopped', async () => {
  const chat = wires[2] as Wire
  const { setting, response, received, counters } = await begin(chat)
  response.end(data({ choices: [{ delta: {}, finish_reason: 'stop' }] }))
  await received.text()
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  expect(counters()?.completed).toBe(1)
})
