/** How bytes pass: unchanged, as they come, no faster than the client reads, and the permit is held meanwhile. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { answerJson, call, event, post, startSetting, startUpstream } from '../setting.ts'

/** An HTTP exchange whose answer the test reads when it likes. */
const open = (url: string, path: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ ...call, stream: true })
    const request = httpRequest(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'k', 'content-length': body.length },
    })
    request.on('response', resolve)
    request.on('error', reject)
    request.end(body)
  })

describe('a stream through the gateway', () => {
  it.each([
    ['one byte at a time', 1],
    ['cut inside characters and line ends', 7],
    ['in large pieces', 65_536],
  ])('has the bytes that the upstream sent: %s', async (_, size) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    const text = `: welcome\r\n\r\n${event('message_start', { message: { usage: { input_tokens: 3 } } })}${event(
      'content_block_delta',
      { delta: { type: 'text_delta', text: 'Grüße, 世界 🚦' } },
    )}data: not json at all\n\nevent: message_stop\ndata: {}`
    const sent = Buffer.from(text)
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'x-odd': 'kept',
      connection: 'x-hop',
      'x-hop': '1',
    })
    for (let at = 0; at < sent.length; at += size) response.write(sent.subarray(at, at + size))
    response.end()
    const received = await answer
    expect(Buffer.from(await received.arrayBuffer()).equals(sent)).toBe(true)
    expect(received.headers.get('x-odd')).toBe('kept')
    expect(received.headers.get('x-hop')).toBeNull()
  })

  it('reaches the client event by event, and the permit is held to its end', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('message_start'))
    const reader = (await answer).body?.getReader()
    const first = await reader?.read()
    expect(Buffer.from(first?.value ?? []).toString()).toBe(event('message_start'))
    expect(setting.inFlight()).toBe(1)
    response.write(event('ping'))
    const second = await reader?.read()
    expect(Buffer.from(second?.value ?? []).toString()).toBe(event('ping'))
    expect(setting.inFlight()).toBe(1)
    response.end(event('message_stop'))
    await reader?.read()
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  })

  it('waits for a client that does not read, and holds little of it meanwhile', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const opening = open(setting.scripted, '/v1/messages')
    const { response } = await upstream.next()
    const total = 96 * 1024 * 1024
    const chunk = Buffer.alloc(256 * 1024, 'x')
    let sent = 0
    const pump = (): void => {
      while (sent < total) {
        sent += chunk.length
        if (!response.write(chunk)) return void response.once('drain', pump)
      }
      response.end()
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    pump()
    const incoming = await opening
    let before = -1
    // Stands still for three looks: the client's pause has travelled all the way up.
    let still = 0
    await vi.waitFor(
      () => {
        still = sent === before ? still + 1 : 0
        before = sent
        expect(still).toBeGreaterThan(3)
      },
      { timeout: 10_000, interval: 30 },
    )
    expect(sent).toBeLessThan(total / 2)
    let received = 0
    incoming.on('data', (piece: Buffer) => {
      received += piece.length
    })
    await new Promise((resolve) => incoming.on('end', resolve))
    expect(received).toBe(total)
  })

  it('cut short by the upstream is cut short for the client, never ended as if it were whole', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('message_start'))
    const received = await answer
    response.destroy()
    await expect(received.text()).rejects.toThrow()
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(setting.gateway.counters.upstreamFailures).toBe(1)
  })
})

describe('a request on its way to the upstream', () => {
  it('keeps its body and its own headers; fields of one hop and of the gateway stay behind', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const body = `{ "model":"m",\n\t"messages": [{"role":"user","content":"Grüße \\u0000 🚦"}] }`
    const answer = post(
      setting.scripted,
      {
        'x-rightofway-principal': 'residence-a',
        'x-rightofway-input-tokens': '12',
        'x-resource-priority': 'interactive',
        'idempotency-key': 'k-1',
        'anthropic-version': '2023-06-01',
        'accept-encoding': 'br',
      },
      { path: '/v1/messages?beta=true', body },
    )
    const arrival = await upstream.next()
    expect(arrival.body).toBe(body)
    expect(arrival.request.url).toBe('/v1/messages?beta=true')
    const { headers } = arrival.request
    expect(headers).toMatchObject({
      'x-api-key': 'key-a',
      'anthropic-version': '2023-06-01',
      'idempotency-key': 'k-1',
      'accept-encoding': 'identity',
      host: new URL(upstream.url).host,
    })
    expect(Object.keys(headers).filter((name) => /rightofway|x-resource/.test(name))).toEqual([])
    answerJson(arrival)
    expect((await answer).status).toBe(200)
  })

  it('passes the priority on to an upstream that honours it', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, honoursPriority: true })
    const answer = post(setting.scripted, { 'x-resource-priority': 'hydration' })
    const arrival = await upstream.next()
    expect(arrival.request.headers['x-resource-priority']).toBe('hydration')
    answerJson(arrival)
    await answer
  })

  it('streams an upload through without admission', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, bodyLimitBytes: 1_024 })
    const form = new FormData()
    form.set('file', new Blob(['x'.repeat(100_000)]))
    const answer = fetch(`${setting.scripted}/v1/files`, { method: 'POST', body: form })
    const arrival = await upstream.next()
    expect(arrival.body.length).toBeGreaterThan(100_000)
    answerJson(arrival)
    expect((await answer).status).toBe(200)
    expect(setting.gateway.counters).toMatchObject({ calls: 0, forwarded: 1 })
  })
})

describe('an answer that is no success', () => {
  it('passes unchanged, also when it is too long to be held back', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    const long = Buffer.alloc(3 * 1024 * 1024, 'e')
    response.writeHead(500, { 'content-type': 'text/plain', 'x-request-id': 'r-1' })
    response.end(long)
    const received = await answer
    expect(received.status).toBe(500)
    expect(received.headers.get('x-request-id')).toBe('r-1')
    expect(Buffer.from(await received.arrayBuffer()).equals(long)).toBe(true)
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  })

  it.each([400, 401, 404, 422, 500])('%i is not for admission to mend', async (status) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted)
    const { response } = await upstream.next()
    const body = '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
    const received = await answer
    expect([received.status, await received.text()]).toEqual([status, body])
    expect(upstream.arrivals.length).toBe(1)
  })
})
