/** Who may ask: by what name, from which page, with which token, over which connection. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { hostSource, makeInspector } from '../../../inspector/server.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { addToken, revokeToken, type TokenRights } from '../../../src/gateway/entrance/tokens.ts'
import { type Gateway, startGateway } from '../../../src/gateway/gateway.ts'
import { openHost } from '../../../src/host/host.ts'
import { Program, run } from '../../cli/program.ts'
import { certificate, hasOpenssl } from '../certificate.ts'
import { head, raw } from '../raw.ts'
import { answerJson, post, type ScriptedUpstream, secret, startUpstream } from '../setting.ts'

const folderOf = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const start = async (given: object, upstream?: ScriptedUpstream): Promise<Gateway> => {
  const config = parseConfig({
    port: 0,
    journal: ':memory:',
    ...(upstream === undefined
      ? {}
      : { upstreams: [{ name: 'scripted', baseUrl: upstream.url, wire: 'anthropic' }] }),
    ...given,
  })
  const host = await openHost()
  onTestFinished(() => host.close())
  const inspector = makeInspector(hostSource(host), { allowedHosts: config.allowedHosts })
  const gateway = await startGateway({ host, config, secret, mount: { prefix: '/inspector', ...inspector } })
  onTestFinished(() => gateway.close())
  return gateway
}

const paths = ['/healthz', '/lanes', '/inspector/api/scopes', '/emulator/openai/v1/models']
const key = 'authorization: Bearer k'

describe('a name that is not one of ours, as of a page that has its DNS point here', () => {
  it.each(paths)('is refused at %s', async (path) => {
    const gateway = await start({})
    for (const host of [
      'evil.example',
      'evil.example:4517',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '10.0.0.1',
      '[::2]',
      'a b',
      '',
    ]) {
      const { status } = await raw(gateway.url, head(`GET ${path}`, [`host: ${host}`, key]))
      expect([host, status === 403 || status === 400]).toEqual([host, true])
    }
    for (const host of ['127.0.0.1', 'localhost:4517', 'LOCALHOST', '[::1]:80', 'app.localhost']) {
      const { status } = await raw(gateway.url, head(`GET ${path}`, [`host: ${host}`, key]))
      expect([host, status]).toEqual([host, 200])
    }
    // An absolute target stands above the field.
    expect((await raw(gateway.url, head(`GET http://evil.example${path}`, [key]))).status).toBe(403)
  })

  it.each(paths)('is answered at %s where the configuration allows it', async (path) => {
    const gateway = await start({ allowedHosts: ['gateway.internal'] })
    expect((await raw(gateway.url, head(`GET ${path}`, ['host: gateway.internal:80', key]))).status).toBe(200)
  })
})

describe('a page of another site', () => {
  it.each([
    ['origin: https://evil.example'],
    ['origin: null'],
    ['origin: http://localhost:3000'],
    ['sec-fetch-site: cross-site'],
    ['sec-fetch-site: same-site'],
  ])('is refused: %s', async (field) => {
    const upstream = await startUpstream()
    const gateway = await start({}, upstream)
    for (const request of [
      head('GET /lanes', [field]),
      head('GET /healthz', [field]),
      head('GET /inspector/api/scopes', [field]),
      `${head('POST /scripted/v1/messages', [field, 'content-type: text/plain', 'content-length: 13'])}{"model":"m"}`,
    ]) {
      expect((await raw(gateway.url, request)).status).toBe(403)
    }
    expect(upstream.arrivals.length).toBe(0)
  })

  it.each([
    ['none', ['sec-fetch-site: none']],
    ['our own', ['sec-fetch-site: same-origin', 'origin: http://127.0.0.1']],
    ['one that is allowed', ['sec-fetch-site: cross-site', 'origin: https://app.example']],
  ])('is answered when it is %s', async (_, fields) => {
    const gateway = await start({ allowedOrigins: ['https://app.example'] })
    expect((await raw(gateway.url, head('GET /lanes', fields))).status).toBe(200)
  })
})

const all: TokenRights = { principal: 'residence-a', classes: null, lanes: null }

const withToken = async (rights: TokenRights = all) => {
  const journal = join(folderOf(), 'lanes.db')
  const token = addToken(`${journal}.tokens`, rights, 1)
  const upstream = await startUpstream()
  const gateway = await start({ journal }, upstream)
  return { journal, token, upstream, gateway, url: `${gateway.url}/scripted` }
}

describe('with tokens', () => {
  it('nothing but /healthz is answered without one, or with one that does not count', async () => {
    const { gateway, token, upstream, url } = await withToken()
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
    const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
    for (const said of [
      undefined,
      'row_x',
      wrong,
      token.replace(/^row_.{12}/, 'row_000000000000'),
      `${token}x`,
      '',
    ]) {
      const headers = said === undefined ? {} : { 'x-rightofway-token': said }
      expect((await post(url, headers)).status).toBe(401)
      expect((await fetch(`${gateway.url}/lanes`, { headers })).status).toBe(401)
      expect((await fetch(`${url}/v1/models`, { headers })).status).toBe(401)
    }
    expect(upstream.arrivals.length).toBe(0)
    const lanes = await fetch(`${gateway.url}/lanes`, { headers: { 'x-rightofway-token': token } })
    expect(lanes.status).toBe(200)
  })

  it.each([
    ['a field of its own', (token: string) => ({ 'x-rightofway-token': token })],
    ['authorization', (token: string) => ({ authorization: `Bearer ${token}` })],
  ])('one that counts is taken from %s, and never travels', async (_, headers) => {
    const { token, upstream, url } = await withToken()
    const answer = post(url, headers(token))
    const arrival = await upstream.next()
    expect(JSON.stringify(arrival.request.rawHeaders)).not.toContain(token)
    expect(arrival.request.headers).toMatchObject({ 'x-api-key': 'key-a' })
    answerJson(arrival)
    expect((await answer).status).toBe(200)
  })

  it('at rest there is a digest, readable by its owner alone', async () => {
    const { journal, token } = await withToken()
    const path = `${journal}.tokens`
    expect(readFileSync(path, 'utf8')).not.toContain(token.split('_')[2])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('one that is revoked ends within a second, and leaves nobody free to come in', async () => {
    const { journal, token, gateway } = await withToken()
    const headers = { 'x-rightofway-token': token }
    expect((await fetch(`${gateway.url}/lanes`, { headers })).status).toBe(200)
    expect(revokeToken(`${journal}.tokens`, token.split('_')[1] ?? '')).toBe(true)
    await vi.waitFor(
      async () => expect((await fetch(`${gateway.url}/lanes`, { headers })).status).toBe(401),
      {
        timeout: 3_000,
        interval: 100,
      },
    )
    expect((await fetch(`${gateway.url}/lanes`)).status).toBe(401)
    rmSync(`${journal}.tokens`)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect((await fetch(`${gateway.url}/lanes`)).status).toBe(401)
  })

  it.each<[string, TokenRights, Record<string, string>]>([
    ['another principal', all, { 'x-rightofway-principal': 'residence-b' }],
    [
      'a class above its own',
      { ...all, classes: ['background_ingestion'] },
      { 'x-resource-priority': 'interactive' },
    ],
    ['a lane that is not its own', { ...all, lanes: ['auxiliary'] }, { 'x-rightofway-lane': 'primary' }],
  ])('nobody promotes itself: %s is refused', async (_, rights, headers) => {
    const { token, upstream, url } = await withToken(rights)
    const refused = await post(url, { 'x-rightofway-token': token, ...headers })
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('as token')])
    expect(upstream.arrivals.length).toBe(0)
  })

  it.each<[string, TokenRights, string]>([
    ['all that it is allowed', all, 'primary'],
    ['background alone', { ...all, classes: ['background_ingestion'] }, 'auxiliary'],
    ['one lane alone', { ...all, lanes: ['auxiliary'] }, 'auxiliary'],
  ])('an untagged call gets what its token has: %s', async (_, rights, lane) => {
    const { token, upstream, url, gateway } = await withToken(rights)
    const headers = { 'x-rightofway-token': token }
    const answer = post(url, headers)
    const arrival = await upstream.next()
    const lanes = (await (await fetch(`${gateway.url}/lanes`, { headers })).json()) as {
      scopes: Array<Record<string, { inFlight: number }>>
    }
    expect(lanes.scopes[0]?.[lane]?.inFlight).toBe(1)
    answerJson(arrival)
    await answer
  })
})

describe('an address that others reach', () => {
  it('is refused without tokens, unless somebody says that this is meant', async () => {
    await expect(start({ host: '0.0.0.0' })).rejects.toThrow(
      /config.host: expected an address of this machine alone/,
    )
    const journal = join(folderOf(), 'lanes.db')
    const open = await start({ host: '0.0.0.0', insecure: true })
    expect(
      (await raw(`http://127.0.0.1:${new URL(open.url).port}`, head('GET /healthz', ['host: 10.1.2.3:80'])))
        .status,
    ).toBe(200)
    addToken(`${journal}.tokens`, all, 1)
    expect((await start({ host: '0.0.0.0', journal })).url).toContain('http://')
  })

  it('is refused by the command line in one line, which token add mends', async () => {
    const folder = folderOf()
    const args = ['serve', '--port', '0', '--host', '0.0.0.0', '--journal', 'own.db']
    const refused = await run(args, folder)
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/^rightofway: .*host: expected .*token add/),
    ])
    const made = await run(
      ['token', 'add', '--principal', 'p-1', '--classes', 'hydration', '--journal', 'own.db'],
      folder,
    )
    expect(made.out).toMatch(/^row_[0-9a-f]{12}_[\w-]{43}\n$/)
    const id = made.out.split('_')[1] as string
    const listed = await run(['token', 'list', '--journal', 'own.db'], folder)
    expect(listed.out).toMatch(new RegExp(`^${id} {2}p-1 {2}classes hydration {2}lanes all {2}made \\d{4}-`))
    const program = new Program(args, folder)
    const [, port] = await program.says(/listens on http:\/\/0\.0\.0\.0:(\d+)/)
    expect((await fetch(`http://127.0.0.1:${port}/lanes`)).status).toBe(401)
    const headers = { 'x-rightofway-token': made.out.trim() }
    expect((await fetch(`http://127.0.0.1:${port}/lanes`, { headers })).status).toBe(200)
    program.child.kill('SIGTERM')
    expect((await program.finished).code).toBe(0)
    const revoked = await run(['token', 'revoke', id, '--journal', 'own.db'], folder)
    expect(revoked.out).toContain(`token ${id} is revoked`)
    expect((await run(['token', 'revoke', id, '--journal', 'own.db'], folder)).code).toBe(1)
    const misspelt = await run(
      ['token', 'add', '--principal', 'p', '--classes', 'urgent', '--journal', 'own.db'],
      folder,
    )
    expect([misspelt.code, misspelt.err]).toEqual([
      1,
      expect.stringContaining('--classes: expected some of interactive'),
    ])
  })
})

const nameShown = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const port = Number(new URL(url).port)
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', reject)
  })

describe('TLS', () => {
  it.skipIf(!hasOpenssl)('is served with files that are read again when they change', async () => {
    const folder = folderOf()
    certificate(folder, 'first')
    const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    const gateway = await start({ tls })
    expect(gateway.url).toMatch(/^https:/)
    expect(await nameShown(gateway.url)).toBe('first')
    // Half of a pair changes nothing.
    writeFileSync(tls.key, 'no key at all')
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    expect(await nameShown(gateway.url)).toBe('first')
    certificate(folder, 'second')
    await vi.waitFor(async () => expect(await nameShown(gateway.url)).toBe('second'), {
      timeout: 5_000,
      interval: 200,
    })
  })

  it('with a file that is not there is refused by its name', async () => {
    const tls = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' }
    await expect(start({ tls })).rejects.toThrow(/config.tls.cert: expected a PEM file .*ENOENT/)
  })
})
