import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type {
  EntriesAnswer,
  Frame,
  HistoryAnswer,
  ScopesAnswer,
  StateAnswer,
} from '../../inspector/protocol.ts'
import {
  type AttachedInspector,
  attachInspector,
  hostSource,
  inspectJournal,
  makeInspector,
} from '../../inspector/server.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { explainCall } from '../../src/host/explain.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openStory, type Story, scope, settle, tellStory } from './story.ts'

const token = 'operator-token-0123456789'
const folder = mkdtempSync(join(tmpdir(), 'inspector-'))
const journal = join(folder, 'lanes.db')
let story: Story
let open: AttachedInspector
let locked: AttachedInspector

beforeAll(async () => {
  story = await openStory(journal)
  await tellStory(story)
  const [first] = await Promise.all([
    attachInspector(story.host, { allowActions: true, token }),
    tellStory(story, 1),
  ])
  open = first
  locked = await attachInspector(story.host, { allowedHosts: ['inspector.internal'] })
})
afterAll(async () => {
  await Promise.all([open.close(), locked.close()])
  await story.host.close()
  rmSync(folder, { recursive: true })
})

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** As a browser or an attacker would: `fetch` does not let one choose the Host header. */
const ask = (to: AttachedInspector, path: string, { method = 'GET', headers = {}, body }: Asked = {}) =>
  new Promise<Answered>((resolve, reject) => {
    const { hostname, port, host } = new URL(to.url)
    const request = httpRequest(
      { hostname, port, path, method, headers: { host, ...headers } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
    request.on('error', reject)
    request.end(body)
  })

const askJson = async <A>(to: AttachedInspector, path: string): Promise<A> => {
  const { status, text } = await ask(to, path)
  expect(status, text).toBe(200)
  return JSON.parse(text) as A
}

const query = new URLSearchParams({ scope }).toString()

describe('who may ask', () => {
  it.each([
    ['127.0.0.1:1'],
    ['127.8.9.10'],
    ['localhost:4517'],
    ['LOCALHOST'],
    ['lanes.localhost:80'],
    ['[::1]:4517'],
    ['inspector.internal'],
    ['inspector.internal:443'],
  ])('answers the name %s', async (host) => {
    expect((await ask(locked, '/api/scopes', { headers: { host } })).status).toBe(200)
  })

  it.each([
    ['evil.example'],
    ['evil.example:4517'],
    ['localhost.evil.example'],
    ['127.0.0.1.evil.example'],
    ['evil.example#localhost'],
    ['user@localhost'],
    ['192.168.1.7'],
    ['[::2]'],
    ['0.0.0.0'],
  ])('refuses the name %j, which DNS may have pointed here', async (host) => {
    for (const path of ['/', '/api/scopes', '/api/feed', '/assets/x.js']) {
      const { status, text } = await ask(locked, path, { headers: { host } })
      expect(status).toBe(403)
      expect(text).not.toContain(scope)
    }
  })

  it.each([['https://evil.example'], ['null'], ['http://localhost:1'], ['http://127.0.0.1']])(
    'refuses a page of origin %s',
    async (origin) => {
      expect((await ask(open, '/api/scopes', { headers: { origin } })).status).toBe(403)
      expect((await ask(open, '/api/feed', { headers: { origin } })).status).toBe(403)
    },
  )

  it('answers its own page', async () => {
    const origin = open.url.replace(/\/$/, '')
    expect((await ask(open, '/api/scopes', { headers: { origin } })).status).toBe(200)
    expect((await ask(open, '/api/scopes', { headers: { 'sec-fetch-site': 'same-origin' } })).status).toBe(
      200,
    )
  })

  it('gives no data to another site, even without an origin', async () => {
    for (const site of ['cross-site', 'same-site']) {
      expect((await ask(open, '/api/scopes', { headers: { 'sec-fetch-site': site } })).status).toBe(403)
    }
  })
})

describe('every answer', () => {
  it.each([['/'], ['/api/scopes'], ['/api/none'], ['/none'], ['']])(
    'of %j forbids scripts from elsewhere, inline scripts and frames',
    async (path) => {
      const { headers } = await ask(open, path || '/')
      const policy = String(headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("script-src 'self'")
      expect(policy).toContain("connect-src 'self'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
      expect(headers['access-control-allow-origin']).toBeUndefined()
    },
  )

  it('to anything but a GET is no, actions apart', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await ask(open, '/api/scopes', { method })).status).toBe(405)
    }
  })

  it('never leaves the folder of the page', async () => {
    for (const path of [
      '/../package.json',
      '/..%2fpackage.json',
      '/assets/../../package.json',
      '//etc/passwd',
    ]) {
      const { status, text } = await ask(open, path)
      expect(text).not.toContain('"name"')
      expect(status).not.toBe(200)
    }
  })
})

