/** A journal of an older version, which knew fewer fields of a policy, goes on as if nothing had been added. */
import { describe, expect, it } from 'vitest'
import { type EncodedScope, parsePolicy } from '../../machines/index.ts'
import { emptyRamp } from '../../machines/limits/ramp.ts'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { differenceText, replayScopes } from '../../src/host/replay.ts'
import { ManualClock } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { readGolden } from './golden.ts'
import { beginsAt } from './scenes.ts'

const scope = 'anthropic/k1/m'
const older = readGolden('older/restart')
const kept = older.checkpoints[0]!
/** What the checkpoint means to this version. */
const meant = JSON.stringify(encodeScope(decodeScope(JSON.parse(kept.snapshot))))

const open = (history: typeof older) =>
  Kernel.open({
    journal: openMemoryJournal({ history }),
    journalPath: 'older',
    clock: new ManualClock(beginsAt),
  })

/** The text of `scope`, with what older checkpoints could not hold taken from what they mean: readings of which only differences count. */
const sinceThen = (scope: EncodedScope, means: EncodedScope): string => {
  const { heldMs, nextPlace, rankServedAt } = means
  return JSON.stringify(
    Object.assign(
      scope,
      JSON.parse(JSON.stringify({ heldMs, nextPlace, rankServedAt })) as Partial<EncodedScope>,
    ),
  )
}

describe.each(['older/cancel', 'older/refusals'])('%s, written when every owner asked again', (name) => {
  const golden = readGolden(name)

  it('replays to the same decisions and to what its checkpoint means, byte for byte but for clocks that it had not', async () => {
    const journal = openMemoryJournal({ history: { ...golden, checkpoints: [] } })
    const { scopes, differences } = await replayScopes(journal, name, { onDifference: 'collect' })
    expect(differences).toEqual([])
    const means = golden.checkpoints.map(({ snapshot }) => encodeScope(decodeScope(JSON.parse(snapshot))))
    expect(scopes.map(({ context }, index) => sinceThen(encodeScope(context), means[index]!))).toEqual(
      means.map((one) => JSON.stringify(one)),
    )
  })

  it('has the submissions that asked again, which a journal of today does not', () => {
    const submissions = (history: typeof golden, id: string) =>
      history.entries.filter(({ record }) =>
        record.startsWith(`{"event":{"type":"call.submitted","call":{"id":"${id}"`),
      ).length
    const id = name === 'older/cancel' ? 'read-1' : 'turn-1'
    expect(submissions(golden, id)).toBe(2)
    expect(submissions(readGolden(name.replace('older/', '')), id)).toBe(1)
  })
})

describe('a journal that was written before some fields were', () => {
  it('lacks them, and they read as their defaults', () => {
    expect(JSON.parse(kept.snapshot).policy).not.toHaveProperty('quotas')
    expect(JSON.parse(meant).policy.quotas).toEqual({})
  })

  it('replays to what its checkpoint means, byte for byte, but for clocks, the ramp, which learns anew, and the order of ended calls, by name then', async () => {
    const { scopes } = await replayScopes(
      openMemoryJournal({ history: { ...older, checkpoints: [] } }),
      'older',
    )
    const replayed = encodeScope(scopes[0]!.context)
    const { slots } = replayed.ramp
    const ended = replayed.ended.map((generation) => [...generation].sort())
    // What only differences are taken of, the held clock and places in the ring, and what did not matter then.
    const { heldMs, nextPlace, rankServedAt } = JSON.parse(meant)
    const seen = { ...replayed, heldMs, nextPlace, rankServedAt, ramp: { ...emptyRamp, slots }, ended }
    expect(JSON.stringify(seen)).toBe(meant)
  })

  it.each([
    ['its entries', { ...older, checkpoints: [] }],
    ['its checkpoint', older],
  ])('is opened from %s, and the policy that it was written under is no change', async (_, history) => {
    const kernel = await open(history)
    const before = kernel.runners.get(scope)?.position
    // Lower ranks did not age then.
    const then = { capacity: 2, unclaimedExpiryMs: 30_000, maxRankDeferralMs: null }
    const runner = kernel.scope(scope, then)
    expect(runner.position).toBe(before)
    expect(runner.context.policy).toEqual(parsePolicy(then))
    await kernel.close(0)
  })

  it('is refused by row, field and value when a field of it cannot be', async () => {
    const entries = older.entries.map((entry) => ({
      ...entry,
      record: entry.record.replace('"capacity":2', '"capacity":-2'),
    }))
    await expect(open({ entries, checkpoints: [] })).rejects.toThrow(
      /entries 1 is unreadable: policy.capacity: expected an integer in \[1, 65536\], got -2/,
    )
    const snapshot = kept.snapshot.replace('"capacity":2', '"capacity":-2')
    await expect(open({ ...older, checkpoints: [{ ...kept, snapshot }] })).rejects.toThrow(
      'snapshot.policy.capacity: expected an integer in [1, 65536], got -2',
    )
  })
})

/** Recorded while what background is owed was counted by the time of day, and no refusal gave a turn back. */
describe.each(['settle', 'cancel', 'refusals', 'restart', 'turns'])('the older journal %s', (name) => {
  const history = readGolden(`older/wall-clock/${name}`)

  it('replays to the decisions that it holds', async () => {
    const journal = openMemoryJournal({ history: { ...history, checkpoints: [] } })
    const { differences } = await replayScopes(journal, name, { onDifference: 'collect' })
    expect(differenceText(differences)).toBe('')
  })

  it.each([
    ['its entries', { ...history, checkpoints: [] }],
    ['its checkpoint', history],
  ])('is opened from %s, and goes on', async (_, from) => {
    const kernel = await open(from)
    const runner = kernel.scope(scope)
    expect(runner.context.heldMs).toBeLessThanOrEqual(runner.context.at)
    expect(() => decodeScope(encodeScope(runner.context))).not.toThrow()
    await kernel.close(0)
  })
})
