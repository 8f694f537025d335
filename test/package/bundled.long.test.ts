/** The packed package in other programs: bundled by esbuild and Vite, and typed beside a user's own xstate and effect. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildOptions, build as esbuild } from 'esbuild'
import { build as vite } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder, pack, plain, project, registryAnswers, remove, root, run } from './packed.ts'

const isOnline = await registryAnswers()
const folder = emptyFolder()
const installed = join(folder, 'project')
const story = /still waits .*\nthe person is answered\nthe memories are merged\n2 calls completed\n$/
const missing =
  /needs sqlite-worker\.js beside the bundle, which is not there; make 'rightofway\/sqlite-worker' an entry/

/** Lowest and highest version of each peer that the package allows. */
const peers = { xstate: ['5.30.0', '5.33.3'], effect: ['4.1.0', '4.1.0'] } as const

let archive = ''
beforeAll(async () => {
  if (!isOnline) return
  archive = await pack(folder)
  await project(installed, [archive])
  const example = readFileSync(join(root, 'examples/first-call.ts'), 'utf8')
  writeFileSync(join(installed, 'app.js'), plain(example))
  // For CommonJS, which has no await outside of functions.
  const [imports, body] = example.split(/(?<=from 'rightofway'\n)/)
  writeFileSync(
    join(installed, 'app-in-function.js'),
    plain(`${imports}\nconst main = async () => {${body}}\nmain()`),
  )
})
afterAll(() => remove(folder))

/** Runs a bundle where no package can be found, so that nothing outside of it can help. */
const alone = async (files: ReadonlyArray<string>, ...args: ReadonlyArray<string>) => {
  const place = emptyFolder()
  try {
    mkdirSync(join(place, 'out'))
    for (const file of files) copyFileSync(file, join(place, 'out', file.split('/').at(-1) as string))
    writeFileSync(join(place, 'out', 'package.json'), '{"type":"module"}')
    const main = files[0]!.split('/').at(-1) as string
    return await run(process.execPath, [join('out', main), ...args], place)
  } finally {
    remove(place)
  }
}