describe('mounted under a prefix', () => {
  const page = join(folder, 'page')
  let mounted: Server
  let url: string
  beforeAll(async () => {
    mkdirSync(join(page, 'assets'), { recursive: true })
    writeFileSync(join(page, 'index.html'), '<!doctype html><title>page</title>')
    writeFileSync(join(page, 'assets/app-abc123.js'), 'export {}')
    writeFileSync(join(page, 'notes.txt'), 'not for the page')
    const inspector = makeInspector(hostSource(story.host), { pageFolder: page })
    mounted = createServer((request, response) => {
      const path = request.url?.slice('/inspector'.length) ?? ''
      inspector.handle(request, response, path)
    }).listen(0, '127.0.0.1')
    await once(mounted, 'listening')
    url = `http://127.0.0.1:${(mounted.address() as AddressInfo).port}`
  })
  afterAll(() => mounted.close())

  it('is a folder, with or without the slash, and keeps the query', async () => {
    const bare = await fetch(`${url}/inspector`, { redirect: 'manual' })
    expect(bare.status).toBe(308)
    expect(new URL(bare.headers.get('location')!, `${url}/inspector`).pathname).toBe('/inspector/')
    const asked = await fetch(`${url}/inspector?a=b`, { redirect: 'manual' })
    expect(asked.headers.get('location')).toBe('inspector/?a=b')
    expect(await (await fetch(`${url}/inspector`)).text()).toContain('<title>page</title>')
  })

  it('serves what is hashed for ever, the page itself never from a cache, and nothing else', async () => {
    const script = await fetch(`${url}/inspector/assets/app-abc123.js`)
    expect(script.headers.get('cache-control')).toContain('immutable')
    expect(script.headers.get('content-type')).toContain('text/javascript')
    expect((await fetch(`${url}/inspector/`)).headers.get('cache-control')).toBe('no-cache')
    expect((await fetch(`${url}/inspector/notes.txt`)).status).toBe(404)
    expect((await fetch(`${url}/inspector/api/scopes`)).status).toBe(200)
  })

  it('says how to build the page where there is none', async () => {
    const bare = await attachInspector(story.host, { pageFolder: join(folder, 'nowhere') })
    expect((await ask(bare, '/')).text).toContain('npm run build:inspector')
    await bare.close()
  })
})

