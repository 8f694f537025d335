/** `rightofway journal backup`, `scopes`, `compact` and `migrate`, as a user runs them. */
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openHost } from '../../src/index.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { schemaVersion } from '../../src/journal/schema.ts'
import { folder, run } from './program.ts'

/** A folder with the journal `lanes.db` of two scopes at rest, closed by its host. */
const closedJournal = async (): Promise<string> => {
  const at = folder()
  const host = await openHost({ journal: join(at, 'lanes.db') })
  for (const scope of ['a', 'b'])
    for (let n = 0; n < 3; n += 1)
      await host.scope(scope).run({ id: `call-${n}`, lane: 'auxiliary' }, async () => n)
  await host.close()
  return at
}

const journal = (at: string, ...words: ReadonlyArray<string>) =>
  run(['journal', ...words, '--journal', 'lanes.db'], at)

const refusal = (err: string): string => /^rightofway: ([^\n]+)\n$/.exec(err)?.[1] ?? `not one line: ${err}`

/** Runs `work` while a host of this process has the journal. */
const whileHeld = async <A>(at: string, work: () => Promise<A>): Promise<A> => {
  const host = await openHost({ journal: join(at, 'lanes.db') })
  try {
    return await work()
  } finally {
    await host.close()
  }
}

describe('journal backup', () => {
  it('copies a journal that a host has open, and says how much', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    const [text, json] = await whileHeld(at, async () => [
      await journal(at, 'backup', 'copy.db'),
      await journal(at, 'backup', 'second.db', '--json'),
    ])
    const { entries, ok } = checkJournal(join(at, 'copy.db'))
    expect([ok, entries > 6]).toEqual([true, true])
    expect(text).toEqual({
      code: 0,
      out: `journal lanes.db: copied ${entries} entries to copy.db\n`,
      err: '',
    })
    expect([json!.code, JSON.parse(json!.out)]).toEqual([0, { entries }])
    await (await openHost({ journal: join(at, 'copy.db') })).close()
  })

  it('overwrites nothing', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    copyFileSync(join(at, 'lanes.db'), join(at, 'copy.db'))
    const before = readFileSync(join(at, 'copy.db'))
    const { code, out, err } = await journal(at, 'backup', 'copy.db')
    expect([code, out]).toEqual([1, ''])
    expect(refusal(err)).toContain('exists already')
    expect(readFileSync(join(at, 'copy.db')).equals(before)).toBe(true)
  })
})

describe('journal scopes', () => {
  it('lists each scope, and drops one for good', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    const listed = await journal(at, 'scopes')
    expect([listed.code, listed.err]).toEqual([0, ''])
    expect(listed.out).toMatch(/^a: at rest, checkpoint of \S+Z\nb: at rest, checkpoint of \S+Z\n$/)
    const json = await journal(at, 'scopes', '--json')
    expect(JSON.parse(json.out)).toEqual([
      expect.objectContaining({ scope: 'a', resting: true, at: expect.any(Number) }),
      expect.objectContaining({ scope: 'b', resting: true, at: expect.any(Number) }),
    ])
    expect(await journal(at, 'scopes', '--drop', 'a')).toEqual({
      code: 0,
      out: 'journal lanes.db: dropped a\n',
      err: '',
    })
    const again = await journal(at, 'scopes', '--drop', 'a', '--json')
    expect([again.code, again.out]).toEqual([1, ''])
    expect(refusal(again.err)).toBe('journal lanes.db knows no scope a')
    const dropped = await journal(at, 'scopes', '--drop', 'b', '--json')
    expect([dropped.code, JSON.parse(dropped.out)]).toEqual([0, { dropped: 'b' }])
    expect((await journal(at, 'scopes', '--json')).out).toBe('[]\n')
  })

  it('drops nothing of a journal that a host has open', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    const { code, out, err } = await whileHeld(at, () => journal(at, 'scopes', '--drop', 'a'))
    expect([code, out]).toEqual([1, ''])
    expect(refusal(err)).toContain(`${process.pid}`)
    expect((await journal(at, 'scopes')).out).toMatch(/^a: /)
  })
})

