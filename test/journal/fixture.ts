/**
 * Shared parts of the journal's tests: a folder for each test, entries, and a record of a journal's reports.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type {
  Journal,
  JournalEntry,
  JournalFailure,
  ReadQuery,
  StoredEntry,
} from '../../src/journal/journal.ts'

/** A path for a journal in a folder that goes when the test ends. */
export const temporaryPath = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-journal-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'lanes.db')
}

export const entry = (n: number, scope = 'emulated/ab12/opus'): JournalEntry => {
  return { scope, at: 1_700_000_000_000 + n, record: JSON.stringify({ event: { n }, decisions: [] }) }
}

/** Appends `count` entries, numbered from 1, to scopes in turn, and waits until they are durable. */
export const fill = async (
  journal: Journal,
  count: number,
  scopes = ['emulated/ab12/opus'],
): Promise<void> => {
  const heard = listen(journal)
  let last = 0
  for (let n = 1; n <= count; n++) last = journal.append(entry(n, scopes[n % scopes.length]!))
  await heard.durable(last)
}

export const readAll = async (
  journal: Pick<Journal, 'read'>,
  query?: ReadQuery,
): Promise<ReadonlyArray<StoredEntry>> => {
  const entries: Array<StoredEntry> = []
  for await (const batch of journal.read(query)) entries.push(...batch)
  return entries
}

export interface Heard {
  readonly told: ReadonlyArray<number>
  readonly failures: ReadonlyArray<JournalFailure>
  /** Resolves when everything up to `position` was told durable; rejects when the journal fails first. */
  readonly durable: (position: number) => Promise<void>
  readonly failed: Promise<JournalFailure>
}

/** Listens to a journal and keeps all that it says. */
export const listen = (journal: Journal): Heard => {
  const told: Array<number> = []
  const failures: Array<JournalFailure> = []
  const failed = Promise.withResolvers<JournalFailure>()
  let waiting: Array<{ position: number; resolve: () => void; reject: (error: Error) => void }> = []
  journal.listen({
    durable: (through) => {
      told.push(through)
      for (const one of waiting) if (one.position <= through) one.resolve()
      waiting = waiting.filter(({ position }) => position > through)
    },
    failed: (failure) => {
      failures.push(failure)
      failed.resolve(failure)
      for (const { reject } of waiting.splice(0)) reject(failure)
    },
  })
  return {
    told,
    failures,
    failed: failed.promise,
    durable: (position) =>
      new Promise((resolve, reject) => {
        if ((told.at(-1) ?? 0) >= position) resolve()
        else waiting.push({ position, resolve, reject })
      }),
  }
}
