/** Starts a writer process and reads its output. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { SqliteJournalOptions } from '../../src/journal/sqlite.ts'

export interface Said {
  readonly opened?: number
  readonly durable?: number
  readonly failed?: string
  readonly refused?: string
  readonly exit?: number
}

export interface WriterProcess {
  readonly process: ChildProcess
  /** Everything said so far. */
  readonly said: ReadonlyArray<Said>
  /** The first line said, now or later, that has this; rejects when the process ends without it. */
  readonly hears: (what: (line: Said) => boolean) => Promise<Said>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

export const startWriter = (
  path: string,
  mode: 'hold' | 'flood' | 'leave' | 'idle',
  options: SqliteJournalOptions = {},
  onLine: (line: Said, child: ChildProcess) => void = () => {},
): WriterProcess => {
  const script = fileURLToPath(new URL('./writer-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script, path, mode, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said: Array<Said> = []
  const listeners = new Set<(line: Said | undefined) => void>()
  const lines = createInterface({ input: child.stdout! })
  lines.on('line', (text) => {
    const line = JSON.parse(text) as Said
    said.push(line)
    onLine(line, child)
    for (const listener of listeners) listener(line)
  })
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.on('close', (code, signal) => {
      for (const listener of listeners) listener(undefined)
      resolve({ code, signal })
    }),
  )
  const hears = (what: (line: Said) => boolean): Promise<Said> =>
    new Promise((resolve, reject) => {
      const heard = said.find(what)
      if (heard !== undefined) return resolve(heard)
      listeners.add((line) => {
        if (line === undefined) reject(new Error(`the process ended; it said ${JSON.stringify(said)}`))
        else if (what(line)) resolve(line)
      })
    })
  return { process: child, said, hears, ended }
}