describe.skipIf(!isOnline)('a bundle', () => {
  const options = (outdir: string): BuildOptions => ({
    ...{ bundle: true, platform: 'node', format: 'esm', target: 'node22', outdir: join(installed, outdir) },
    absWorkingDir: installed,
    logLevel: 'silent',
    // What CommonJS packages inside it ask for.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
    },
  })

  it('of esbuild runs in memory, and with the worker as an entry in a file', async () => {
    const entryPoints = { app: 'app.js', 'sqlite-worker': 'rightofway/sqlite-worker' }
    await esbuild({ ...options('esbuild'), entryPoints })
    const files = ['app', 'sqlite-worker'].map((name) => join(installed, 'esbuild', `${name}.js`))
    for (const args of [[], ['lanes.db']])
      expect(await alone(files, ...args)).toMatchObject({ code: 0, out: expect.stringMatching(story) })
  })

  it('without the worker says in one line how to make it whole', async () => {
    await esbuild({ ...options('lacking'), entryPoints: { app: 'app.js' } })
    const esm = join(installed, 'lacking', 'app.js')
    expect(await alone([esm])).toMatchObject({ code: 0, out: expect.stringMatching(story) })
    expect(await alone([esm], 'lanes.db')).toMatchObject({ code: 1, err: expect.stringMatching(missing) })
    const { banner: _, ...plainOptions } = options('cjs')
    const entryPoints = { app: 'app-in-function.js' }
    await esbuild({ ...plainOptions, format: 'cjs', outExtension: { '.js': '.cjs' }, entryPoints })
    const cjs = join(installed, 'cjs', 'app.cjs')
    expect(await alone([cjs])).toMatchObject({ code: 0, out: expect.stringMatching(story) })
    expect(await alone([cjs], 'lanes.db')).toMatchObject({ code: 1, err: expect.stringMatching(missing) })
  })

  it('of Vite runs as a server, with the package outside and inside', async () => {
    const server = (outDir: string, input: Readonly<Record<string, string>>, noExternal: true | undefined) =>
      vite({
        root: installed,
        configFile: false,
        logLevel: 'silent',
        ssr: { target: 'node', ...(noExternal === undefined ? {} : { noExternal }) },
        build: { ssr: true, outDir, minify: false, rollupOptions: { input: { ...input } } },
      })
    const app = join(installed, 'app.js')
    await server('outside', { app }, undefined)
    const outside = await run(
      process.execPath,
      [join('outside', 'app.js'), join(folder, 'outside.db')],
      installed,
    )
    expect(outside).toMatchObject({ code: 0, out: expect.stringMatching(story) })
    const worker = join(installed, 'node_modules/rightofway/dist/src/journal/sqlite-worker.js')
    await server('inside', { app, 'sqlite-worker': worker }, true)
    const inside = await run(
      process.execPath,
      [join('inside', 'app.js'), join(folder, 'inside.db')],
      installed,
    )
    expect(inside).toMatchObject({ code: 0, out: expect.stringMatching(story) })
    expect(readFileSync(join(installed, 'inside', 'app.js'), 'utf8')).not.toMatch(/from ['"]rightofway/)
  })
})

describe.skipIf(!isOnline)('the package', () => {
  it('shows nothing in its exports that it does not hold', () => {
    const home = join(installed, 'node_modules', 'rightofway')
    const { exports } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    const targets = Object.values(exports as Record<string, string | Record<string, string>>).flatMap(
      (target) => (typeof target === 'string' ? [target] : Object.values(target)),
    )
    expect(targets.length).toBeGreaterThan(8)
    expect(targets.filter((target) => !existsSync(join(home, target)))).toEqual([])
  })

  it.each([
    [peers.xstate[0], peers.effect[0]],
    [peers.xstate[1], peers.effect[1]],
  ])("shares a user's own xstate %s and effect %s, in types and at run time", async (xstate, effect) => {
    const own = await project(join(folder, `peers-${xstate}`), [
      archive,
      `xstate@${xstate}`,
      `effect@${effect}`,
    ])
    for (const name of ['xstate', 'effect']) {
      const inner = join(own, 'node_modules', 'rightofway', 'node_modules', name)
      expect(existsSync(inner), `a second copy of ${name}`).toBe(false)
    }
    writeFileSync(
      join(own, 'own.ts'),
      `import { Effect } from 'effect'
import { type AdmitOptions, AdmissionError, type AskedRequest, Host, type Journal, openHost } from 'rightofway'
import { providerScope } from 'rightofway/machines'
import { play } from 'rightofway/testing'
import { createActor, setup } from 'xstate'
const named: [AdmitOptions, AskedRequest['model'], Journal | null] = [{ dispatchAtOnce: true }, null, null]
console.log(named.length, AdmissionError.name === '' || typeof openHost)
console.log(play({ preset: 'adaptive' }, [{ at: 5, submit: { id: 'a' } }]).grantedAt('a'))
const machine = setup({ actors: { providerScope } }).createMachine({
  invoke: { id: 'lanes', src: 'providerScope', input: { scope: 'a/b/c', policy: { capacity: 4 } } },
})
const actor = createActor(machine).start()
console.log(Object.keys(actor.getSnapshot().children).join())
const program: Effect.Effect<number, never, Host> = Effect.gen(function* () {
  const scope = (yield* Host).scope('s')
  yield* Effect.orDie(scope.run({}, () => Effect.succeed(1)))
  return (yield* scope.status).counters.completed
})
Effect.runPromise(Effect.provide(program, Host.layer())).then((n) => console.log(n))
`,
    )
    const strict = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2024', '--types', '']
    const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext']
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    expect(await run(process.execPath, [tsc, ...strict, ...modules, 'own.ts'], own)).toMatchObject({
      code: 0,
      out: '',
    })
    expect(await run(process.execPath, ['own.ts'], own)).toMatchObject({
      code: 0,
      out: '3 function\n5\nlanes\n1\n',
    })
  })

  it('names no peer range whose ends are not tried here', () => {
    const { peerDependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(peerDependencies).toEqual({
      ...{ xstate: `^${peers.xstate[0]}`, effect: `^${peers.effect[0]}` },
      // Optional, for the matchers; the tests of the whole project run on it.
      vitest: `^${devDependencies.vitest}`,
    })
  })
})
