/** A journal of an older version, which knew fewer fields of a policy, goes on as if nothing had been added. */
import { describe, expect, it } from 'vitest'
import { contractPolicy, type Decision, type EncodedScope, parsePolicy } from '../../machines/index.ts'
import { unknownBelief } from '../../machines/limits/belief/belief.ts'
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
/** The meaning of the checkpoint for this version. */
const meant = JSON.stringify(encodeScope(decodeScope(JSON.parse(kept.snapshot))))

const open = (history: typeof older) =>
  Kernel.open({
    journal: openMemoryJournal({ history }),
    journalPath: 'older',
    clock: new ManualClock(beginsAt),
  })

/** The text of `scope`, with what older checkpoints could not hold taken from what they mean: readings of which only differences count, and what is believed. */
const sinceThen = (scope: EncodedScope, means: EncodedScope): string => {
  const { heldMs, nextPlace, rankServedAt, virtualTokens, debts, belief, demand } = means
  const readings = { heldMs, nextPlace, rankServedAt, virtualTokens, debts, belief, demand }
  return JSON.stringify(Object.assign(scope, JSON.parse(JSON.stringify(readings)) as Partial<EncodedScope>))
}

/** A primary that is tried after its quiet, whatever is believed, is a probe since probes have their reason. */
const isNotOfWords = ({ was, is }: { was: ReadonlyArray<Decision>; is: ReadonlyArray<Decision> }): boolean =>
  JSON.stringify(was) !==
  JSON.stringify(is.map((one) => (one.reason === 'probe' ? { ...one, reason: 'primary' } : one)))

describe.each(['older/cancel', 'older/refusals'])('%s, written when every owner asked again', (name) => {
  const golden = readGolden(name)

  it('replays to the same decisions and to what its checkpoint means, byte for byte but for clocks that it had not', async () => {
    const journal = openMemoryJournal({ history: { ...golden, checkpoints: [] } })
    const { scopes, differences } = await replayScopes(journal, name)
    expect(differences.filter(isNotOfWords)).toEqual([])
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

  it('replays to what its checkpoint means, byte for byte, but for clocks, what is believed, which is learned anew, and the order of ended calls, by name then', async () => {
    const { scopes } = await replayScopes(
      openMemoryJournal({ history: { ...older, checkpoints: [] } }),
      'older',
    )
    const replayed = encodeScope(scopes[0]!.context)
    const ended = replayed.ended.map((generation) => [...generation].sort())
    // What only differences are taken of, the held clock and places in the ring, and what did not matter then.
    const { heldMs, nextPlace, rankServedAt, virtualTokens, debts, principals, belief, demand } =
      JSON.parse(meant)
    expect(belief).toEqual({ ...unknownBelief, charges: belief.charges })
    const readings = { heldMs, nextPlace, rankServedAt, virtualTokens, debts, principals, belief, demand }
    const seen = { ...replayed, ...readings, ended }
    expect(JSON.stringify(seen)).toBe(meant)
  })

  it.each([
    ['its entries', { ...older, checkpoints: [] }],
    ['its checkpoint', older],
  ])('is opened from %s, and the policy that it was written under is no change', async (_, history) => {
    const kernel = await open(history)
    const before = kernel.runners.get(scope)?.position
    // Lower ranks did not age then, and no turn was favored.
    const then = {
      capacity: 2,
      unclaimedExpiryMs: 30_000,
      maxRankDeferralMs: null,
      favor: 'arrival',
    } as const
    const runner = kernel.scope(scope, then)
    expect(runner.position).toBe(before)
    expect(runner.context.policy).toEqual(parsePolicy(then, contractPolicy))
    await kernel.close(0)
  })

  it('is refused by row, field and value when a field of it cannot be', async () => {
    const entries = older.entries.map((entry) => ({
      ...entry,
      record: entry.record.replace('"capacity":2', '"capacity":-2'),
    }))
    const why = async (history: typeof older) => (await open(history)).failures.get(scope)
    expect(String(await why({ entries, checkpoints: [] }))).toMatch(
      /entries 1 is unreadable: policy.capacity: expected an integer in \[1, 65536\], got -2/,
    )
    const snapshot = kept.snapshot.replace('"capacity":2', '"capacity":-2')
    expect(String(await why({ ...older, checkpoints: [{ ...kept, snapshot }] }))).toContain(
      'snapshot.policy.capacity: expected an integer in [1, 65536], got -2',
    )
  })
})

/** This version decides the same as the recording, in another order: each call goes in the event in which it went. */
const reordered = `entry 11 of ${scope}, 22:13:24.000, call.settled turn-1 (completed)
  ~ the same decisions, in another order or at another time`

/**
 * `wall-clock`: recorded while what background is owed was counted by the time of day, and no refusal gave
 * a turn back. `ramp`: recorded while refusals made plans by whole minutes, and nothing was believed.
 * `round-robin`: recorded while principals took turns by deficit round robin.
 * `before-presets`: recorded while a policy did not say its preset.
 */
describe.each(
  ['wall-clock', 'ramp', 'round-robin', 'before-presets'].flatMap((age) =>
    ['settle', 'cancel', 'refusals', 'restart', 'turns'].map((name) => [age, name] as const),
  ),
)('the older journal %s/%s', (age, name) => {
  const history = readGolden(`older/${age}/${name}`)
  const entries = { ...history, checkpoints: [] }
  const isReordered = name === 'settle' && age !== 'before-presets'

  it('replays to the decisions that it holds, except for the order of two that go in one event', async () => {
    const journal = openMemoryJournal({ history: entries })
    const { differences } = await replayScopes(journal, name)
    expect(differenceText(differences.filter(isNotOfWords))).toBe(isReordered ? reordered : '')
  })

  it('is opened from its checkpoint, and goes on', async () => {
    const kernel = await open(history)
    const runner = kernel.scope(scope)
    expect(runner.context.heldMs).toBeLessThanOrEqual(runner.context.at)
    expect(encodeScope(decodeScope(encodeScope(runner.context)))).toEqual(encodeScope(runner.context))
    await kernel.close(0)
  })

  it('is opened from its entries as well, and each call stands where it stood', async () => {
    const kernel = await open(entries)
    expect(kernel.failures.size).toBe(0)
    const idsOf = ({ waiting, inFlight }: EncodedScope) =>
      [...waiting, ...inFlight].map(({ call }) => call.id)
    const last = JSON.parse(history.checkpoints.at(-1)!.snapshot)
    const { scopes } = await replayScopes(openMemoryJournal({ history: entries }), name, { untilAt: last.at })
    const rebuilt = scopes.find(({ context }) => context.scope === last.scope)!.context
    expect(idsOf(encodeScope(rebuilt))).toEqual(idsOf(last))
    await kernel.close(0)
  })
})
