/** OpenAI's own realtime client, over TLS as it insists. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OpenAI } from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { expect, it, onTestFinished, vi } from 'vitest'
import { certificate, hasOpenssl } from '../certificate.ts'
import { startSetting } from '../setting.ts'
import { startProvider } from './provider.ts'

it.skipIf(!hasOpenssl)('holds a session of several responses, each a call of its model', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-realtime-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  certificate(folder, 'gateway')
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const { upstream, connection } = await startProvider()
  const policy = { preset: 'contract', pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 } as const
  const setting = await startSetting({ upstream, wire: 'openai', tls, policy })
  const baseURL = `${setting.scripted.replace('127.0.0.1', 'localhost')}/v1`
  const client = new OpenAI({ apiKey: 'key-a', baseURL })
  const ca = readFileSync(tls.cert)
  const session = new OpenAIRealtimeWS({ model: 'voice-x', options: { ca } }, client)
  const heard: Array<string> = []
  session.on('event', ({ type }) => heard.push(type))
  session.on('error', (error) => heard.push(`error: ${error.message}`))
  const provider = await connection()
  expect(provider.request.url).toBe('/v1/realtime?model=voice-x')
  await vi.waitFor(() => expect(session.socket.readyState).toBe(session.socket.OPEN))
  session.send({ type: 'session.update', session: { type: 'realtime', instructions: 'short' } })
  expect(JSON.parse(await provider.next())).toMatchObject({ type: 'session.update' })
  expect(setting.gateway.liveCalls).toBe(0)
  for (const id of ['r1', 'r2']) {
    session.send({ type: 'response.create', response: { max_output_tokens: 300 } })
    expect(JSON.parse(await provider.next())).toMatchObject({ type: 'response.create' })
    expect(setting.inFlight()).toBe(1)
    if (id === 'r2') {
      const error = { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Rate limit reached' }
      provider.say({ type: 'error', error })
      expect(JSON.parse(await provider.next())).toMatchObject({ type: 'response.create' })
    }
    provider.say({ type: 'response.created', response: { id, status: 'in_progress' } })
    const usage = { total_tokens: 1_205, input_tokens: 1_200, output_tokens: 5 }
    provider.say({ type: 'response.done', response: { id, status: 'completed', usage } })
    await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  }
  await vi.waitFor(() => expect(heard.filter((type) => type === 'response.done')).toHaveLength(2))
  expect(heard.filter((type) => type.startsWith('error'))).toEqual([])
  const [scope] = setting.host.status()
  expect(scope).toMatchObject({ scope: expect.stringMatching(/voice-x$/), counters: { completed: 2 } })
  session.close()
})
