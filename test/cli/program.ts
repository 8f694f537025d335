/** The command line as a user runs it: a process of its own, in a folder of its own. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const launcher = fileURLToPath(new URL('../../src/cli/launch.mjs', import.meta.url))

export const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const isTooOld = (node: string): boolean => {
  try {
    const [major, minor] = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).split(
      '.',
    )
    return Number(major) < 22 || (Number(major) === 22 && Number(minor) < 19)
  } catch {
    return false
  }
}

/** A Node of this machine that cannot run the sources by itself; null when there is none. */
export const oldNode: string | null =
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((path) => join(path, 'node'))
    .find(isTooOld) ?? null

export interface Finished {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export class Program {
  readonly child: ChildProcess
  readonly #finished: Promise<Finished>
  #out = ''
  #err = ''
  #look: () => void = () => {}

  constructor(
    args: ReadonlyArray<string>,
    cwd: string,
    node = process.execPath,
    launch = launcher,
    more = {},
  ) {
    const env = { ...process.env, NO_COLOR: '1', ...more }
    this.child = spawn(node, [launch, ...args], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.child.stdout?.on('data', (chunk) => {
      this.#out += String(chunk)
      this.#look()
    })
    this.child.stderr?.on('data', (chunk) => {
      this.#err += String(chunk)
    })
    this.#finished = new Promise((resolve) => {
      this.child.once('close', (code) => resolve({ code, out: this.#out, err: this.#err }))
    })
    onTestFinished(() => void this.child.kill('SIGKILL'))
  }

  get finished(): Promise<Finished> {
    return this.#finished
  }

  /** The first output that `pattern` fits. Rejects when the program ends without it. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    const said = new Promise<RegExpExecArray>((resolve) => {
      this.#look = () => {
        const found = pattern.exec(this.#out)
        if (found !== null) resolve(found)
      }
      this.#look()
    })
    const ended = this.#finished.then(({ code, out, err }) => {
      throw new Error(`it ended with ${code} and never said ${pattern}: ${out}${err}`)
    })
    return Promise.race([said, ended])
  }

  input(text: string): this {
    this.child.stdin?.end(text)
    return this
  }
}

export const run = (args: ReadonlyArray<string>, cwd: string, node?: string): Promise<Finished> =>
  new Program(args, cwd, node).input('').finished
