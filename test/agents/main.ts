/** `npm run test:agents`: the real Claude Code and Codex, offline, through the gateway against scripted providers. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call } from '../../machines/index.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { openHost } from '../../src/host/host.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { installAgents } from './install.ts'
import { type Provider, startProvider } from './provider.ts'
import { messagesScript, responsesScript } from './scripts.ts'

const agentTimeoutMs = 3 * 60_000

interface Ended {
  readonly code: number | null
  readonly out: string
}

const run = (
  command: string,
  args: ReadonlyArray<string>,
  env: object,
  cwd: string,
  input = '',
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { PATH: process.env['PATH'], ...env },
      timeout: agentTimeoutMs,
    })
    let out = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        out += chunk.toString('utf8')
      })
    child.stdin.end(input)
    child.on('error', (error) => resolve({ code: null, out: String(error) }))
    child.on('close', (code) => resolve({ code, out }))
  })

interface Course extends Ended {
  readonly provider: Provider
  readonly calls: ReadonlyArray<Call>
}

/** One agent with a gateway and a provider of its own. */
const throughGateway = async (
  provider: Provider,
  wire: 'anthropic' | 'openai',
  agent: (gatewayUrl: string, home: string) => Promise<Ended>,
): Promise<Course> => {
  const home = mkdtempSync(join(tmpdir(), 'rightofway-agent-'))
  const host = await openHost({ journal: ':memory:' })
  const upstreams = [{ name: wire, baseUrl: provider.url, wire }]
  const gateway = await startGateway({
    host,
    secret: 'of the tests',
    config: parseConfig({ port: 0, journal: ':memory:', upstreams }),
  })
  const calls: Array<Call> = []
  kernelOf(host).observe(({ event }) => {
    if (event.type === 'call.submitted') calls.push(event.call)
  })
  try {
    return { ...(await agent(`${gateway.url}/${wire}`, home)), provider, calls }
  } finally {
    const closed = host.close({ graceMs: 1_000 })
    await gateway.close()
    await closed
    provider.close()
    rmSync(home, { recursive: true, force: true })
  }
}

const claudeCode = async (commands: string): Promise<Course> =>
  throughGateway(
    await startProvider((path) => path.endsWith('/messages'), messagesScript()),
    'anthropic',
    (url, home) =>
      run(
        join(commands, 'claude'),
        ['-p', 'say hello using a subagent', '--allowedTools', 'Task,Agent'],
        {
          HOME: home,
          ANTHROPIC_API_KEY: 'sk-ant-x',
          ANTHROPIC_BASE_URL: url,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        },
        home,
      ),
  )

const codex = async (commands: string): Promise<Course> =>
  throughGateway(
    await startProvider((path) => path.endsWith('/responses'), responsesScript()),
    'openai',
    async (url, home) => {
      const work = join(home, 'work')
      mkdirSync(work)
      const env = { HOME: home, CODEX_HOME: home }
      const command = join(commands, 'codex')
      await run('git', ['init', '-q'], env, work)
      await run(command, ['login', '--with-api-key'], env, work, 'sk-x')
      const base = ['-c', `openai_base_url="${url}/v1"`, '-m', 'gpt-5.4']
      return run(command, ['exec', '--skip-git-repo-check', ...base, 'say hello'], env, work)
    },
  )

const classesOf = (calls: ReadonlyArray<Call>): ReadonlyArray<string> =>
  calls.map(({ priorityClass }) => priorityClass).sort()

const answered = ({ calls }: Provider) => calls.filter(({ status }) => status === 200)

const checks: ReadonlyArray<readonly [name: string, check: (claude: Course, codexCourse: Course) => void]> = [
  [
    'Claude Code: the subagent and the tool loop end well',
    ({ code, out, provider }) => {
      equal(code, 0, out)
      match(out, /Hello\./)
      ok(answered(provider).some(({ body }) => JSON.stringify(body['messages']).includes('"tool_result"')))
    },
  ],
  [
    'Claude Code: its 429 stays hidden',
    ({ provider }) => {
      equal(provider.calls[0]?.status, 429)
      for (const { headers } of provider.calls) equal(headers['x-stainless-retry-count'] ?? '0', '0')
    },
  ],
  [
    "Claude Code: a subagent's call is told from the person's, in the turn of one session",
    ({ provider, calls }) => {
      const ofAgents = answered(provider).map(
        ({ headers }) => headers['x-claude-code-agent-id'] !== undefined,
      )
      ok(ofAgents.includes(true) && ofAgents.includes(false))
      deepEqual(
        classesOf(calls),
        ofAgents.map((isAgent) => (isAgent ? 'orchestration' : 'interactive')).sort(),
      )
      equal(new Set(calls.map(({ turnId }) => turnId)).size, 1)
      equal(new Set(calls.map(({ principal }) => principal)).size, 1)
      ok(calls[0]?.principal !== 'default')
    },
  ],
  [
    'Codex: the tool loop ends well',
    (_, { code, out, provider }) => {
      equal(code, 0, out)
      match(out, /Hello there\./)
      ok(
        answered(provider).some(({ body }) => JSON.stringify(body['input']).includes('function_call_output')),
      )
    },
  ],
  [
    'Codex: the start over WebSocket costs no retry, and its 429 stays hidden',
    (_, { out, provider }) => {
      ok(!/falling back|reconnecting|retrying/i.test(out), out)
      ok(provider.upgrades() <= 1, `${provider.upgrades()} handshakes`)
      equal(provider.calls.filter(({ status }) => status === 429).length, 1)
    },
  ],
  [
    'Codex: its turn is interactive, and its session the principal',
    (_, { calls }) => {
      deepEqual([...new Set(classesOf(calls))], ['interactive'])
      ok(calls[0]?.principal !== 'default')
    },
  ],
]

const commands = installAgents()
if (commands === null) console.log('left out: npm could not install the agents')
else {
  const claude = await claudeCode(commands)
  const codexCourse = await codex(commands)
  for (const [name, check] of checks) {
    try {
      check(claude, codexCourse)
      console.log(`ok      ${name}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAILED  ${name}\n        ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}
