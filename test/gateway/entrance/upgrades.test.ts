/** A wish for another protocol that is not ours is left unheard: the request is served as HTTP/1.1 (RFC 9110 section 7.8). */
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { head, raw } from '../raw.ts'
import { answerJson, startSetting, startUpstream } from '../setting.ts'

const body = '{"model":"m","max_tokens":1,"messages":[]}'

/** Null where there is none that speaks HTTP/2. */
const curl = ((): string | null => {
  try {
    const version = execFileSync('curl', ['--version'], { encoding: 'utf8' })
    return /HTTP2/.test(version) ? version : null
  } catch {
    return null
  }
})()

describe('Upgrade: h2c', () => {
  it.each(['h2c', 'H2C', 'TLS/1.0, HTTP/1.1', 'h2c, websockets'])(
    '%s is ignored, and so is what it brings',
    async (wish) => {
      const upstream = await startUpstream()
      const setting = await startSetting({ upstream })
      const bytes =
        head('POST /scripted/v1/messages', [
          'x-api-key: key-a',
          'Connection: Upgrade, HTTP2-Settings, close',
          `Upgrade: ${wish}`,
          'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
          'content-type: application/json',
          `content-length: ${body.length}`,
        ]).replace('Connection: close\r\n', '') + body
      const answer = raw(setting.gateway.url, bytes)
      const arrival = await upstream.next()
      answerJson(arrival)
      expect((await answer).text).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*msg_1/)
      expect(arrival.body).toBe(body)
      for (const field of ['upgrade', 'http2-settings'])
        expect(arrival.request.headers).not.toHaveProperty(field)
      expect(setting.gateway.counters).toMatchObject({ calls: 1, invalid: 0, faults: 0 })
    },
  )

  it('the connection ends behind its answer: nobody waits for one to what was sent behind the wish', async () => {
    const setting = await startSetting()
    const get = (fields: string) => `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n`
    const wish = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    const startedAtMs = performance.now()
    const { text } = await raw(setting.gateway.url, get(wish) + get(''), { untilMs: 10_000 })
    expect(text).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*connection: close/i)
    expect(performance.now() - startedAtMs).toBeLessThan(5_000)
  })

  it.skipIf(curl === null)('curl --http2 gets its answer', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const asked = promisify(execFile)('curl', [
      ...['--http2', '-s', '-i', '-H', 'x-api-key: key-a', '-H', 'content-type: application/json'],
      ...['-d', body, `${setting.scripted}/v1/messages`],
    ])
    answerJson(await upstream.next())
    expect((await asked).stdout).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*msg_1/)
  })
})
