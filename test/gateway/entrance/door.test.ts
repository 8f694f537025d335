/** The gateway's own answers: routes, refusals, status; and the texts that it never sends. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { installationSecret, keyOf } from '../../../src/gateway/identity/credential.ts'
import { answerJson, answerStatus, call, overloaded, post, startSetting, startUpstream } from '../setting.ts'

const json = async (response: Response) => (await response.json()) as Record<string, unknown>

describe('routes', () => {
  it('healthz and lanes answer by themselves; the rest is a problem that names the routes', async () => {
    const { gateway } = await startSetting()
    expect(await json(await fetch(`${gateway.url}/healthz`))).toMatchObject({ status: 'ok', warnings: [] })
    expect(await json(await fetch(`${gateway.url}/lanes?x=1`))).toMatchObject({ scopes: [] })
    for (const path of [
      '/',
      '/nowhere/v1',
      '/emulator',
      '/anthropic',
      '/emulator/nix/v1',
      '/anthropic/../x',
    ]) {
      const lost = await new Promise<number | undefined>((resolve) => {
        httpRequest({ port: new URL(gateway.url).port, path, method: 'POST' }, (response) => {
          response.resume()
          resolve(response.statusCode)
        }).end('{"model":"m"}')
      })
      expect([path, lost]).toEqual([path, 404])
    }
    const lost = await json(await fetch(`${gateway.url}/nowhere`))
    expect(lost['routes']).toEqual([
      '/healthz',
      '/lanes',
      '/anthropic/*',
      '/openai/*',
      '/emulator/anthropic/*',
      '/emulator/openai/*',
    ])
  })

  it('an upstream that cannot be reached is a 502 that does not tell its address', async () => {
    const upstream = await startUpstream()
    const gone = { ...upstream, url: 'http://127.0.0.1:1/secret-path' }
    const setting = await startSetting({ upstream: gone })
    for (const answer of [await post(setting.scripted), await fetch(`${setting.scripted}/v1/models`)]) {
      expect(answer.status).toBe(502)
      const text = await answer.text()
      expect(text).toContain('ECONNREFUSED')
      expect(text).not.toContain('secret-path')
    }
    expect(setting.inFlight()).toBe(0)
  })
})

describe('a request that cannot be', () => {
  it.each([
    ['x-rightofway-input-tokens', '-1', 'an integer in [0, 1000000000]'],
    ['x-rightofway-input-tokens', '1.5', 'an integer in [0, 1000000000]'],
    ['x-rightofway-input-tokens', '1e3', 'an integer in [0, 1000000000]'],
    ['x-rightofway-input-tokens', '9999999999', 'an integer in [0, 1000000000]'],
    ['x-rightofway-input-tokens', '', 'an integer in [0, 1000000000]'],
    ['x-rightofway-deadline-ms', '0', 'an integer in [1, 2592000000]'],
    ['x-rightofway-deadline-ms', 'soon', 'an integer in [1, 2592000000]'],
    ['x-rightofway-lane', 'third', 'one of primary, auxiliary'],
    ['x-rightofway-principal', 'p'.repeat(257), '1 to 256 printable ASCII characters'],
    ['x-rightofway-principal', 'caf\u00e9', '1 to 256 printable ASCII characters'],
    ['x-rightofway-turn', '', '1 to 256 printable ASCII characters'],
    ['idempotency-key', 'k'.repeat(241), '1 to 240 printable ASCII characters'],
    ['x-rightofway-prinicpal', 'a', 'one of the fields'],
  ])('%s: %j is refused, with its range', async (field, value, range) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = await post(setting.scripted, { [field]: value })
    expect(answer.status).toBe(400)
    const problem = await json(answer)
    const [first] = problem['problems'] as Array<Record<string, string>>
    expect(first?.['field']).toBe(field)
    expect(first?.['expected']).toContain(range)
    expect(first?.['got']).toContain(JSON.stringify(value).slice(1, 20).replace(/"$/, ''))
    expect(upstream.arrivals.length).toBe(0)
    expect(setting.gateway.counters.invalid).toBe(1)
  })

  it('a model whose name no scope can have is refused', async () => {
    const setting = await startSetting()
    const body = JSON.stringify({ ...call, model: 'm'.repeat(201) })
    const answer = await post(`${setting.gateway.url}/emulator/anthropic`, {}, { body })
    expect(answer.status).toBe(400)
    expect((await json(answer))['detail']).toMatch(/^model: expected 1 to 200 printable characters/)
  })

  it('a body beyond the limit is refused', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, bodyLimitBytes: 2_000 })
    const answer = await post(
      setting.scripted,
      {},
      { body: JSON.stringify({ ...call, pad: 'x'.repeat(2_000_000) }) },
    )
    expect(answer.status).toBe(413)
    expect((await json(answer))['detail']).toContain('bodyLimitBytes = 2000')
    expect(upstream.arrivals.length).toBe(0)
  })

  it('a call is refused while the bodies of others fill what may be held', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, heldBodiesLimitBytes: 1_500 })
    const body = JSON.stringify({ ...call, pad: 'x'.repeat(900) })
    const first = post(setting.scripted, {}, { body })
    const arrival = await upstream.next()
    const second = await post(setting.scripted, {}, { body })
    expect([second.status, second.headers.get('retry-after')]).toEqual([503, '5'])
    answerJson(arrival)
    await first
    const third = post(setting.scripted, {}, { body })
    answerJson(await upstream.next())
    expect((await third).status).toBe(200)
    expect(setting.gateway.counters.full).toBe(1)
  })
})

describe('the priority', () => {
  it.each([
    ['interactive', 'primary'],
    ['  Background_Ingestion ', 'auxiliary'],
    ['BACKGROUND_INGESTION', 'auxiliary'],
    ['orchestration', 'primary'],
  ])('%j is the %s lane', async (value, lane) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-resource-priority': value })
    const arrival = await upstream.next()
    expect(setting.host.status()[0]?.[lane as 'primary'].inFlight).toBe(1)
    answerJson(arrival)
    expect((await answer).headers.get('x-rightofway-warning')).toBeNull()
  })

  it('that nobody knows counts as untagged, and is told', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-resource-priority': 'urgent!!' })
    const arrival = await upstream.next()
    expect(setting.host.status()[0]?.primary.inFlight).toBe(1)
    answerJson(arrival)
    expect((await answer).headers.get('x-rightofway-warning')).toContain('counts as untagged')
    const lanes = await json(await fetch(`${setting.gateway.url}/lanes`))
    expect(lanes).toMatchObject({ gateway: { counters: { unknownPriority: 1 } } })
  })

  it('a stated lane wins', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-rightofway-lane': 'auxiliary', 'x-rightofway-principal': 'p' })
    const arrival = await upstream.next()
    expect(setting.host.status()[0]?.auxiliary.inFlight).toBe(1)
    answerJson(arrival)
    await answer
  })
})

describe('a fault of the gateway', () => {
  it('ends the request and nothing else, and settles the permit', async () => {
    const upstream = await startUpstream()
    const transport = {
      send: () => {
        throw new Error('planted')
      },
      close: async () => {},
    }
    const setting = await startSetting({ upstream, transport })
    const answer = await post(setting.scripted)
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('planted')
    expect(setting.inFlight()).toBe(0)
    expect((await fetch(`${setting.scripted}/v1/models`)).status).toBe(500)
    expect((await fetch(`${setting.gateway.url}/healthz`)).status).toBe(200)
    expect(setting.gateway.counters.faults).toBe(2)
  })
})

describe('what is never told or kept', () => {
  it('a key, a prompt, a completion, a header value', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const printed: Array<string> = []
    for (const stream of [process.stdout, process.stderr]) {
      const spy = vi.spyOn(stream, 'write').mockImplementation((chunk) => printed.push(String(chunk)) > 0)
      onTestFinished(() => spy.mockRestore())
    }
    const upstream = await startUpstream()
    const journal = join(folder, 'lanes.db')
    const setting = await startSetting({ upstream, journal, policy: { pacingBaseMs: 1, pacingMaxMs: 5 } })
    const planted = {
      key: 'planted-key-1',
      prompt: 'planted-prompt-2',
      text: 'planted-completion-3',
      head: 'planted-header-4',
    }
    const body = JSON.stringify({ ...call, messages: [{ role: 'user', content: planted.prompt }] })
    const answer = post(
      setting.scripted,
      { 'x-api-key': planted.key, 'x-custom': planted.head, authorization: `Bearer ${planted.key}` },
      { body },
    )
    answerStatus(await upstream.next(), 529, { ...overloaded, message: `Overloaded: ${planted.text}` })
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'application/json', 'x-reply': planted.head })
    response.end(JSON.stringify({ content: planted.text, usage: { input_tokens: 1, output_tokens: 1 } }))
    expect(await (await answer).text()).toContain(planted.text)
    const lanes = await (await fetch(`${setting.gateway.url}/lanes`)).text()
    await setting.gateway.close()
    await setting.host.close()
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))
    expect(files.join('').length).toBeGreaterThan(1_000)
    for (const [name, secret] of Object.entries(planted)) {
      for (const place of [lanes, ...files, printed.join('')])
        expect([name, place.includes(secret)]).toEqual([name, false])
    }
  })

  it('the secret of the installation is drawn once, for its owner only', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const journal = join(folder, 'lanes.db')
    const first = installationSecret(journal)
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(installationSecret(journal)).toBe(first)
    expect(statSync(`${journal}.secret`).mode & 0o777).toBe(0o600)
    expect(installationSecret(':memory:')).not.toBe(installationSecret(':memory:'))
  })

  it.each([
    [{ 'x-api-key': 'k', authorization: 'Bearer other' }, '', 'k'],
    [{ authorization: 'Bearer  tok ' }, '', 'tok '],
    [{ authorization: 'bearer tok' }, '', 'tok'],
    [{ authorization: 'Basic abc' }, '', 'Basic abc'],
    [{ authorization: 'AWS4-HMAC-SHA256 Credential=AKID/20260101/us/bedrock, Signature=ff' }, '', 'AKID'],
    [{ 'api-key': 'azure' }, '', 'azure'],
    [{ 'x-goog-api-key': 'goog' }, '', 'goog'],
    [{}, 'alt=sse&key=gem', 'gem'],
    [{}, '', ''],
  ])('the key of %j %j is %j', (headers, query, key) => {
    expect(keyOf(headers, query)).toBe(key)
  })
})
