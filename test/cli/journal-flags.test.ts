/** The flags that name a journal: mistyped ones create nothing, and a config file may name it for every verb. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folder, Program, run } from './program.ts'

const verbs: ReadonlyArray<ReadonlyArray<string>> = [
  ['explain', 'c'],
  ['status'],
  ['release', 'a/b/c'],
  ['journal', 'check'],
  ['journal', 'repair'],
  ['journal', 'backup', 'copy.db'],
  ['journal', 'scopes'],
  ['journal', 'compact'],
  ['journal', 'migrate'],
  ['journal', 'export', '--out', 'lines'],
  ['token', 'revoke', 'x'],
]

describe.each(verbs)('%s %s', (...verb) => {
  const words = verb.filter((word) => word !== undefined) as ReadonlyArray<string>

  it('with a mistyped journal says so in one line and creates nothing', async () => {
    const at = folder()
    const { code, err } = await run([...words, '--journal', 'lnaes.db'], at)
    expect([code, readdirSync(at)]).toEqual([1, []])
    expect(err).toMatch(/^rightofway: [^\n]+\n$/)
    writeFileSync(join(at, 'c.json'), '{"journal":"named-in-config.db"}')
    const configured = await run([...words, '--config', 'c.json'], at)
    expect([configured.code, readdirSync(at)]).toEqual([1, ['c.json']])
    if (words[0] !== 'token') expect(configured.err).toContain('named-in-config.db')
  })
})

describe('release', () => {
  it('from another folder, or with another journal, names the journal as the cause', async () => {
    const at = folder()
    const serve = new Program(['serve', '--port', '0', '--journal', 'own.db', '--json'], at)
    const [, url] = await serve.says(/"url":"([^"]+)"/)
    const release = (cwd: string, ...more: ReadonlyArray<string>) =>
      run(['release', 'emulator-anthropic/x/y', '--url', url as string, ...more], cwd)
    const elsewhere = await release(folder())
    expect(elsewhere.err).toMatch(
      /^rightofway: no secret stands beside the journal \/.*lanes\.db, so no gateway serves it; name the journal of that gateway with --journal or --config, .*\n$/,
    )
    const other = folder()
    writeFileSync(join(other, 'other.db.secret'), 'ab'.repeat(32))
    const wrong = await release(other, '--journal', 'other.db')
    expect(wrong.err).toMatch(
      /^rightofway: the gateway at http:\S+ has another journal than \/.*other\.db; name the journal .*\n$/,
    )
    const right = await release(at, '--journal', 'own.db')
    expect(right.err).toMatch(
      /^rightofway: no scope is named "emulator-anthropic\/x\/y"; there are none yet\n$/,
    )
    serve.child.kill('SIGTERM')
    await serve.finished
  })
})

describe('serve', () => {
  it('logs refusals in lines of text or JSON, warns of patterns that fit nothing, and takes policies again on SIGHUP', async () => {
    const at = folder()
    const config = (policies: object) =>
      writeFileSync(
        join(at, 'c.json'),
        JSON.stringify({
          port: 0,
          journal: ':memory:',
          policies,
          emulator: {
            rules: [{ rule: 'concurrency', maxConcurrent: 1 }],
            firstTokenMs: 0,
            perOutputTokenMs: 0,
          },
        }),
      )
    config({ 'anthropc/*': {} })
    const serve = new Program(['serve', '--config', 'c.json', '--json'], at)
    const [, url] = await serve.says(/"url":"([^"]+)"/)
    const ask = (fault: string) =>
      fetch(`${url}/emulator/anthropic/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': 'sk-ant-secret-secret',
          'x-emulator-fault': fault,
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          model: 'emulator-small',
          max_tokens: 4,
          messages: [{ role: 'user', content: 'private words' }],
        }),
      })
    await (await ask('credits')).text()
    config({ 'emulator-anthropic/*': { capacity: 5 } })
    serve.child.kill('SIGHUP')
    for (let looks = 0; looks < 200; looks += 1) {
      const lanes = (await (await fetch(`${url}/lanes`)).json()) as {
        scopes: ReadonlyArray<{ capacity: number }>
      }
      if (lanes.scopes[0]?.capacity === 5) break
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
    serve.child.kill('SIGTERM')
    const { out, err } = await serve.finished
    expect(JSON.parse(out)).toMatchObject({ event: 'listening', journal: ':memory:' })
    const lines = err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['configuration', 'policies read again', 'policy changed']),
    )
    expect(lines[0]).toMatchObject({
      level: 'warn',
      warning: expect.stringContaining('policies["anthropc/*"] fits no scope'),
    })
    expect(err).not.toMatch(/secret|private/)
  })

  it('is quiet when it is told to, and ends well', async () => {
    const at = folder()
    const serve = new Program(['serve', '--port', '0', '--quiet', '--journal', 'own.db'], at)
    for (let looks = 0; looks < 400 && !existsSync(join(at, 'own.db.secret')); looks += 1)
      await new Promise((resolve) => setTimeout(resolve, 25))
    await new Promise((resolve) => setTimeout(resolve, 500))
    serve.child.kill('SIGTERM')
    expect(await serve.finished).toEqual({ code: 0, out: '', err: '' })
  })
})

describe('config print', () => {
  it('shows each setting with its source, warnings, and every value of a scope', async () => {
    const at = folder()
    const policies = { 'anthropic/*': { preset: 'adaptive', capacity: 8 }, 'anthropc/*': {} }
    writeFileSync(join(at, 'c.json'), JSON.stringify({ port: 7_000, policies }))
    const all = await run(['config', 'print', '--config', 'c.json'], at)
    expect(all.out).toMatch(/^port +7000 {2}\(c\.json\)$/m)
    expect(all.out).toMatch(/^host +"127\.0\.0\.1" {2}\(default\)$/m)
    expect(all.out).toMatch(
      /^policies\["anthropic\/\*"\] +\{"preset":"adaptive","capacity":8\} {2}\(c\.json\)$/m,
    )
    expect(all.out).toMatch(/^warning: policies\["anthropc\/\*"\] fits no scope: .*$/m)
    const one = await run(['config', 'print', '--config', 'c.json', '--scope', 'anthropic/k/m'], at)
    expect(one.out).toMatch(/^capacity +8 {2}\(policies\["anthropic\/\*"\]\)$/m)
    expect(one.out).toMatch(/^hold +"untilAccepted" {2}\(preset adaptive\)$/m)
    const json = await run(['config', 'print', '--config', 'c.json', '--scope', 'x', '--json'], at)
    expect(JSON.parse(json.out)).toMatchObject({ scope: 'x', preset: 'adaptive', pattern: null, values: {} })
  })
})

describe('simulate', () => {
  it('takes a shipped scenario by its name, and names them all for a wrong one', async () => {
    const at = folder()
    const wrong = await run(['simulate', 'seed-incidnet'], at)
    expect(wrong.err).toMatch(
      /^rightofway: no scenario is named "seed-incidnet", and no file; there are anthropic-tier, .*seed-incident, .*\n$/,
    )
    const { code, out } = await run(['simulate', 'seed-incident', '--policies', 'rightofway', '--json'], at)
    expect([code, JSON.parse(out).scenario ?? JSON.parse(out).name]).toEqual([0, expect.anything()])
  })
})

describe('--json', () => {
  it.each([
    [['demo', '--minutes', '5']],
    [['token', 'add', '--principal', 'a', '--journal', 'own.db']],
    [['config', 'print']],
    [['simulate', 'light-traffic', '--policies', 'rightofway']],
  ])('of %s prints JSON and nothing else', async (args) => {
    const { code, out } = await run([...args, '--json'], folder())
    expect(code).toBe(0)
    const values = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(values.length).toBeGreaterThan(0)
  })
})