describe('questions', () => {
  it('about scopes are answered for now and for then', async () => {
    const now = await askJson<ScopesAnswer>(open, '/api/scopes')
    expect(now).toMatchObject({ live: true, actions: true, scopes: [{ facts: { scope } }] })
    const { entries } = await askJson<EntriesAnswer>(open, `/api/entries?${query}&limit=4`)
    const then = await askJson<ScopesAnswer>(open, `/api/scopes?at=${entries.at(-1)?.event.at}`)
    expect(then.scopes[0]?.facts).toMatchObject({ scope, state: 'primaryPending', auxiliaryGate: 'closed' })
  })

  it('about a state are answered as the host itself knows it', async () => {
    const { context, position } = kernelOf(story.host).runners.get(scope)!
    const { snapshot } = await askJson<StateAnswer>(open, `/api/state?${query}&position=${position}`)
    expect(snapshot).toEqual(JSON.parse(JSON.stringify(encodeScope(context))))
  })

  it('about entries are answered page by page', async () => {
    const all = await askJson<EntriesAnswer>(open, `/api/entries?${query}&limit=10000`)
    expect(all.done).toBe(true)
    const first = await askJson<EntriesAnswer>(open, `/api/entries?${query}&limit=5`)
    expect(first).toMatchObject({ done: false, entries: all.entries.slice(0, 5) })
    const rest = await askJson<EntriesAnswer>(
      open,
      `/api/entries?${query}&after=${first.through}&limit=10000`,
    )
    expect([...first.entries, ...rest.entries]).toEqual(all.entries)
  })

  it('about a call are answered in the words of explain, until then', async () => {
    const answer = await askJson<object>(open, '/api/explain?call=turn-0')
    expect(answer).toEqual(await explainCall(kernelOf(story.host), 'turn-0'))
    const { entries } = await askJson<EntriesAnswer>(open, `/api/entries?${query}&limit=4`)
    const then = await askJson<{ standing: string; lines: string[] }>(
      open,
      `/api/explain?call=turn-0&at=${entries.at(-1)?.event.at}`,
    )
    expect(then).toMatchObject({ standing: 'waiting' })
    expect(then.lines[0]).toContain('auxiliaries in flight have to settle first')
  })

  it.each([
    ['/api/state', 400, 'scope is missing'],
    [`/api/state?${query}&position=-1`, 400, 'position must be a whole number of at least 0, got "-1"'],
    ['/api/entries?after=soon', 400, 'after must be a whole number'],
    ['/api/explain?call=nobody', 404, 'call nobody is not known here'],
    ['/api/none', 404, 'no such question'],
  ])('like %s are refused with a reason', async (path, status, reason) => {
    const answered = await ask(open, path)
    expect(answered.status).toBe(status)
    expect(answered.text).toContain(reason.replaceAll('"', '\\"'))
  })
})

it('never answers with more than ids, names and numbers', async () => {
  for (const path of [
    `/api/entries?${query}&limit=10000`,
    `/api/state?${query}`,
    '/api/scopes',
    `/api/history?${query}`,
  ])
    expect((await ask(open, path)).text).not.toContain('PLANTED')
})

describe('the feed', () => {
  it('tells what happens from now on, after a greeting', async () => {
    const stop = new AbortController()
    const response = await fetch(`${open.url}api/feed`, { signal: stop.signal })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const frames: Frame[] = []
    const reading = (async () => {
      let text = ''
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        const parts = text.split('\n\n')
        text = parts.pop() ?? ''
        for (const part of parts)
          if (part.startsWith('data: ')) frames.push(JSON.parse(part.slice(6)) as Frame)
      }
    })().catch(() => {})
    await tellStory(story, 2)
    const told = () => frames.flatMap((frame) => (frame.kind === 'entries' ? frame.entries : []))
    while (!told().some(({ event }) => event.type === 'call.settled' && event.callId === 'ingest-4-2'))
      await settle()
    expect(frames[0]).toEqual({ kind: 'hello', live: true, actions: true, host: expect.any(String) })
    const after = told()[0]!.position - 1
    const written = await askJson<EntriesAnswer>(open, `/api/entries?after=${after}&limit=10000`)
    expect(told()).toEqual(written.entries.slice(0, told().length))
    expect(open.inspector.viewers().count).toBe(1)
    expect(JSON.stringify(frames)).not.toContain('PLANTED')
    stop.abort()
    await reading
    while (open.inspector.viewers().count > 0) await settle()
  })
})

