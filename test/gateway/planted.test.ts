/** Keys, tokens, prompts, completions and header values are planted in a running gateway, and looked for in all that it says or writes. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addToken } from '../../src/gateway/entrance/tokens.ts'
import { folder, Program, run } from '../cli/program.ts'
import { answerStatus, event, overloaded, startUpstream } from './setting.ts'
import { connect, startProvider } from './sockets/provider.ts'

const planted = {
  key: 'planted-key-1',
  prompt: 'planted-prompt-2',
  completion: 'planted-completion-3',
  field: 'planted-field-4',
  reply: 'planted-reply-5',
  refusal: 'planted-refusal-6',
}

const filesIn = (at: string): ReadonlyArray<string> =>
  readdirSync(at, { recursive: true })
    .map((name) => join(at, String(name)))
    .filter((path) => statSync(path).isFile() && !path.endsWith('gateway.json'))

/** A refused response, one that is cut short, and a message that is none. */
const overSocket = async (
  base: string,
  own: Readonly<Record<string, string>>,
  { connection }: Awaited<ReturnType<typeof startProvider>>,
): Promise<void> => {
  const fields = { ...own, authorization: `Bearer ${planted.key}`, 'x-custom': planted.field }
  const client = await connect(base, '/v1/responses', fields)
  const provider = await connection()
  const closed = new Promise((resolve) => client.socket.once('close', resolve))
  client.socket.send(`{"type":"response.create","model":7,"input":"${planted.prompt}"}`)
  client.say({ type: 'response.create', model: 'm', event_id: 'e1', input: planted.prompt })
  while (!(await provider.next()).includes('e1'));
  const error = { code: 'rate_limit_exceeded', message: `Rate limit reached ${planted.refusal}` }
  provider.say({ type: 'error', status: 429, error })
  await provider.next()
  provider.say({ type: 'response.created', response: { id: 'r1' } })
  provider.say({ type: 'response.output_text.delta', delta: planted.completion })
  while (!(await client.next()).includes(planted.completion));
  provider.socket.close(1_011, planted.reply)
  await closed
}

it('none of them is found', async () => {
  const at = folder()
  const upstream = await startUpstream()
  const spoken = await startProvider()
  const upstreams = [
    { name: 'scripted', baseUrl: upstream.url, wire: 'anthropic' },
    { name: 'spoken', baseUrl: spoken.upstream.url, wire: 'openai' },
  ]
  const policies = { '*': { pacingBaseMs: 1, pacingMaxMs: 5 } }
  writeFileSync(join(at, 'gateway.json'), JSON.stringify({ upstreams, policies }))
  const token = addToken(join(at, 'lanes.db.tokens'), { principal: 'p', classes: null, lanes: null }, 1)
  const secrets = { ...planted, token: token.split('_')[2] as string }
  const program = new Program(
    ['serve', '--port', '0', '--config', 'gateway.json', '--journal', 'lanes.db'],
    at,
  )
  const [, url] = await program.says(/listens on (http:\S+)/)
  const own = { 'x-rightofway-token': token }
  const said: Array<string> = []
  const ask = (more: Record<string, string> = {}) =>
    fetch(`${url}/scripted/v1/messages`, {
      method: 'POST',
      headers: {
        ...own,
        'x-api-key': planted.key,
        'x-custom': planted.field,
        'idempotency-key': 'call-1',
        ...more,
      },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: planted.prompt }] }),
    })
  const answer = ask()
  answerStatus(await upstream.next(), 529, { ...overloaded, message: `Overloaded ${planted.refusal}` })
  const { response } = await upstream.next()
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-reply': planted.reply })
  response.write(event('message_start', { message: { usage: { input_tokens: 3 } } }))
  // Cut short: failures say most.
  response.end(event('content_block_delta', { delta: { type: 'text_delta', text: planted.completion } }))
  expect(await (await answer).text()).toContain(planted.completion)
  await overSocket(`${url}/spoken`, own, spoken)
  said.push(await (await ask({ 'x-rightofway-lane': 'x' })).text())
  said.push(await (await ask({ 'x-rightofway-token': 'row_wrong' })).text())
  for (const path of [
    'lanes',
    'healthz',
    'nowhere',
    'inspector/api/scopes',
    'inspector/api/entries',
    'inspector/api/explain?call=call-1',
  ])
    said.push(await (await fetch(`${url}/${path}`, { headers: own })).text())
  const runs = [
    ['explain', 'call-1', '--json'],
    ['journal', 'export'],
    ['journal', 'scopes'],
    ['token', 'list'],
  ]
  for (const args of runs) {
    const { code, out, err } = await run([...args, '--journal', 'lanes.db'], at)
    expect([args, code]).toEqual([args, 0])
    said.push(out, err)
  }
  program.child.kill('SIGTERM')
  const { out, err } = await program.finished
  said.push(out, err, ...filesIn(at).map((path) => readFileSync(path, 'latin1')))
  expect(said.join('').length).toBeGreaterThan(5_000)
  expect(said.join('')).toContain('call-1')
  for (const [name, secret] of Object.entries(secrets)) {
    for (const text of said) expect([name, text.includes(secret)]).toEqual([name, false])
  }
})
