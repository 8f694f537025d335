/** How a lease is written to the disk: whole, private, and durable before any process relies on it. */
import { readFileSync, readlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { writeRecord } from '../../src/leases/record.ts'
import { madeFolder, randomName, recordsIn } from '../leases/fixture.ts'

const expiresAtMs = 1_700_000_000_000

/** Every `fsync`: the file that was synced, and the folder's files at that time. */
const watchSyncs = async (folder: string) => {
  const seen: Array<readonly [synced: string, held: ReadonlyArray<string>]> = []
  const handle = await open(folder)
  const kind = Object.getPrototypeOf(handle) as { sync(this: { fd: number }): Promise<void> }
  await handle.close()
  const { sync } = kind
  const spy = vi.spyOn(kind, 'sync').mockImplementation(async function (this: { fd: number }) {
    seen.push([basename(readlinkSync(`/proc/self/fd/${this.fd}`)), recordsIn(folder)])
    return sync.call(this)
  })
  onTestFinished(() => spy.mockRestore())
  return seen
}

describe('the record of a lease', () => {
  it.runIf(process.platform === 'linux')(
    'is written beside its place, synced, moved there, and the folder synced',
    async () => {
      const folder = madeFolder()
      const seen = await watchSyncs(folder)
      const name = randomName()
      await writeRecord(folder, { name, expiresAtMs, isWanted: () => true })
      expect(seen).toEqual([
        [`.${name}.tmp`, [`.${name}.tmp`]],
        [basename(folder), [name]],
      ])
    },
  )

  it('is replaced as a whole: a reader never sees half of a record', async () => {
    const folder = madeFolder()
    const name = randomName()
    await writeRecord(folder, { name, expiresAtMs, isWanted: () => true })
    let writing = true
    const written = (async () => {
      for (let beat = 1; beat <= 50; beat += 1)
        await writeRecord(folder, { name, expiresAtMs: expiresAtMs + beat, isWanted: () => true })
      writing = false
    })()
    while (writing) {
      const { version, expires_at } = JSON.parse(readFileSync(join(folder, name), 'utf8'))
      expect(version).toBe(1)
      expect(expires_at * 1_000).toBeGreaterThanOrEqual(expiresAtMs)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await written
  })
})