describe('actions', () => {
  const act = (to: AttachedInspector, path: string, body: object, headers: Record<string, string> = {}) =>
    ask(to, `/api/actions/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
      body: JSON.stringify(body),
    })
  const positionNow = () => kernelOf(story.host).runners.get(scope)!.position

  it('are refused where they are not allowed, whatever the token', async () => {
    const before = positionNow()
    expect((await act(locked, 'release-wait', { scope })).status).toBe(403)
    expect(positionNow()).toBe(before)
  })

  it.each([
    ['no token', { authorization: '' }, 401],
    ['a wrong token', { authorization: 'Bearer operator-token-9876543210' }, 401],
    ['a bare token', { authorization: token }, 401],
    ['the type of a form', { 'content-type': 'text/plain' }, 415],
    ['another origin', { origin: 'https://evil.example' }, 403],
    ['another name', { host: 'evil.example' }, 403],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
  ])('are refused with %s', async (_, headers, status) => {
    const before = positionNow()
    expect((await act(open, 'release-wait', { scope }, headers)).status).toBe(status)
    expect(positionNow()).toBe(before)
  })

  it('need a real token to be allowed at all', async () => {
    await expect(attachInspector(story.host, { allowActions: true })).rejects.toThrow(
      /at least 16 characters/,
    )
    await expect(attachInspector(story.host, { allowActions: true, token: 'short' })).rejects.toThrow(/got 5/)
  })

  it('release a wait, promote a call and change a policy', async () => {
    expect((await act(open, 'release-wait', { scope })).status).toBe(200)
    const runner = kernelOf(story.host).runners.get(scope)!
    runner.tell({ type: 'foreground.changed', active: true })
    const held = story.host.scope(scope).admit({ id: 'held', lane: 'auxiliary', inputTokens: 10 })
    expect((await act(open, 'promote', { scope, callId: 'held' })).status).toBe(200)
    const permit = await held
    expect((await act(open, 'promote', { scope, callId: 'held' })).status).toBe(404)
    permit.settle({ outcome: 'completed' })
    runner.tell({ type: 'foreground.changed', active: false })
    expect((await act(open, 'policy', { scope, policy: { capacity: 9 } })).status).toBe(200)
    const { context } = kernelOf(story.host).runners.get(scope)!
    expect(context.policy).toMatchObject({ capacity: 9, quietWindowMs: 500 })
  })

  it('say what is wrong with a policy, and with the rest', async () => {
    const wrong = await act(open, 'policy', { scope, policy: { capacity: 0 } })
    expect(wrong).toMatchObject({ status: 422 })
    expect(wrong.text).toContain('policy.capacity')
    expect((await act(open, 'policy', { scope })).status).toBe(400)
    expect((await act(open, 'release-wait', { scope: 'nowhere' })).status).toBe(404)
    expect((await act(open, 'explode', { scope })).status).toBe(404)
    const nobody = await act(open, 'promote', { scope, callId: 'nobody' })
    expect(nobody).toMatchObject({ status: 404 })
    expect(nobody.text).toContain('no auxiliary with the id nobody waits')
    expect((await act(open, 'policy', { scope, policy: { note: 'x'.repeat(70_000) } })).status).toBe(400)
  })
})

describe('a recorded file', () => {
  it('answers the same questions as the host that wrote it, beside it', async () => {
    const recorded = await inspectJournal(journal)
    const paths = [`/api/entries?${query}&limit=10000`, `/api/state?${query}`, '/api/explain?call=turn-0']
    for (const path of paths) {
      // The host answers only when the event is durable.
      const own = await askJson(open, path)
      expect(await askJson(recorded, path)).toEqual(own)
    }
    const { scopes, live, actions } = await askJson<ScopesAnswer>(recorded, '/api/scopes')
    expect({ live, actions }).toEqual({ live: false, actions: false })
    expect(scopes).toEqual((await askJson<ScopesAnswer>(open, '/api/scopes')).scopes)
    const { base } = await askJson<HistoryAnswer>(recorded, `/api/history?${query}&limit=10`)
    expect(base).toMatchObject({ position: 0 })
    await recorded.close()
  })

  it('that is not there is named', async () => {
    await expect(inspectJournal(join(folder, 'none.db'))).rejects.toThrow(/none\.db.*does not exist/)
  })
})
