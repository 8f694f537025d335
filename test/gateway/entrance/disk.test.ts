/** What `/healthz` says of the disk, and what the config says of what is kept on it. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { temporaryPath } from '../../journal/fixture.ts'
import { startSetting } from '../setting.ts'

describe('the journal on the disk', () => {
  it('is told at /healthz: sizes, the oldest entry, and a reader that pins what was written', async () => {
    const path = temporaryPath()
    const setting = await startSetting({ journal: path })
    const health = async () =>
      (await (await fetch(`${setting.gateway.url}/healthz`)).json()) as { journal: Record<string, unknown> }
    const from = Date.now()
    await setting.host.scope('pool').run({ id: 'first' }, async () => 'sent')
    const { journal } = await health()
    expect(journal).toMatchObject({ walPinned: false, entries: expect.any(Number) })
    expect(journal['bytes']).toBeGreaterThan(0)
    expect(journal['oldestAt']).toBeGreaterThanOrEqual(from)
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from entries').get()
    const kernel = kernelOf(setting.host)
    const record = 'x'.repeat(10_000)
    for (let n = 0; n < 2_500; n += 1) kernel.journal.append({ scope: 'other', at: from, record })
    await expect.poll(async () => (await health()).journal['walPinned']).toBe(true)
    expect((await health()).journal['walBytes']).toBeGreaterThan(17 * 1024 * 1024)
    reader.close()
  })
})

describe('the field retention of the config', () => {
  it.each([[{}], [{ keepMs: 0 }], [{ keepMs: 3_600_000, keepBytes: 1024 * 1024 }]])(
    'takes %j',
    (retention) => {
      expect(parseConfig({ retention }).retention).toEqual(retention)
    },
  )

  it.each([
    [{ keepMs: -1 }, 'config.retention.keepMs'],
    [{ keepBytes: 1_000 }, 'config.retention.keepBytes'],
    [{ keepHours: 1 }, 'keepHours'],
  ])('refuses %j by its name', (retention, named) => {
    expect(() => parseConfig({ retention })).toThrow(named)
  })
})
