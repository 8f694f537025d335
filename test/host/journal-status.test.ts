/** The lanes and permits of another process, seen through its journal while it lives and after it was killed. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { journalStatus } from '../../src/index.ts'
import { folder, run } from '../cli/program.ts'

const startPool = async (journal: string) => {
  const child = fork(fileURLToPath(new URL('pool-process.ts', import.meta.url)), [journal], {})
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

it("sees another live process's lanes waiting and in flight, its permits and its oldest waits", async () => {
  const place = folder()
  const journal = join(place, 'lanes.db')
  const child = await startPool(journal)
  // The host knows its calls a moment before its journal does.
  await expect
    .poll(async () => (await journalStatus(journal)).scopes[0]?.placesTaken, { timeout: 20_000 })
    .toBe(3)
  const { isLive, scopes } = await journalStatus(journal)
  expect(isLive).toBe(true)
  const [pool] = scopes
  expect(pool).toMatchObject({
    scope: 'pool',
    capacity: 3,
    placesTaken: 3,
    auxiliaryGate: 'closed',
    primary: { waiting: 1, inFlight: 1 },
    auxiliary: { waiting: 2, inFlight: 2 },
  })
  expect(pool?.primary.longestWaitMs).toBeGreaterThanOrEqual(0)
  const later = await journalStatus(journal, Date.now() + 60_000)
  expect(later.scopes[0]?.auxiliary.longestWaitMs).toBeGreaterThanOrEqual(60_000)
  expect(later.scopes[0]?.auxiliary.longestActiveMs).toBeGreaterThanOrEqual(60_000)

  const json = await run(['status', '--journal', journal, '--json'], place)
  expect(JSON.parse(json.out)).toMatchObject({
    isLive: true,
    scope: 'pool',
    auxiliary: { waiting: 2, inFlight: 2 },
  })
  const text = await run(['status', '--journal', journal], place)
  expect(text.out).toContain('written by a live host, scopes: 1')
  expect(text.out).toContain('3 of 3 places taken')
  expect(text.out).toMatch(/\d\.\d MiB and \d\.\d MiB of write-ahead log, \d+ entries, the oldest of \d{4}-/)
  expect(text.out).toMatch(/auxiliary {2}2 waiting \(oldest .*\), 2 permits held \(oldest .*\)/)
  // It only read: the host goes on writing, and nobody else is its owner.
  expect(child.exitCode).toBe(null)
  child.kill('SIGKILL')
  await once(child, 'exit')
})

it('refuses a journal that is not there, in a line', async () => {
  const { code, err } = await run(['status', '--journal', 'none.db'], folder())
  expect(code).toBe(1)
  expect(err).toMatch(/^rightofway: .*does not exist.*\n$/)
})
