/** Short stories whose journals are kept as golden files: their decisions must stay the same. */
import { type MemoryJournal, openMemoryJournal } from '../../src/journal/memory.ts'
import { accelerationError, Bench } from '../host/bench.ts'

/** Epoch milliseconds at which every story begins. */
export const beginsAt = 1_700_000_000_000

type Story = (journal: MemoryJournal) => Promise<MemoryJournal>

const open = (journal: MemoryJournal, policy = {}) => Bench.open(policy, journal, beginsAt)

/** Auxiliaries run, a large primary comes, waits for them, runs, and the backlog drains. */
const settle: Story = async (journal) => {
  const bench = await open(journal, { capacity: 4, drainIntervalMs: 1_000 })
  for (const id of ['merge-1', 'merge-2', 'merge-3', 'merge-4']) await bench.auxiliary(id)
  await bench.pass(500)
  await bench.primary('turn-1')
  await bench.auxiliary('compress-1', { principal: 'residence-b' })
  await bench.pass(1_500)
  for (const id of ['merge-1', 'merge-2', 'merge-3']) await bench.finish(id)
  await bench.pass(2_000)
  await bench.finish('turn-1')
  await bench.pass(3_000)
  for (const id of bench.running) await bench.finish(id)
  await bench.pass(10_000)
  await bench.host.close()
  return journal
}

/** The cancel policy takes places back, and gives them back in the drain. */
const cancel: Story = async (journal) => {
  const bench = await open(journal, { capacity: 3, inFlight: 'cancel', graceMs: 2_000, lingerMs: 0 })
  await bench.auxiliary('read-1')
  await bench.auxiliary('read-2')
  await bench.primary('turn-1')
  await bench.pass(1_000)
  await bench.finish('turn-1')
  await bench.pass(5_000)
  for (const id of bench.running) await bench.finish(id)
  await bench.host.close()
  return journal
}

/** The provider refuses the primary for its size; the scope keeps quiet, then lets it in. */
const refusals: Story = async (journal) => {
  const bench = await open(journal, { capacity: 4, quietWindowMs: 20_000 })
  await bench.auxiliary('merge-1')
  await bench.finish('merge-1')
  await bench.primary('turn-1')
  await bench.fail('turn-1', accelerationError())
  await bench.auxiliary('merge-2')
  await bench.pass(25_000)
  if (bench.running.includes('turn-1')) await bench.finish('turn-1')
  await bench.pass(30_000)
  for (const id of bench.running) await bench.finish(id)
  await bench.pass(10_000)
  await bench.host.close()
  return journal
}

/**
 * A turn holds the gate between its rounds; a call that the primary depends on is let through; deadlines
 * pass.
 */
const turns: Story = async (journal) => {
  const bench = await open(journal, { capacity: 2, maxDeferralMs: 5_000, quantumTokens: 1 })
  bench.scope.beginTurn('turn-1')
  await bench.primary('round-1', { turnId: 'turn-1' })
  await bench.auxiliary('index-1')
  await bench.auxiliary('index-2', { deadlineAt: beginsAt + 3_000 })
  await bench.finish('round-1')
  await bench.pass(4_000)
  await bench.primary('round-2', { turnId: 'turn-1', dependsOn: ['index-1'] })
  await bench.finish('index-1')
  await bench.finish('round-2')
  bench.scope.endTurn('turn-1')
  await bench.pass(10_000)
  await bench.host.close()
  return journal
}

/** The host dies with a call under way, a pending primary and a held auxiliary; their owners come back. */
const restart: Story = async (journal) => {
  const policy = { capacity: 2, unclaimedExpiryMs: 30_000 }
  const first = await open(journal, policy)
  await first.auxiliary('merge-1')
  await first.primary('turn-1')
  await first.auxiliary('merge-2')
  await first.auxiliary('merge-3')
  // The host is not closed: the next host finds exactly the entries that are on the disk now.
  const left = openMemoryJournal({ history: journal.survivors() })
  const second = await Bench.open(policy, left, beginsAt + 60_000)
  await second.auxiliary('merge-1')
  await second.primary('turn-1')
  await second.auxiliary('merge-2')
  await second.finish('turn-1')
  await second.pass(40_000)
  for (const id of second.running) await second.finish(id)
  await second.host.close()
  return left
}

export const scenes: Readonly<Record<string, Story>> = { settle, cancel, refusals, turns, restart }
