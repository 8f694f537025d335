/** The package as its users install it: packed, and installed with npm into a blank project. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'

const execute = promisify(execFile)
export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a program to its end. */
export const run = async (
  file: string,
  args: ReadonlyArray<string>,
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> => {
  const options = { cwd, env: { ...process.env, NO_COLOR: '1', ...env }, maxBuffer: 64 * 1024 * 1024 }
  try {
    const { stdout, stderr } = await execute(file, [...args], options)
    return { code: 0, out: stdout, err: stderr }
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string }
    return { code: code ?? -1, out: stdout, err: stderr }
  }
}

const npm = async (args: ReadonlyArray<string>, cwd: string): Promise<Ran> => {
  const ran = await run('npm', [...args, '--no-audit', '--no-fund'], cwd)
  if (ran.code !== 0) throw new Error(`npm ${args.join(' ')} failed:\n${ran.err}`)
  return ran
}

/** Whether the npm registry answers. Without it nothing can be installed, and these tests say so. */
export const registryAnswers = async (): Promise<boolean> => {
  const { code } = await run('npm', ['view', 'node@22.19.0', 'version', '--fetch-retries=0'], root)
  if (code !== 0)
    console.warn('The npm registry does not answer: the tests of the packed package are left out.')
  return code === 0
}

/** Builds and packs the package. Returns the path of the archive. */
export const pack = async (into: string): Promise<string> => {
  await npm(['pack', '--pack-destination', into], root)
  const name = readdirSync(into).find((file) => file.endsWith('.tgz'))
  if (name === undefined) throw new Error(`npm pack left no archive in ${into}`)
  return join(into, name)
}

/** A folder of its own. The caller removes it with `remove`. */
export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'rightofway-package-'))
export const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** A blank project in which `packages` are installed. */
export const project = async (folder: string, packages: ReadonlyArray<string>): Promise<string> => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"name":"blank","private":true,"type":"module"}')
  await npm(['install', ...packages], folder)
  return folder
}

/** A TypeScript source as plain JavaScript for the oldest Node that is supported. */
export const plain = (source: string): string =>
  transformSync(source, { loader: 'ts', format: 'esm', target: 'node20' }).code
