/** The verbs as a user types them: journals and configs that are named wrongly, JSON everywhere, the log of `serve`. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verbs } from '../../src/cli/verbs.ts'
import { openHost } from '../../src/index.ts'
import { folder, Program, run } from './program.ts'

interface Documented {
  readonly buildHelpDoc: (path: ReadonlyArray<string>) => {
    readonly flags: ReadonlyArray<{ readonly name: string }>
  }
}

const mistyped: ReadonlyArray<ReadonlyArray<string>> = [
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

describe.each(mistyped)('%s %s', (...verb) => {
  const words = verb.filter((word) => word !== undefined) as ReadonlyArray<string>

  it('with a mistyped journal, in its config, says so in one line and creates nothing', async () => {
    const at = folder()
    writeFileSync(join(at, 'c.json'), '{"journal":"lnaes.db"}')
    const { code, err } = await run([...words, '--config', 'c.json'], at)
    expect([code, readdirSync(at)]).toEqual([1, ['c.json']])
    expect(err).toMatch(/^rightofway: [^\n]+\n$/)
    if (words[0] !== 'token') expect(err).toContain('lnaes.db')
  })
})

it('a mistyped --journal creates nothing either, also where a config names another', async () => {
  const at = folder()
  writeFileSync(join(at, 'c.json'), '{"journal":"lanes.db"}')
  for (const verb of [
    ['explain', 'c'],
    ['release', 'a/b/c'],
  ]) {
    const { code, err } = await run([...verb, '--config', 'c.json', '--journal', 'lnaes.db'], at)
    expect([code, readdirSync(at)]).toEqual([1, ['c.json']])
    expect(err).toContain('lnaes.db')
  }
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
    const config = (policies: object, more: object = {}) =>
      writeFileSync(
        join(at, 'c.json'),
        JSON.stringify({
          port: 0,
          journal: ':memory:',
          policies,
          ...more,
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
          'x-rightofway-deadline-ms': '500',
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          model: 'emulator-small',
          max_tokens: 4,
          messages: [{ role: 'user', content: 'private words' }],
        }),
      })
    await (await ask('spend-cap')).text()
    await (await fetch(`${url}/nowhere?key=sk-ant-secret-secret`)).text()
    config({ 'emulator-anthropic/*': { capacity: 5 } }, { scopesLimit: 9 })
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
      expect.arrayContaining([
        ...['configuration', 'refused by the provider', 'held', 'refused'],
        ...['refused at the door', 'policies read again', 'policy changed'],
      ]),
    )
    expect(lines[0]).toMatchObject({
      level: 'warn',
      warning: expect.stringContaining('policies["anthropc/*"] fits no scope'),
    })
    expect(lines.find(({ event }) => event === 'not read again')).toMatchObject({ fields: 'scopesLimit' })
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

describe('status', () => {
  it('shows the policy in force, with sources where the config is named', async () => {
    const at = folder()
    const policies = { 'anthropic/*': { preset: 'adaptive', capacity: 8 } }
    writeFileSync(join(at, 'c.json'), JSON.stringify({ journal: 'own.db', policies }))
    const host = await openHost({ journal: join(at, 'own.db') })
    const scope = host.scope('anthropic/k/m', { preset: 'adaptive', capacity: 8, patienceMs: 7 })
    await scope.run({ id: 'a' }, () => 1)
    await host.close()
    const plain = await run(['status', '--journal', 'own.db'], at)
    expect(plain.out).toMatch(/^ {2}policy {5}the default, but capacity 8, .*patienceMs 7/m)
    const sourced = await run(['status', '--config', 'c.json'], at)
    expect(sourced.out).toMatch(
      /^ {2}policy {5}preset adaptive, capacity 8 \(policies\["anthropic\/\*"\]\), patienceMs 7 \(changed while it runs\)$/m,
    )
    const json = await run(['status', '--config', 'c.json', '--json'], at)
    expect(JSON.parse(json.out)).toMatchObject({ policy: { preset: 'adaptive', pattern: 'anthropic/*' } })
  })
})

describe('--json', () => {
  it('is taken by every verb', () => {
    type Verb = (typeof verbs)[number]
    const leaves = (verb: Verb, path: string): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
      const inner = verb.subcommands.flatMap(({ commands }) => commands) as unknown as ReadonlyArray<Verb>
      const name = `${path} ${verb.name}`.trim()
      if (inner.length > 0) return inner.flatMap((each) => leaves(each, name))
      const { flags } = (verb as unknown as Documented).buildHelpDoc([name])
      return [[name, flags.map((flag) => flag.name)]]
    }
    const found = verbs.flatMap((verb) => leaves(verb, ''))
    expect(found.map(([name]) => name)).toEqual(
      expect.arrayContaining(['serve', 'journal export', 'config print']),
    )
    expect(found.filter(([, flags]) => !flags.includes('json'))).toEqual([])
  })

  it.each([
    [['demo', '--minutes', '5']],
    [['token', 'add', '--principal', 'a', '--journal', 'own.db']],
    [['config', 'print']],
    [['config', 'check']],
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
