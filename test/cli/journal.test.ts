/** `rightofway journal check` and `repair`, as somebody uses them whose host no longer starts. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { openHost } from '../../src/index.ts'
import { JournalCorrupt } from '../../src/journal/journal.ts'
import { schemaVersion } from '../../src/journal/schema.ts'
import { importJournal } from '../../src/journal/transfer.ts'
import { goldenPath } from '../replay/golden.ts'
import { folder, run } from './program.ts'

const [head, ...golden] = readFileSync(goldenPath('settle'), 'utf8').trim().split('\n') as [
  string,
  ...string[],
]
const entries = golden.filter((line) => line.startsWith('{"entry"'))

/** A golden history without its checkpoint, in `lanes.db`. */
const journalIn = async (at: string): Promise<string> => {
  const end = JSON.stringify({ end: { checkpoints: 0, entries: entries.length } })
  await importJournal(join(at, 'lanes.db'), [head, ...entries, end])
  return join(at, 'lanes.db')
}

const alter = (path: string, statement: string): void => {
  const db = new DatabaseSync(path)
  db.exec(statement)
  db.close()
}

it('names the row that keeps a host from starting, and keeps every other', {
  timeout: 60_000,
}, async () => {
  const at = folder()
  const path = await journalIn(at)
  const whole = await run(['journal', 'repair', '--journal', 'lanes.db'], at)
  expect(whole.out).toBe('journal lanes.db: nothing was wrong, nothing was touched\n')
  alter(path, "update entries set record = replace(record, 'event', 'evant') where position = 5")
  await expect(openHost({ journal: path })).rejects.toBeInstanceOf(JournalCorrupt)
  const checked = await run(['journal', 'check', '--journal', 'lanes.db'], at)
  expect(checked).toEqual({
    code: 1,
    out:
      `journal lanes.db: ${entries.length - 1} good entries of 1 scope, schema version ${schemaVersion}\n` +
      'entries 5: its checksum does not fit its content\n',
    err: expect.stringContaining(
      "journal lanes.db has 1 problem; 'rightofway journal repair' keeps all that can be read",
    ),
  })
  const repaired = await run(['journal', 'repair', '--journal', 'lanes.db'], at)
  expect([repaired.code, repaired.err]).toEqual([0, ''])
  const aside = 'set aside 1 entry and 0 checkpoints in'
  const lost =
    'lost: entries 5\\nscope \\S+ goes on with a hole in its history\\n(call .* never sent again\\n)*'
  expect(repaired.out).toMatch(
    new RegExp(
      `^journal lanes\\.db: kept ${entries.length - 1} entries and 0 checkpoints\\n${aside} .*\\.ndjson\\nthe file as it was: .*\\n${lost}$`,
    ),
  )
  expect((await run(['journal', 'check', '--journal', 'lanes.db'], at)).code).toBe(0)
  for (const name of readdirSync(at))
    expect([name, statSync(join(at, name)).mode & 0o777]).toEqual([name, 0o600])
  await using host = await openHost({ journal: path })
  expect(host.status()).toHaveLength(1)
})

it('refuses a journal of a newer release, whatever is asked of it', { timeout: 60_000 }, async () => {
  const at = folder()
  alter(await journalIn(at), 'pragma user_version = 99')
  const verbs = [
    ['journal', 'check', '--journal', 'lanes.db'],
    ['journal', 'repair', '--journal', 'lanes.db'],
    ['journal', 'export', '--journal', 'lanes.db'],
    ['explain', 'turn-1', '--journal', 'lanes.db'],
    ['replay', 'lanes.db'],
  ]
  const answers = await Promise.all(verbs.map((verb) => run(verb, at)))
  for (const { code, out, err } of answers) {
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(`has schema version 99, this release reads up to version ${schemaVersion}`)
  }
})
