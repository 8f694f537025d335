/** Journal files that earlier releases wrote, kept for ever: each opens, and goes on. */

import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { historyProblems } from '../../src/host/check-history.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { ManualClock, openHost } from '../../src/index.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { temporaryPath } from '../journal/fixture.ts'

const folder = join(import.meta.dirname, 'older')

const copied = (name: string): string => {
  const path = temporaryPath()
  copyFileSync(join(folder, name), path)
  return path
}

const newestTime = async (path: string): Promise<number> => {
  const reader = await openSqliteReader(path)
  let newestMs = 0
  for await (const batch of reader.read()) for (const { at } of batch) newestMs = Math.max(newestMs, at)
  reader.close()
  return newestMs + 1
}

describe.each(readdirSync(folder).filter((name) => name.endsWith('.db')))('the journal %s', (name) => {
  it('is read and found sound as it is, by whoever may not write it', async () => {
    const path = copied(name)
    expect(checkJournal(path)).toMatchObject({ ok: true, schemaVersion: 1, entries: 15 })
    const reader = await openSqliteReader(path)
    expect((await reader.scopes()).map(({ scope }) => scope)).toEqual([
      'anthropic/ab12/claude-opus',
      'engine-read',
      'worker-pool',
    ])
    reader.close()
    expect(checkJournal(path)).toMatchObject({ schemaVersion: 1 })
  })

  it('has the history of every scope, also where this version would have decided otherwise', () => {
    expect(checkJournal(copied(name), historyProblems)).toMatchObject({ ok: true, problems: [] })
  })

  it('opens, and every call in it is what it was', async () => {
    const path = copied(name)
    // Its timeouts must not have passed.
    const clock = new ManualClock(await newestTime(path))
    const host = await openHost({ journal: path, clock })
    const opus = host.scope({ provider: 'anthropic', credential: 'ab12', model: 'claude-opus' })
    const ending = (scope: typeof opus, id: string) =>
      scope.run({ id }, async () => 'sent').catch((error: unknown) => error)
    expect(await ending(host.scope('worker-pool'), 'under-way')).toMatchObject({ _tag: 'OutcomeUnknown' })
    expect(host.scope('worker-pool').status.auxiliary.waiting).toBe(1)
    expect(await ending(host.scope('worker-pool'), 'waits')).toBe('sent')
    expect(await ending(host.scope('engine-read'), 'admitted')).toBe('sent')
    expect(kernelOf(host).failures.size).toBe(0)
    expect(await ending(opus, 'first')).toMatchObject({ _tag: 'AlreadySettled' })
    expect(opus.status.primary.waiting).toBe(1)
    await host.close()
    expect(checkJournal(path, historyProblems).problems).toEqual([])
    await using next = await openHost({ journal: path, clock })
    expect(kernelOf(next).failures.size).toBe(0)
  })
})