describe('journal compact', () => {
  it('keeps a day when not told otherwise, and drops all that checkpoints stand for when told', {
    timeout: 60_000,
  }, async () => {
    const at = await closedJournal()
    expect(await journal(at, 'compact')).toEqual({
      code: 0,
      out: 'journal lanes.db: dropped 0 entries\n',
      err: '',
    })
    const before = checkJournal(join(at, 'lanes.db')).entries
    const json = await journal(at, 'compact', '--keep-hours', '0', '--json')
    const { dropped } = JSON.parse(json.out) as { dropped: number }
    expect(json.code).toBe(0)
    expect(dropped).toBeGreaterThan(6)
    expect(checkJournal(join(at, 'lanes.db'))).toMatchObject({ ok: true, entries: before - dropped })
    // The calls are remembered by the checkpoints.
    const host = await openHost({ journal: join(at, 'lanes.db') })
    await expect(host.scope('a').run({ id: 'call-0' }, async () => 'sent')).rejects.toMatchObject({
      _tag: 'AlreadySettled',
    })
    await host.close()
  })

  it('leaves alone what a host has open', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    const before = checkJournal(join(at, 'lanes.db')).entries
    const { code, out } = await whileHeld(at, () => journal(at, 'compact', '--keep-hours', '0'))
    expect([code, out]).toEqual([1, ''])
    expect(checkJournal(join(at, 'lanes.db')).entries).toBeGreaterThanOrEqual(before)
  })

  it('refuses a time that is none, and names it', { timeout: 60_000 }, async () => {
    const at = await closedJournal()
    const before = checkJournal(join(at, 'lanes.db')).entries
    const negative = await journal(at, 'compact', '--keep-hours=-1')
    expect([negative.code, negative.out]).toEqual([1, ''])
    expect(refusal(negative.err)).toContain('--keep-hours must be 0 or more, got -1')
    const word = await journal(at, 'compact', '--keep-hours', 'long')
    expect(word.code).not.toBe(0)
    expect(checkJournal(join(at, 'lanes.db')).entries).toBe(before)
  })
})

describe('journal migrate', () => {
  const older = (): string => {
    const at = folder()
    copyFileSync(join(import.meta.dirname, '../replay/older/0.1.0-closed.db'), join(at, 'lanes.db'))
    return at
  }

  it('says what it would do, does it, and then has nothing to do', { timeout: 60_000 }, async () => {
    const at = older()
    const before = readFileSync(join(at, 'lanes.db'))
    const planned = await journal(at, 'migrate', '--dry-run')
    expect([planned.code, planned.err]).toEqual([0, ''])
    expect(planned.out).toMatch(
      new RegExp(
        `^journal lanes\\.db: would be brought from schema version 1 to ${schemaVersion}\n(.+\n){${schemaVersion - 1}}$`,
      ),
    )
    expect(readFileSync(join(at, 'lanes.db')).equals(before)).toBe(true)
    const json = await journal(at, 'migrate', '--dry-run', '--json')
    expect(JSON.parse(json.out)).toMatchObject({ from: 1, to: schemaVersion })
    // SQLite makes its companions for a reader; nothing is written to them.
    for (const name of readdirSync(at))
      if (name.endsWith('-wal')) expect([name, readFileSync(join(at, name)).length]).toEqual([name, 0])
    expect(readFileSync(join(at, 'lanes.db')).equals(before)).toBe(true)
    const done = await journal(at, 'migrate')
    expect([done.code, done.out]).toEqual([0, planned.out.replace('would be brought', 'was brought')])
    expect(await journal(at, 'migrate')).toEqual({
      code: 0,
      out: `journal lanes.db: schema version ${schemaVersion} is what this release writes\n`,
      err: '',
    })
    expect(checkJournal(join(at, 'lanes.db'))).toMatchObject({ ok: true, schemaVersion })
  })
})

describe('exit codes', () => {
  it.each(['backup', 'scopes', 'compact', 'migrate'])('of %s stand in its help', async (verb) => {
    const { code, out } = await run(['journal', verb, '--help'], folder())
    expect([code, out.replaceAll(/\s+/g, ' ')]).toEqual([0, expect.stringMatching(/Exit code 0: .* 1: /)])
  })
})
