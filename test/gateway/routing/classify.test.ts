/** What calls of agents are, without one header of the gateway's own. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { withClassified, within } from '../../../src/gateway/entrance/rights.ts'
import type { Token } from '../../../src/gateway/entrance/tokens.ts'
import { makeRouting } from '../../../src/gateway/routing/routing.ts'
import type { ClassifyInput } from '../../../src/gateway/routing/schema.ts'
import { Subject } from '../../../src/gateway/routing/subject.ts'
import { answerJson, post, startSetting, startUpstream } from '../setting.ts'
import { claudeBody, claudeCode, codex, type Headers } from './agents.ts'

const classified = (headers: Headers, body = '{}', table?: ClassifyInput, path = '/v1/messages') => {
  const { classifier } = makeRouting(table === undefined ? {} : { classify: table })
  const upstream = { name: 'anthropic', provider: 'anthropic' }
  const model = 'claude-opus-4-6'
  const request = { upstream, path, query: null, headers, model, body: Buffer.from(body) }
  return classifier.classify(new Subject(request, 'secret'))
}

describe('the calls of agents', () => {
  it.each<[string, Headers, string, string | null]>([
    ["a person's call", claudeCode(), 'interactive', 'claude-code/person'],
    ["a subagent's", claudeCode({ 'x-claude-code-agent-id': 'a1' }), 'orchestration', 'claude-code/subagent'],
    ["a subagent's subagent's", claudeCode({ 'x-claude-code-parent-agent-id': 'a1' }), 'orchestration', null],
    ['a call in the background', claudeCode({ 'x-app': 'cli-bg' }), 'background_ingestion', null],
    ['a compaction', claudeCode({ 'x-claude-code-compaction': 'true' }), 'background_ingestion', null],
    ['no compaction', claudeCode({ 'x-claude-code-compaction': 'false' }), 'interactive', null],
    [
      'a class of its own',
      claudeCode({ 'x-claude-code-request-class': 'background' }),
      'background_ingestion',
      null,
    ],
    ["a person's turn of Codex", codex(), 'interactive', 'codex/person'],
    ["its subagent's", codex({ agent_name: '/root/explorer' }), 'orchestration', 'codex/subagent'],
    ["its subagent's, by thread", codex({ thread_source: 'subagent' }), 'orchestration', null],
    ["its subagent's, by header", codex({}, { 'x-openai-subagent': 'review' }), 'orchestration', null],
    ['its compaction', codex({ request_kind: 'compaction' }), 'background_ingestion', 'codex/background'],
    ['its memory', codex({}, { 'x-openai-subagent': 'memory_consolidation' }), 'background_ingestion', null],
  ])('%s', (_, headers, priorityClass, row) => {
    const found = classified(headers)
    expect(found?.priorityClass).toBe(priorityClass)
    if (row !== null) expect(found?.row).toBe(row)
  })

  it('a subagent is of the same principal and the same turn; nothing else of the header is taken', () => {
    for (const [person, subagent] of [
      [claudeCode(), claudeCode({ 'x-claude-code-agent-id': 'a1' })],
      [codex(), codex({ agent_name: '/root/x', turn_id: 'turn-of-the-subagent', thread_id: 't2' })],
    ] as const) {
      const [one, other] = [classified(person), classified(subagent)]
      expect(one?.turnId).toMatch(/^(?:claude-code|codex) [0-9a-f-]+/)
      expect([other?.principal, other?.turnId]).toEqual([one?.principal, one?.turnId])
      expect(JSON.stringify([one, other])).not.toContain('private')
    }
    expect(classified(claudeCode({}, 'another'))?.principal).not.toBe(classified(claudeCode())?.principal)
  })

  it('any other client is left as it is, and a broken description says nothing', () => {
    expect(classified({ 'user-agent': 'openai-python/2', 'x-app': 'cli-bg' })).toBe(null)
    expect(classified({ 'x-codex-turn-metadata': '{"session_id":' })).toBe(null)
    expect(classified({ 'x-codex-turn-metadata': `{"session_id":"${'x'.repeat(20_000)}"}` })).toBe(null)
    expect(classified(claudeCode(), '{}', [])).toBe(null)
    expect(classified({}, '{}', [{ preset: 'small-fast-model' }])).toBe(null)
  })

  it('a name that cannot be one is told by its fingerprint', () => {
    const long = classified(claudeCode({}, 's'.repeat(300)))
    expect(long?.principal).toMatch(/^[0-9a-f]{16}$/)
    expect(classified(claudeCode({}, 'é'))?.principal).toMatch(/^[0-9a-f]{16}$/)
  })
})

describe('the table', () => {
  it('has values by header, body, claim, path, model and key, and the first row counts', () => {
    const claims = Buffer.from('{"sub":"user-7","org":{"id":"o1"}}').toString('base64url')
    const headers = { 'x-kind': 'Batch-1', authorization: `Bearer h.${claims}.s` }
    const body = '{"metadata":{"user_id":"{\\"session_id\\":\\"s9\\"}","n":4},"model":"x"}'
    const table: ClassifyInput = [
      { when: { header: { 'x-kind': null } }, class: 'interactive' },
      { when: { model: 'gpt-*' }, class: 'interactive' },
      { when: { body: { '/metadata/n': '5' } }, class: 'interactive' },
      {
        name: 'mine',
        when: {
          header: { 'x-kind': 'batch*' },
          body: { '/metadata/n': '4' },
          path: '/v1/*',
          upstream: 'anthropic',
        },
        class: 'background_ingestion',
        principal: '{jwt:sub}@{jwt:/org/id}',
        turn: '{header:x-none|body:/metadata/user_id#/session_id}',
        call: '{header:x-none}',
      },
      { class: 'interactive' },
    ]
    expect(classified(headers, body, table)).toEqual({
      row: 'classify.mine',
      priorityClass: 'background_ingestion',
      lane: null,
      principal: 'user-7@o1',
      turnId: 's9',
      id: null,
    })
  })

  it.each<[object, string]>([
    [{ when: { header: { 'x-a#b': '*' } } }, 'config.classify.0.when.header.x-a#b'],
    [{ when: { body: { metadata: '*' } } }, 'config.classify.0.when.body.metadata'],
    [{ principal: '{cookie:a}' }, 'config.classify.0.principal'],
    [{ class: 'urgent' }, 'config.classify.0'],
    [{ preset: 'nobody' }, 'config.classify.0'],
    [{ klass: 'interactive' }, 'config.classify.0'],
  ])('%j is refused, with its field', (row, field) => {
    expect(() => parseConfig({ classify: [row] })).toThrow(field)
  })
})

const nothing = {
  id: null,
  priorityClass: null,
  unknownPriority: false,
  principal: null,
  lane: null,
  turnId: null,
  inputTokens: null,
  deadlineMs: null,
  sdkRetries: 0,
}

describe('what a client says itself', () => {
  const row = classified(claudeCode())
  const token: Token = {
    id: '0'.repeat(12),
    digest: createHash('sha256').update('t').digest('hex'),
    principal: 'team',
    classes: null,
    lanes: null,
    createdAt: 0,
  }

  it('stands above what a row says, field by field; a class and a lane go together', () => {
    const said = { ...nothing, priorityClass: 'hydration' as const, principal: 'me' }
    expect(withClassified(said, row)).toMatchObject({
      priorityClass: 'hydration',
      lane: null,
      principal: 'me',
      turnId: row?.turnId,
    })
    expect(withClassified({ ...nothing, lane: 'auxiliary' }, row)).toMatchObject({
      priorityClass: null,
      lane: 'auxiliary',
    })
  })

  it('is bound by its token, and so is a row', () => {
    expect(within(nothing, token, row)).toMatchObject({ principal: 'team', priorityClass: 'interactive' })
    const background = { ...token, classes: ['background_ingestion'] } as const
    expect(within(nothing, background, row)).toMatchObject({
      priorityClass: 'background_ingestion',
      turnId: null,
    })
    expect(within(nothing, { ...token, lanes: ['auxiliary'] }, row)).toMatchObject({
      priorityClass: null,
      lane: 'auxiliary',
    })
  })
})

it("a person's turn of 181,000 tokens goes before five subagents and a compaction loop of the same key", async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, policy: { capacity: 1, reserve: 0 } })
  const said: Array<string> = []
  const saying = (name: string): string => claudeBody(`<${name}>`)
  const running = ['first'].map((name) =>
    post(setting.scripted, claudeCode({ 'x-claude-code-agent-id': name }), { body: saying(name) }),
  )
  const begun = [await upstream.next()]
  const compaction = claudeCode({ 'x-claude-code-compaction': 'true' })
  const crowd = [
    ...['loop-1', 'loop-2'].map((name) => ({ name, headers: compaction })),
    ...['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => ({
      name,
      headers: claudeCode({ 'x-claude-code-agent-id': name }),
    })),
  ]
  const others: Array<Promise<Response>> = []
  for (const { name, headers } of crowd) {
    others.push(post(setting.scripted, headers, { body: saying(name) }))
    await vi.waitFor(() => expect(setting.waiting()).toBe(others.length))
  }
  const turn = claudeBody(`<turn> ${'word '.repeat(145_000)}`)
  const answer = post(setting.scripted, claudeCode(), { body: turn })
  await vi.waitFor(() => expect(setting.waiting()).toBe(8))
  for (const arrival of begun) answerJson(arrival)
  for (let count = 0; count < 8; count += 1) {
    const arrival = await upstream.next()
    said.push(/<([\w-]+)>/.exec(arrival.body)?.[1] ?? '')
    answerJson(arrival)
  }
  expect((await answer).status).toBe(200)
  for (const other of [...running, ...others]) expect((await other).status).toBe(200)
  expect(said[0]).toBe('turn')
  expect(said.slice(-2).toSorted()).toEqual(['loop-1', 'loop-2'])
  expect(setting.host.status().length).toBe(1)
})

it('nothing of the turn of Codex but its ids is written', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const journal = join(folder, 'lanes.db')
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, wire: 'openai', journal })
  const answer = post(setting.scripted, codex(), {
    path: '/v1/responses',
    body: '{"model":"gpt-5.4","input":"hi"}',
  })
  answerJson(await upstream.next())
  await (await answer).text()
  const { readFileSync, readdirSync } = await import('node:fs')
  const written = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('')
  expect(written).toContain('codex 019e4c1a')
  expect(written).not.toContain('private-folder')
})
