import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { decodeRules, makeEmulatorHandler, makeProvider, startEmulator } from '../../src/emulator/index.ts'
import { makeManualClock, until } from './manual-clock.ts'

const headers = { authorization: 'Bearer k', 'x-emulator-input-tokens': '7' }
const chat = (more: Record<string, unknown> = {}) =>
  JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a secret prompt' }], ...more })

describe('the emulator over HTTP', () => {
  test('GET /log shows what happened and never what was said', async () => {
    const emulator = await startEmulator({ rules: [] })
    const path = `${emulator.url}/v1/chat/completions`
    const named = { ...headers, 'x-emulator-call-id': 'call-1', 'x-emulator-lane': 'primary' }
    await (await fetch(path, { method: 'POST', headers: named, body: chat() })).text()
    const spoken = { ...headers, 'x-emulator-call-id': 'a secret prompt' }
    await (await fetch(path, { method: 'POST', headers: spoken, body: chat() })).text()
    const text = await (await fetch(`${emulator.url}/log`)).text()
    expect(text).not.toContain('secret')
    expect(JSON.parse(text)).toMatchObject({
      totals: { accepted: 2, completed: 2, refused: 0, aborted: 0, acceptedInputTokens: 14 },
      entries: [
        { callId: 'call-1', lane: 'primary', kind: 'accepted', inputTokens: 7 },
        { callId: 'call-1', kind: 'completed', outputTokens: 64 },
        { callId: 'req_emulator_http_2', kind: 'accepted' },
        { callId: 'req_emulator_http_2', kind: 'completed' },
      ],
    })
    await emulator.close()
  })

  test('can be mounted under a prefix by another server of the same process', async () => {
    const provider = makeProvider({
      rules: decodeRules([]),
      latency: { firstTokenMs: 0, perOutputTokenMs: 0 },
      seed: 1,
    })
    const handler = makeEmulatorHandler({ provider })
    const prefix = '/emulator/openai'
    const server = createServer((request, response) =>
      handler(request, response, request.url?.slice(prefix.length)),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const baseURL = `http://127.0.0.1:${port}${prefix}/v1`
    const client = new OpenAI({ apiKey: 'k', baseURL, maxRetries: 0 })
    const { choices } = await client.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'hello' }],
    })
    expect(choices).toHaveLength(1)
    expect(provider.totals().completed).toBe(1)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  test('tokens are paced by the clock', async () => {
    const clock = makeManualClock()
    const emulator = await startEmulator({
      rules: [],
      clock,
      latency: { firstTokenMs: 500, perOutputTokenMs: 20 },
    })
    const { response, text } = await openStream(emulator.url, 3)
    const deltas = () => text().split('"content":"').length - 2
    await until(() => text().includes('assistant') && clock.armed() === 1)
    clock.advance(499)
    expect(deltas()).toBe(0)
    clock.advance(1)
    await until(() => deltas() === 1)
    clock.advance(20)
    await until(() => deltas() === 2)
    clock.advance(40)
    await until(() => response.complete)
    expect(text()).toMatch(/\[DONE\]\n\n$/)
    expect(emulator.log().map(({ at, kind }) => [at, kind])).toEqual([
      [0, 'accepted'],
      [560, 'completed'],
    ])
    await emulator.close()
  })

  test('a client that does not read holds the stream back, and its going away is an abort', async () => {
    const emulator = await startEmulator({ rules: [] })
    const outputTokens = 400_000
    const { response } = await openStream(emulator.url, outputTokens, false)
    await new Promise((resolve) => setImmediate(resolve))
    expect(emulator.provider.inFlight()).toBe(1)
    response.destroy()
    await until(() => emulator.provider.inFlight() === 0)
    const last = emulator.log().at(-1)
    expect(last?.kind).toBe('aborted')
    expect(last?.outputTokens).toBeLessThan(outputTokens)
    await emulator.close()
  })

  test('a client that reads slowly gets everything', async () => {
    const emulator = await startEmulator({ rules: [] })
    const { response, text } = await openStream(emulator.url, 20_000)
    await until(() => response.complete, 1_000_000)
    expect(text()).toMatch(/\[DONE\]\n\n$/)
    expect(emulator.provider.totals().completed).toBe(1)
    await emulator.close()
  })

  test('close breaks off what is in flight', async () => {
    const emulator = await startEmulator({ rules: [] })
    const hanging = fetch(`${emulator.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...headers, 'x-emulator-fault': 'hang' },
      body: chat(),
    })
    const failed = expect(hanging).rejects.toThrow()
    await until(() => emulator.provider.inFlight() === 1)
    await emulator.close()
    await failed
    await until(() => emulator.provider.inFlight() === 0)
    expect(emulator.log().at(-1)?.kind).toBe('aborted')
  })

  test('a taken port is an error, not a silence', async () => {
    const emulator = await startEmulator({ rules: [] })
    const port = Number(new URL(emulator.url).port)
    await expect(startEmulator({ rules: [], port })).rejects.toThrow(/EADDRINUSE/)
    await emulator.close()
  })
})

/** Opens a chat stream over plain `node:http`, so that the test decides how it is read. */
const openStream = (
  url: string,
  outputTokens: number,
  reads = true,
): Promise<{ readonly response: IncomingMessage; readonly text: () => string }> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...headers, 'x-emulator-output-tokens': `${outputTokens}` },
    })
    request.once('error', reject)
    request.once('response', (response) => {
      const chunks: string[] = []
      response.setEncoding('utf8')
      response.on('error', () => {})
      if (reads) response.on('data', (chunk: string) => chunks.push(chunk))
      resolve({ response, text: () => chunks.join('') })
    })
    request.end(chat({ stream: true }))
  })
