/** `rightofway journal backup`, `scopes`, `compact` and `migrate`: what they print, in words and as JSON, and how they end. */
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openHost } from '../../src/index.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { schemaVersion } from '../../src/journal/schema.ts'
import { folder, run } from './program.ts'

const journal = ['--journal', 'lanes.db']

/** A journal of the scopes `a` and `b`, closed by its host, as `lanes.db` in a new folder. */
const used = async (): Promise<string> => {
  const at = folder()
  const host = await openHost({ journal: join(at, 'lanes.db') })
  for (const scope of ['a', 'b']) await host.scope(scope).run({ id: 'one' }, async () => 'sent')
  await host.close()
  return at
}

it('backup copies the journal beside its host, and never over a file', { timeout: 60_000 }, async () => {
  const at = await used()
  const { entries } = checkJournal(join(at, 'lanes.db'))
  const host = await openHost({ journal: join(at, 'lanes.db') })
  const told = await run(['journal', 'backup', 'copy.db', ...journal], at)
  await host.close()
  expect(told).toEqual({ code: 0, out: `journal lanes.db: copied ${entries} entries to copy.db\n`, err: '' })
  expect(checkJournal(join(at, 'copy.db'))).toMatchObject({ ok: true, entries, scopes: ['a', 'b'] })
  const json = await run(['journal', 'backup', 'other.db', ...journal, '--json'], at)
  expect(JSON.parse(json.out)).toMatchObject({ entries })
  const again = await run(['journal', 'backup', 'copy.db', ...journal], at)
  expect([again.code, again.out]).toEqual([1, ''])
  expect(again.err).toContain('copy.db')
})

it('scopes lists them, and drops one that it knows', { timeout: 60_000 }, async () => {
  const at = await used()
  const told = await run(['journal', 'scopes', ...journal], at)
  expect([told.code, told.err]).toEqual([0, ''])
  expect(told.out).toMatch(/^a: (at rest|live), checkpoint of \S+Z\nb: (at rest|live), checkpoint of \S+Z\n$/)
  const json = await run(['journal', 'scopes', ...journal, '--json'], at)
  expect(JSON.parse(json.out)).toMatchObject([{ scope: 'a' }, { scope: 'b' }])
  const dropped = await run(['journal', 'scopes', '--drop', 'a', ...journal], at)
  expect(dropped).toEqual({ code: 0, out: 'journal lanes.db: dropped a\n', err: '' })
  const unknown = await run(['journal', 'scopes', '--drop', 'a', ...journal], at)
  expect([unknown.code, unknown.out]).toEqual([1, ''])
  expect(unknown.err).toContain('journal lanes.db knows no scope a')
})

it('compact drops what a checkpoint stands for and is old enough; no host may have it', {
  timeout: 60_000,
}, async () => {
  const at = await used()
  const young = await run(['journal', 'compact', ...journal], at)
  expect(young).toEqual({ code: 0, out: 'journal lanes.db: dropped 0 entries\n', err: '' })
  const host = await openHost({ journal: join(at, 'lanes.db') })
  const refused = await run(['journal', 'compact', '--keep-hours', '0', ...journal], at)
  await host.close()
  expect([refused.code, refused.out]).toEqual([1, ''])
  expect(refused.err).toMatch(/journal \S*lanes\.db is in use by process \d+/)
  const all = await run(['journal', 'compact', '--keep-hours', '0', ...journal, '--json'], at)
  expect(JSON.parse(all.out).dropped).toBeGreaterThan(3)
  const negative = await run(['journal', 'compact', '--keep-hours', '-1', ...journal], at)
  expect(negative.code).not.toBe(0)
})

it('migrate says first, then brings a journal of 0.1.0 up to date, once', { timeout: 60_000 }, async () => {
  const at = folder()
  copyFileSync(join(import.meta.dirname, '../replay/older/0.1.0-killed.db'), join(at, 'lanes.db'))
  const planned = await run(['journal', 'migrate', '--dry-run', ...journal], at)
  expect([planned.code, planned.err]).toEqual([0, ''])
  expect(planned.out).toMatch(
    new RegExp(`^journal lanes\\.db: would be brought from schema version 1 to ${schemaVersion}\\n.+`),
  )
  const json = await run(['journal', 'migrate', '--dry-run', ...journal, '--json'], at)
  expect(JSON.parse(json.out)).toMatchObject({ from: 1, to: schemaVersion })
  expect(checkJournal(join(at, 'lanes.db')).schemaVersion).toBe(1)
  const done = await run(['journal', 'migrate', ...journal], at)
  expect(done.out).toContain(`was brought from schema version 1 to ${schemaVersion}\n`)
  const again = await run(['journal', 'migrate', ...journal], at)
  expect(again.out).toBe(`journal lanes.db: schema version ${schemaVersion} is what this release writes\n`)
  const nowhere = await run(['journal', 'migrate', '--journal', 'none.db'], at)
  expect([nowhere.code, existsSync(join(at, 'none.db'))]).toEqual([1, false])
})
