/** `config check --explain`: what it says of a request is what the gateway makes of it. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { checked } from '../../../src/cli/checking.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { explainRequest, readRequest } from '../../../src/gateway/routing/explain.ts'
import { answerJson, post, secret, startSetting, startUpstream } from '../setting.ts'
import { claudeBody, claudeCode, codex, type Headers } from './agents.ts'

const written = (path: string, headers: Headers, body: string, end = '\r\n'): Buffer =>
  Buffer.from(
    [
      `POST ${path} HTTP/1.1`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      '',
      body,
    ].join(end),
  )

it.each<[string, string, string, Headers, string]>([
  ['claude', '\r\n', '/v1/messages', claudeCode({ 'x-claude-code-agent-id': 'a' }), claudeBody('hi')],
  ['codex', '\n', '/v1/responses', codex(), '{"model":"gpt-5.4","input":"hi"}'],
  ['an unknown one', '\n', '/v1/dream?x=1', { 'x-rightofway-lane': 'auxiliary' }, '{}'],
])(
  'says the scope, class and principal that the gateway gives to %s',
  async (_, end, path, headers, body) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, { 'x-api-key': '', ...headers }, { path, body })
    answerJson(await upstream.next())
    await (await answer).text()
    const config = parseConfig({
      upstreams: [{ name: 'scripted', baseUrl: upstream.url, wire: 'anthropic' }],
    })
    const { call } = explainRequest(
      config,
      readRequest(written(`/scripted${path}`, headers, body, end)),
      secret,
    )
    expect(setting.host.status().map(({ scope }) => scope)).toEqual([call?.scope])
  },
)

const file = (text: string | Buffer) => {
  const at = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(at, { recursive: true, force: true }))
  writeFileSync(join(at, 'request.http'), text)
  writeFileSync(join(at, 'c.json'), JSON.stringify({ journal: join(at, 'none.db') }))
  const request = { configPath: join(at, 'c.json'), explain: join(at, 'request.http') }
  return (json = false) => checked({ ...request, json })
}

it('names the row of each table and its reason, and of the rows before it why they do not fit', () => {
  const shown = file(
    written('/anthropic/v1/messages', claudeCode({ 'x-claude-code-agent-id': 'a' }), claudeBody('hi')),
  )
  expect(shown()).toMatch(/^route +generating: row \/messages \(anthropic\)$/m)
  expect(shown()).toMatch(
    /^classify +row claude-code\/subagent, because .*header:x-claude-code-agent-id = \*$/m,
  )
  expect(shown()).toMatch(/^ +not claude-code\/background: needs header:x-app = cli-bg$/m)
  expect(shown()).toMatch(
    /^scope +anthropic\/[0-9a-f]{16}\/claude-opus-4 \(model by model-families\/opus-4\)$/m,
  )
  expect(shown()).toMatch(/the fingerprint in this name is not the one/)
  expect(JSON.parse(shown(true))).toMatchObject({
    hasSecret: false,
    call: { priorityClass: 'orchestration' },
  })
  expect(file('GET /openai/v1/models\n\n')()).toMatch(
    /bookkeeping: row GET of any path .*\n.*without admission/,
  )
  expect(file('POST /openai/v1/batches\n\n{}')()).toMatch(/bookkeeping: row \/batches /)
})

it.each([
  ['', 'request line'],
  ['POST /nowhere/v1 HTTP/1.1\n\n', 'path'],
  ['POST /openai/v1/responses HTTP/1.1\nno header\n\n', 'header'],
  ['POST /openai/v1/responses HTTP/1.1\nx-rightofway-lane: third\n\n{}', 'x-rightofway-lane'],
])('%j is refused: %s', (text, field) => {
  expect(() => file(text)()).toThrow(field)
})
