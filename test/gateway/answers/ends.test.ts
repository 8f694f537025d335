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

const geminiPart = (part: object): string =>
  JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a ] } "quoted\\' }] } }], ...part })

const jsonTexts: ReadonlyArray<Wire> = [
  {
    name: "Gemini's array",
    type: 'application/json',
    body: [`[${geminiPart({})}`, `,\r\n${geminiPart({})}`],
    end: `,\r\n${geminiPart({ usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 5 } })}\n]`,
  },
  {
    name: 'a JSON object behind blanks',
    type: 'application/json',
    body: ['\n', `{"id":"a","output":"${'x'.repeat(70_000)}"`],
    end: ',"usage":{"input_tokens":40,"output_tokens":5}}',
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

describe.each([...wires, ...jsonTexts])('a stream of $name', (wire) => {
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
    const pump = async (): Promise<void> => {
      if ((await reader?.read())?.done === false) await pump()
    }
    void pump()
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

const limited = { code: 503, message: 'overloaded, try again later' }
const chunk = data({ choices: [{ delta: { content: 'hi' }, finish_reason: null }] })

/** Each begins well and then states a refusal, while the connection stays open. */
const refusals: ReadonlyArray<readonly [string, string, string, string]> = [
  [
    'Anthropic',
    'text/event-stream',
    event('message_start', { message: { usage: { input_tokens: 4, output_tokens: 1 } } }),
    event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
  ],
  ['chat chunks', 'text/event-stream', chunk, data({ error: limited })],
  [
    'MiniMax',
    'text/event-stream',
    chunk,
    data({ choices: [], base_resp: { status_code: 1002, status_msg: 'rate limit, retry later' } }),
  ],
  [
    'a number of its own',
    'text/event-stream',
    chunk,
    data({ error_code: 18, error_msg: 'qps limit reached' }),
  ],
  [
    'a header in each chunk',
    'text/event-stream',
    data({ header: { code: 0, message: 'Success' }, payload: { choices: { text: [{ content: 'hi' }] } } }),
    data({ header: { code: 11202, message: 'request rate exceeds the limit per second' } }),
  ],
  [
    'Gemini',
    'text/event-stream',
    data({ candidates: [] }),
    data({ error: { ...limited, status: 'UNAVAILABLE' } }),
  ],
  [
    'lines',
    'application/x-ndjson',
    line({ message: { content: 'hi' }, done: false }),
    line({ error: limited }),
  ],
]

describe.each(refusals)('a refusal in the middle of a stream: %s', (name, type, body, refusal) => {
  it('settles the call at once, as what it says', async () => {
    const { setting, response, received, counters } = await begin({ name, type, body: [body], end: '' })
    expect(setting.inFlight()).toBe(1)
    response.write(refusal)
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(counters()).toMatchObject({ completed: 0, refusedByProvider: 1 })
    expect(setting.gateway.counters).toMatchObject({ streamErrors: 1, faults: 0 })
    response.end()
    expect(await received.text()).toBe(body + refusal)
    await vi.waitFor(() => expect(setting.gateway.liveCalls).toBe(0))
  })
})

it("a part that says that all is well is no refusal, and output that quotes one isn't either", async () => {
  const chunks = [
    data({ base_resp: { status_code: 0, status_msg: '' }, choices: [{ delta: { content: 'a' } }] }),
    data({ header: { code: 0, message: 'Success' }, choices: [{ delta: { content: 'b' } }] }),
    data({ choices: [{ delta: { content: '{"base_resp":{"status_code":1002,"status_msg":"limit"}}' } }] }),
    data({ choices: [{ delta: { tool_calls: [{ arguments: '{"code":429,"message":"limit"}' }] } }] }),
  ]
  const wire = { name: '', type: 'text/event-stream', body: chunks, end: '' }
  const { setting, response, received, counters } = await begin(wire)
  response.end('data: [DONE]\n\n')
  await received.text()
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  expect(counters()).toMatchObject({ completed: 1, refusedByProvider: 0 })
})
