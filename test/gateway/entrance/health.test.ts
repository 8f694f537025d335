/** `/healthz`: the size of the journal, and a word about a reader that keeps its write-ahead log from shrinking. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import type { HealthAnswer } from '../../../src/gateway/entrance/health.ts'
import { startGateway } from '../../../src/gateway/gateway.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { openHost } from '../../../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'rightofway-health-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const askHealth = async (path: string, prepare: () => void = () => {}): Promise<HealthAnswer> => {
  const host = await openHost({ journal: path })
  const { journal } = kernelOf(host)
  prepare()
  const record = 'x'.repeat(10_000)
  for (let entry = 0; entry < 4_000; entry += 1) journal.append({ scope: 's', at: 1_000 + entry, record })
  await journal.checkpoint({ scope: 's', position: 4_000, at: 5_000, snapshot: '{}' })
  const gateway = await startGateway({
    host,
    config: parseConfig({ port: 0 }),
    secret: 'a secret of the tests',
  })
  try {
    const response = await fetch(`${gateway.url}/healthz`)
    expect(response.status).toBe(200)
    const { entries } = await host.journalUsage()
    expect(entries).toBe(4_000)
    return (await response.json()) as HealthAnswer
  } finally {
    await gateway.close()
    await host.close()
  }
}

it('tells the size of the journal and its oldest entry', async () => {
  const { status, journal, warnings } = await askHealth(join(folder, 'free.db'))
  expect({ status, warnings }).toEqual({ status: 'ok', warnings: [] })
  expect(journal).toMatchObject({ entries: 4_000, oldestAt: 1_000 })
  expect(journal!.bytes + journal!.walBytes).toBeGreaterThan(40_000_000)
})

it('names a reader that pins the write-ahead log', async () => {
  const path = join(folder, 'pinned.db')
  const readers: DatabaseSync[] = []
  const { status, warnings } = await askHealth(path, () => {
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from entries').get()
    readers.push(reader)
  })
  expect(status).toBe('ok')
  expect(warnings).toEqual([
    expect.stringMatching(/^a reader of the journal .* keeps \d+ MiB of its write-ahead log/),
  ])
  for (const reader of readers) reader.close()
})

it('is bounded by the config: a time and a size, refused with their ranges', () => {
  expect(parseConfig({ retention: { keepMs: 3_600_000, keepBytes: 2 ** 30 } }).retention).toEqual({
    keepMs: 3_600_000,
    keepBytes: 2 ** 30,
  })
  expect(() => parseConfig({ retention: { keepBytes: 5 } })).toThrow(/config\.retention\.keepBytes.*1048576/)
  expect(() => parseConfig({ retention: { keepMs: -1 } })).toThrow(/config\.retention\.keepMs.*\[0, /)
})
