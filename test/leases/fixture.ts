/** Shared parts of the leases' tests: a folder, records written by hand, and a second process. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { LeaseOptions, Leases } from '../../src/leases/leases.ts'
import { openLeases } from '../../src/leases/leases.ts'

/** A path for a folder of leases, not made yet, whose parent goes when the test ends. */
export const temporaryFolder = (): string => {
  const parent = mkdtempSync(join(tmpdir(), 'rightofway-leases-'))
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'foreground-leases')
}

export const madeFolder = (mode = 0o700): string => {
  const folder = temporaryFolder()
  mkdirSync(folder)
  chmodSync(folder, mode)
  return folder
}

export const openForTest = (folder: string, options?: LeaseOptions): Leases => {
  const leases = openLeases(folder, options)
  onTestFinished(() => leases.close())
  return leases
}

export const randomName = (): string => `${randomBytes(16).toString('hex')}.json`

export const bodyOf = (expiresAtMs: number): string => `{"version":1,"expires_at":${expiresAtMs / 1_000}}`

/** Puts a record into the folder as another process would; answers its path. */
export const writeByHand = (
  folder: string,
  body: string,
  { name = randomName(), mode = 0o600 }: { name?: string; mode?: number } = {},
): string => {
  const path = join(folder, name)
  writeFileSync(path, body)
  chmodSync(path, mode)
  return path
}

export const recordsIn = (folder: string): ReadonlyArray<string> => readdirSync(folder)

export interface Holder {
  readonly process: ChildProcess
  /** Sends a word and waits for its echo. */
  readonly does: (word: 'hold' | 'release' | 'stream') => Promise<void>
  readonly ended: Promise<void>
}

/** Starts a process that holds leases when told to. */
export const startHolder = (folder: string, options: LeaseOptions = {}): Holder => {
  const script = fileURLToPath(new URL('./holder-process.ts', import.meta.url))
  const child = fork(script, [folder, JSON.stringify(options)])
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const does = (word: string): Promise<void> =>
    new Promise((resolve, reject) => {
      child.once('exit', () => reject(new Error(`the holder ended before it did ${word}`)))
      child.on('message', (said) => said === word && resolve())
      child.send(word)
    })
  return { process: child, does, ended }
}
