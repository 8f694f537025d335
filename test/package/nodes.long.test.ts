/** The packed package under each Node that it names: its journal keeps its promises, and the quickstart runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder, pack, plain, project, type Ran, registryAnswers, remove, root, run } from './packed.ts'

const nodes = ['22.19.0', '22', '24.0.2', '24', '26'] as const
const oldNode = '20.19.0'
const isOnline = await registryAnswers()
const folder = emptyFolder()
const installed = join(folder, 'project')
const alias = (version: string): string => `node-${version.replaceAll('.', '-')}`
const node = (version: string): string => join(folder, 'nodes', 'node_modules', alias(version), 'bin', 'node')

const sdk = (): string => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return `@anthropic-ai/sdk@${devDependencies['@anthropic-ai/sdk']}`
}

const example = (from: string, to: string): void =>
  writeFileSync(join(installed, to), plain(readFileSync(join(root, from), 'utf8')))

const story = /still waits .*\nthe person is answered\nthe memories are merged\n2 calls completed\n$/

beforeAll(async () => {
  if (!isOnline) return
  await project(
    join(folder, 'nodes'),
    [...nodes, oldNode].map((version) => `${alias(version)}@npm:node@${version}`),
  )
  await project(installed, [await pack(folder), sdk()])
  example('test/examples/quickstart.ts', 'quickstart.js')
  example('examples/first-call.ts', 'first-call.js')
  writeFileSync(
    join(installed, 'against-emulator.js'),
    `import { startEmulator } from 'rightofway/emulator'
import { quickstart } from './quickstart.js'
const emulator = await startEmulator({ rules: [{ rule: 'token-bucket', inputTokensPerMinute: 210_000 }] })
console.log((await quickstart('sk-example', emulator.url)).length > 0)
await emulator.close()
`,
  )
  writeFileSync(
    join(installed, 'permit.js'),
    `import { openHost } from 'rightofway'
const host = await openHost({ journal: process.argv[2] })
const permit = await host.scope('s').admit({ id: 'a' })
await permit.dispatched()
permit.settle({ outcome: 'completed' })
console.log(host.scope('s').status.counters.completed)
await host.close()
`,
  )
})

afterAll(() => remove(folder))

const runs = (version: string, ...args: ReadonlyArray<string>): Promise<Ran> =>
  run(node(version), args, installed)

/** Says what it runs under, so that no matrix runs one Node six times. */
const version = async (asked: string): Promise<string> =>
  (await runs(asked, '-p', 'process.versions.node')).out.trim()

describe.skipIf(!isOnline).each(nodes)('Node %s', (asked) => {
  it("keeps the journal's promises, in memory and in a file", async () => {
    expect(await version(asked)).toMatch(new RegExp(`^${asked.replaceAll('.', '\\.')}`))
    const tests = ['contract', 'retention', 'salvage', 'schema'].map((name) => `test/journal/${name}.test.ts`)
    const report = join(folder, `${alias(asked)}.json`)
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const config = ['--config', 'test/package/installed.config.ts', ...reporters]
    const { code, out, err } = await run(
      node(asked),
      [join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...config, ...tests],
      root,
      { RIGHTOFWAY_INSTALLED: join(installed, 'node_modules', 'rightofway') },
    )
    expect([code, code === 0 ? '' : out.slice(-4_000) + err.slice(-4_000)]).toEqual([0, ''])
    expect(JSON.parse(readFileSync(report, 'utf8')).numPassedTests).toBeGreaterThan(40)
  })

  it('runs the quickstart, and the first call in memory and in a file', async () => {
    expect(await runs(asked, 'against-emulator.js')).toMatchObject({ code: 0, out: 'true\n' })
    for (const args of [[], [join(folder, `${alias(asked)}.db`)]])
      expect(await runs(asked, 'first-call.js', ...args)).toMatchObject({
        code: 0,
        out: expect.stringMatching(story),
      })
  })

  it('checks, backs up, exports and imports what it wrote', async () => {
    const file = join(folder, `${alias(asked)}.db`)
    const cli = join('node_modules', 'rightofway', 'src', 'cli', 'launch.mjs')
    for (const args of [
      ['check', '--journal', file],
      ['backup', `${file}.copy`, '--journal', file],
      ['check', '--journal', `${file}.copy`],
      ['export', '--out', `${file}.lines`, '--journal', file],
      ['import', `${file}.lines`, '--journal', `${file}.again`],
      ['check', '--journal', `${file}.again`],
    ])
      expect(await runs(asked, cli, 'journal', ...args)).toMatchObject({ code: 0, err: '' })
    expect(await runs(asked, 'permit.js', `${file}.copy`)).toMatchObject({ code: 0, out: '1\n' })
  })
})

describe.skipIf(!isOnline)(`Node ${oldNode}`, () => {
  it('runs in memory what needs no file', async () => {
    expect(await version(oldNode)).toBe(oldNode)
    expect(await runs(oldNode, 'first-call.js')).toMatchObject({
      code: 0,
      out: expect.stringMatching(story),
    })
    expect(await runs(oldNode, 'permit.js', ':memory:')).toMatchObject({ code: 0, out: '1\n', err: '' })
  })

  it('says in one line which Node a file needs, and the command line too', async () => {
    const { code, err } = await runs(oldNode, 'permit.js', 'lanes.db')
    expect(code).toBe(1)
    expect(err).toMatch(
      /JournalUnavailable: journal .*lanes\.db: needs node:sqlite, which Node 20\.19\.0 does not have; run Node 22\.19 or newer, or pass ':memory:'\n/,
    )
    const cli = join('node_modules', 'rightofway', 'src', 'cli', 'launch.mjs')
    expect(await runs(oldNode, cli, 'serve')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^rightofway: Node 22\.19 or newer is needed, this is 20\.19\.0 \(.*\)\n$/),
    })
  })
})
