/** Forms and recordings that make a model work: sent on as they come, and again after a refusal. */
import { once } from 'node:events'
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ManualClock } from '../../../src/clock.ts'
import { type SettingOptions, startSetting } from '../setting.ts'

const boundary = 'b0'
const field = (name: string, value: string): Buffer =>
  Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
const fileHead = Buffer.from(
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`,
)
const formEnd = Buffer.from(`\r\n--${boundary}--\r\n`)
const sound = (bytes: number): Buffer => Buffer.alloc(bytes, 'RIFF....WAVEfmt ')

/** A provider that meets each request when its head is there. */
const startProvider = async () => {
  const met: Array<{ readonly request: IncomingMessage; readonly response: ServerResponse }> = []
  const server = createServer((request, response) => {
    request.on('error', () => {})
    response.on('error', () => {})
    met.push({ request, response })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    upstream: { url, arrivals: [], next: () => Promise.reject(new Error('not used')) },
    met,
    nth: async (index: number) => {
      await vi.waitFor(() => expect(met.length).toBeGreaterThan(index))
      return met[index] as (typeof met)[number]
    },
  }
}

const answer = async (response: ServerResponse, status: number, body: object): Promise<void> => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
const rateLimit = {
  error: {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached for requests',
  },
}

const start = async (options: SettingOptions = {}) => {
  const provider = await startProvider()
  const setting = await startSetting({ upstream: provider.upstream, wire: 'openai', ...options })
  const upload = (lengthBytes: number | null, path = '/v1/audio/transcriptions', type?: string) => {
    const client: ClientRequest = request(`${setting.scripted}${path}`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer key-a',
        'content-type': type ?? `multipart/form-data; boundary=${boundary}`,
        ...(lengthBytes === null ? {} : { 'content-length': String(lengthBytes) }),
      },
    })
    client.on('error', () => {})
    return client
  }
  const heldBytes = async (): Promise<number> =>
    ((await (await fetch(`${setting.gateway.url}/lanes`)).json()) as { gateway: { heldBytes: number } })
      .gateway.heldBytes
  return { ...provider, setting, upload, heldBytes }
}

const received = async (client: ClientRequest) => {
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  return { status: response.statusCode, body: await text(response) }
}

describe('an upload', () => {
  it.each(['with its length stated', 'in chunks'])(
    'is admitted in the scope of its model and sent on while it still comes: %s',
    async (how) => {
      const { upload, nth, setting } = await start()
      const begin = Buffer.concat([field('model', 'whisper-x'), fileHead, sound(400_000)])
      const rest = Buffer.concat([sound(100_000), formEnd])
      const client = upload(how === 'in chunks' ? null : begin.length + rest.length)
      client.write(begin)
      const { request: seen, response } = await nth(0)
      expect(setting.host.status().map(({ scope }) => scope)).toEqual([expect.stringMatching(/whisper-x$/)])
      expect(seen.headers['content-length']).toBe(
        how === 'in chunks' ? undefined : String(begin.length + rest.length),
      )
      const chunks: Array<Buffer> = []
      let bytes = 0
      seen.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
      })
      await vi.waitFor(() => expect(bytes).toBe(begin.length))
      client.end(rest)
      await once(seen, 'end')
      expect(Buffer.concat(chunks).equals(Buffer.concat([begin, rest]))).toBe(true)
      await answer(response, 200, { text: 'hello' })
      expect(await received(client)).toEqual({ status: 200, body: '{"text":"hello"}' })
      await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    },
  )

  it('is one of a recording as well, whose model stands in the query', async () => {
    const { upload, nth, setting } = await start()
    const client = upload(null, '/v1/listen?model=nova-x', 'audio/wav')
    client.write(sound(400_000))
    const { request: seen, response } = await nth(0)
    expect(setting.host.status()[0]?.scope).toMatch(/nova-x$/)
    seen.resume()
    client.end()
    await once(seen, 'end')
    await answer(response, 200, {})
    expect((await received(client)).status).toBe(200)
  })

  it('that is refused while it comes, or after, is sent again from its first byte', async () => {
    const { upload, nth, setting } = await start()
    const whole = Buffer.concat([field('model', 'whisper-x'), fileHead, sound(900_000), formEnd])
    const client = upload(whole.length)
    client.write(whole.subarray(0, 500_000))
    const early = await nth(0)
    await answer(early.response, 429, rateLimit)
    await vi.waitFor(() => expect(setting.gateway.counters.absorbedRefusals).toBe(1))
    client.end(whole.subarray(500_000))
    const late = await nth(1)
    expect((await text(late.request)).length).toBe(whole.length)
    await answer(late.response, 429, rateLimit)
    const last = await nth(2)
    const chunks: Array<Buffer> = []
    for await (const chunk of last.request) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).equals(whole)).toBe(true)
    await answer(last.response, 200, { text: 'hello' })
    expect((await received(client)).status).toBe(200)
  }, 60_000)

  it('larger than what is kept passes through, once: its refusal is its client’s', async () => {
    const { upload, nth, setting, heldBytes } = await start({ bodyLimitBytes: 300_000 })
    for (const status of [200, 429]) {
      const whole = Buffer.concat([field('model', 'whisper-x'), fileHead, sound(5_000_000), formEnd])
      const client = upload(whole.length)
      client.end(whole)
      const { request: seen, response } = await nth(status === 200 ? 0 : 1)
      const chunks: Array<Buffer> = []
      for await (const chunk of seen) chunks.push(chunk as Buffer)
      expect(Buffer.concat(chunks).equals(whole)).toBe(true)
      await answer(response, status, status === 200 ? { text: 'hello' } : rateLimit)
      expect((await received(client)).status).toBe(status)
      await vi.waitFor(() => expect(setting.inFlight() + setting.waiting()).toBe(0))
      expect(await heldBytes()).toBe(0)
    }
  })

  it('that waits is received up to the bound, and no further', async () => {
    const { upload, nth, setting, heldBytes } = await start({
      bodyLimitBytes: 400_000,
      policy: { preset: 'contract', capacity: 1, capacityFloor: null },
    })
    const ahead = upload(null)
    ahead.write(Buffer.concat([field('model', 'whisper-x'), fileHead, sound(300_000)]))
    const first = await nth(0)
    first.request.resume()
    const whole = Buffer.concat([field('model', 'whisper-x'), fileHead, sound(40_000_000), formEnd])
    const client = upload(whole.length)
    client.end(whole)
    await vi.waitFor(() => expect(setting.waiting()).toBe(1))
    await vi.waitFor(async () => expect(await heldBytes()).toBeGreaterThan(600_000))
    expect(await heldBytes()).toBeLessThanOrEqual(2 * 400_000)
    expect(client.writableFinished).toBe(false)
    ahead.end(formEnd)
    await once(first.request, 'end')
    await answer(first.response, 200, {})
    const second = await nth(1)
    expect((await text(second.request)).length).toBe(whole.length)
    await answer(second.response, 200, {})
    expect((await received(client)).status).toBe(200)
  })

  it('whose model comes behind more than is kept is refused with the bound', async () => {
    const { upload } = await start({ bodyLimitBytes: 300_000 })
    const client = upload(null)
    client.end(Buffer.concat([fileHead, sound(500_000), Buffer.from('\r\n'), field('model', 'm'), formEnd]))
    const { status, body } = await received(client)
    expect(status).toBe(413)
    expect(body).toContain('bodyLimitBytes = 300000')
  })

  it('that stops coming loses its place; so does one whose client goes', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1))
    const { upload, nth, setting } = await start({ clock, writeStallMs: 30_000 })
    const begin = Buffer.concat([field('model', 'whisper-x'), fileHead, sound(300_000)])
    const silent = upload(null)
    silent.write(begin)
    const first = await nth(0)
    let bytes = 0
    first.request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await vi.waitFor(() => expect(bytes).toBe(begin.length))
    const broken = once(first.response, 'close')
    const ended = new Promise((resolve) => silent.once('close', resolve))
    clock.advance(30_000)
    await Promise.all([broken, ended])
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(setting.gateway.counters.stalledClients).toBe(1)
    const gone = upload(null)
    gone.write(begin)
    const second = await nth(1)
    second.request.resume()
    const cut = once(second.response, 'close')
    gone.destroy()
    await cut
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
    expect(setting.gateway.counters).toMatchObject({ clientAborts: 1, faults: 0, upstreamFailures: 0 })
  })
})
