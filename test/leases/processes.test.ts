/** Leases between real processes. They wait for real, short TTLs, by looking again and again. */
import { describe, expect, it } from 'vitest'
import type { Leases } from '../../src/leases/leases.ts'
import { openForTest, recordsIn, startHolder, temporaryFolder } from './fixture.ts'

const options = { ttlMs: 600, heartbeatMs: 100, lookEveryMs: 10 }
/** For a lease that must never lapse, on a machine that may be busy. */
const steady = { ...options, ttlMs: 2_000 }
const patience = { interval: 10, timeout: 20_000 }

/** Records that are left after a look, which sweeps. */
const lookedAt = (worker: Leases, folder: string): number => {
  worker.active()
  return recordsIn(folder).length
}

describe('a second process', () => {
  it('sees the lease of the first, and that it was released', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, options)
    const holder = startHolder(folder, options)
    expect(worker.active()).toBe(false)
    await holder.does('hold')
    await expect.poll(() => worker.active(), patience).toBe(true)
    await holder.does('release')
    await expect.poll(() => worker.active(), patience).toBe(false)
    expect(recordsIn(folder)).toEqual([])
  })

  it('sees it for longer than the TTL while the first lives', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, steady)
    await startHolder(folder, steady).does('hold')
    const beganMs = Date.now()
    const seen: Array<boolean> = []
    await expect
      .poll(() => {
        seen.push(worker.active())
        return Date.now() - beganMs > 1.5 * steady.ttlMs
      }, patience)
      .toBe(true)
    expect(seen.slice(1)).not.toContain(false)
  })

  it('sees it end one TTL after the first was killed, and sweeps what it left', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, options)
    const holder = startHolder(folder, options)
    await holder.does('hold')
    await expect.poll(() => worker.active(), patience).toBe(true)
    holder.process.kill('SIGKILL')
    await holder.ended
    const killedMs = Date.now()
    await expect.poll(() => worker.active(), patience).toBe(false)
    expect(Date.now() - killedMs).toBeLessThan(options.ttlMs + 5_000)
    await expect.poll(() => lookedAt(worker, folder), patience).toBe(0)
  })

  it('sees it expire when the first stands still, and again when it goes on', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, options)
    const holder = startHolder(folder, options)
    await holder.does('hold')
    await expect.poll(() => worker.active(), patience).toBe(true)
    holder.process.kill('SIGSTOP')
    await expect.poll(() => worker.active(), patience).toBe(false)
    await expect.poll(() => lookedAt(worker, folder), patience).toBe(0)
    holder.process.kill('SIGCONT')
    await expect.poll(() => worker.active(), patience).toBe(true)
    await holder.does('release')
    await expect.poll(() => worker.active(), patience).toBe(false)
  })

  it('sees it for the whole of a stream', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, steady)
    const holder = startHolder(folder, steady)
    await holder.does('stream')
    const beganMs = Date.now()
    await expect.poll(() => worker.active(), patience).toBe(true)
    await expect
      .poll(() => worker.active() && Date.now() - beganMs > 1.25 * steady.ttlMs, patience)
      .toBe(true)
    await holder.does('release')
    await expect.poll(() => worker.active(), patience).toBe(false)
  })

  it('goes on as soon as the last of several others is done', async () => {
    const folder = temporaryFolder()
    const worker = openForTest(folder, options)
    const holders = [startHolder(folder, options), startHolder(folder, options)]
    await Promise.all(holders.map((holder) => holder.does('hold')))
    expect(recordsIn(folder).filter((name) => name.endsWith('.json'))).toHaveLength(2)
    await holders[0]!.does('release')
    await expect.poll(() => worker.active(), patience).toBe(true)
    await holders[1]!.does('release')
    await expect.poll(() => worker.active(), patience).toBe(false)
  })
})
