/** The bin finds a Node that can run it, and its sources or its build. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folder, launcher, oldNode, Program, run } from './program.ts'

const nodes: ReadonlyArray<readonly [string, string]> = [
  ['this Node', process.execPath],
  ...(oldNode === null ? [] : [['a Node that is too old', oldNode] as const]),
]

/** The launcher alone, as a package at `path`. */
const packageAt = (path: string): string => {
  mkdirSync(join(path, 'src', 'cli'), { recursive: true })
  const launch = join(path, 'src', 'cli', 'launch.mjs')
  copyFileSync(launcher, launch)
  writeFileSync(join(path, 'package.json'), '{"type":"module"}')
  return launch
}

describe('the bin', () => {
  it.each(nodes)('runs under %s', async (_, node) => {
    const { code, out, err } = await run(['--version'], folder(), node)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/rightofway v\d+\.\d+\.\d+/)
  })

  it.each(nodes)('passes exit codes on under %s', async (_, node) => {
    const { code, err } = await run(['journal', 'check', '--journal', 'none.db'], folder(), node)
    expect(code).toBe(1)
    expect(err).toMatch(/^rightofway: journal .*none\.db: does not exist; check the path\n$/)
  })

  it.skipIf(oldNode === null)(
    'says in one line that this Node is too old when there is no other',
    async () => {
      const at = folder()
      const program = new Program(['serve'], at, oldNode as string, packageAt(join(at, 'alone')))
      const { code, out, err } = await program.finished
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(/^rightofway: Node 22\.19 or newer is needed, this is [\d.]+ \(.*\)\n$/)
    },
  )

  it('of an installed package runs its build, for Node strips no types there', async () => {
    const at = folder()
    const root = join(at, 'node_modules', 'rightofway')
    const launch = packageAt(root)
    writeFileSync(join(root, 'src', 'cli', 'main.ts'), 'console.log("sources")')
    mkdirSync(join(root, 'dist', 'src', 'cli'), { recursive: true })
    writeFileSync(join(root, 'dist', 'src', 'cli', 'main.js'), 'console.log("build")')
    const { out } = await new Program([], at, process.execPath, launch).finished
    expect(out).toBe('build\n')
  })
})
