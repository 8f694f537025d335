/** `rightofway replay`: past states, times, and other policies. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { replay } from '../../src/cli/replaying.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { readRecord } from '../../src/host/read-record.ts'
import { replayScopes } from '../../src/host/replay.ts'
import { ManualClock } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { importJournal } from '../../src/journal/transfer.ts'
import { soakSeed } from '../../src/simulation/soak/seed.ts'
import { whatIf } from '../../src/simulation/what-if.ts'
import { temporaryPath } from '../journal/fixture.ts'
import { goldenPath, readGolden } from './golden.ts'
import { beginsAt, scenes } from './scenes.ts'

const scope = 'anthropic/k1/m'
const nothing = { scope: null, at: null, policyPath: null, json: false }

let journal = ''
beforeEach(async () => {
  journal = temporaryPath()
  // Entries alone: a checkpoint of the end says nothing of the way there.
  const lines = readFileSync(goldenPath('settle'), 'utf8').trim().split('\n')
  const entries = lines.filter((line) => !line.startsWith('{"checkpoint"'))
  const end = JSON.stringify({ end: { checkpoints: 0, entries: entries.length - 2 } })
  await importJournal(journal, [...entries.slice(0, -1), end])
})

describe('a past state', () => {
  it('is shown for a person, at a time given either way', async () => {
    const text = await replay({ ...nothing, journal, at: String(beginsAt + 3_000) })
    expect(text).toMatchInlineSnapshot(`
      "anthropic/k1/m at 2023-11-14T22:13:22.000Z, entry 10
        state      quietRamp.admitting, gate closed, capacity 4
        primary    0 waiting, 1 in flight
        auxiliary  2 waiting (longest 3.0 s), 0 in flight
        sent       181003 input tokens in the last minute
        in flight  turn-1: primary of default, dispatched, since 22:13:22.000 (primary)
        waiting    merge-4: auxiliary of default, since 22:13:20.000 (reserve-kept)
        waiting    compress-1: auxiliary of residence-b, since 22:13:20.500 (primary-pending)"
    `)
    expect(await replay({ ...nothing, journal, at: '2023-11-14T22:13:23Z' })).toBe(text)
  })

  it('is the snapshot as JSON, equal to what the live scope was', async () => {
    const text = await replay({ ...nothing, journal, json: true, scope })
    expect(text).toBe(readGolden('settle').checkpoints[0]?.snapshot)
  })

  it('is refused in one line when it cannot be', async () => {
    await expect(replay({ ...nothing, journal, at: 'yesterday' })).rejects.toThrow(
      '--at must be an ISO time or epoch milliseconds, got "yesterday"',
    )
    await expect(replay({ ...nothing, journal, scope: 'other' })).rejects.toThrow('knows no scope "other"')
    await expect(replay({ ...nothing, journal: `${journal}.none` })).rejects.toThrow('does not exist')
  })

  it('is refused where it was compacted, and given from the next checkpoint on', async () => {
    const { entries, checkpoints } = readGolden('settle')
    const compacted = openMemoryJournal({
      history: { entries: entries.slice(9), checkpoints: [{ ...checkpoints[0]!, at: beginsAt + 9_000 }] },
    })
    await expect(replayScopes(compacted, 'lanes.db', { untilAt: beginsAt + 3_000 })).rejects.toThrow(
      /the history of anthropic\/k1\/m was compacted.*its newest checkpoint is of 2023-11-14T22:13:29.000Z/,
    )
    const { scopes } = await replayScopes(compacted, 'lanes.db')
    expect(scopes.map(({ position }) => position)).toEqual([checkpoints[0]!.position])
  })

  it('of a real journal with retention is the same before and after its old entries are dropped', async () => {
    const path = temporaryPath()
    const clock = new ManualClock(Date.now() - 1_000)
    const first = await openSqliteJournal(path, { keepEntriesMs: 0, compactEveryMs: 0 })
    const kernel = await Kernel.open({ journal: first, journalPath: path, clock })
    const runner = kernel.scope(scope)
    const call = { lane: 'auxiliary', priorityClass: 'background_ingestion', principal: 'a' } as const
    const rest = {
      turnId: null,
      inputTokens: 1,
      outputTokens: 0,
      deadlineAt: null,
      dependsOn: [],
      parentId: null,
    }
    for (let n = 0; n < 50; n += 1)
      runner.tell({ type: 'call.submitted', call: { id: `c${n}`, ...call, ...rest } })
    await kernel.checkpoint(runner)
    runner.tell({ type: 'clock.woke' })
    clock.advance(500)
    runner.tell({ type: 'call.withdrawn', callId: 'c49' })
    const before = await replayScopes(first, path)
    await first.compact()
    expect(await replayScopes(first, path)).toEqual(before)
    await expect(replayScopes(first, path, { untilAt: 1 })).rejects.toThrow('was compacted')
    await kernel.close(0)
  })
})

describe('another policy', () => {
  const policy = (fields: object): string => {
    const path = join(journal, '..', 'policy.json')
    writeFileSync(path, JSON.stringify(fields))
    return path
  }

  it('that is the same would have changed nothing, in any story', () => {
    for (const name of Object.keys(scenes)) {
      const history = readGolden(name).entries.map((entry) => readRecord('golden', entry))
      expect(whatIf(scope, history, {}), name).toEqual([])
    }
  })

  it('that is the same would have changed nothing in long and faulty histories either', async () => {
    let changed = 0
    for (let seed = 1; seed <= 12; seed += 1) {
      for (const [name, records] of (await soakSeed(seed)).records) {
        const history = records.map((record) => JSON.parse(record))
        expect(whatIf(name, history, {}), `seed ${seed}, ${name}`).toEqual([])
        changed += whatIf(name, history, { inFlight: 'cancel', capacity: 1, reserve: 0 }).length
      }
    }
    expect(changed).toBeGreaterThan(0)
  })

  it('shows what each call would have heard instead', async () => {
    const text = await replay({ ...nothing, journal, policyPath: policy({ inFlight: 'tolerate' }) })
    expect(text).toMatchInlineSnapshot(`
      "anthropic/k1/m: 3 calls would have heard something else (- was, + would)
      turn-1
        - 22:13:20.500 defer: auxiliaries-in-flight (in primaryPending)
        - 22:13:22.000 release: primary (in quietRamp.admitting)
        + 22:13:20.500 admit: primary (in quietRamp.admitting)
      compress-1
        - 22:13:20.500 defer: primary-pending (in primaryPending)
        - 22:13:24.000 release: drain (in auxiliaryDraining)
        + 22:13:20.500 defer: primary-active (in quietRamp.admitting)
        + 22:13:22.500 release: drain (in auxiliaryDraining)
      merge-4
        - 22:13:24.000 release: drain (in auxiliaryDraining)
        + 22:13:22.500 release: drain (in auxiliaryDraining)"
    `)
  })

  it('lets calls that never ran take as long as others did, and those stopped only now start again', async () => {
    const text = await replay({ ...nothing, journal, policyPath: policy({ inFlight: 'cancel' }), json: true })
    const stories = text.split('\n').map((line) => JSON.parse(line))
    const turn = stories.find(({ callId }) => callId === 'turn-1')
    expect(
      turn.would.map(({ verdict, at }: { verdict: string; at: number }) => [verdict, at - beginsAt]),
    ).toEqual([
      ['defer', 500],
      ['release', 500],
    ])
    const merge = stories.find(({ callId }) => callId === 'merge-1')
    expect(merge.would.map(({ verdict }: { verdict: string }) => verdict)).toEqual([
      'admit',
      'cancel',
      'defer',
      'release',
    ])
  })

  it('says so when nothing would differ, and names a file that is no policy', async () => {
    expect(await replay({ ...nothing, journal, policyPath: policy({ capacity: 4 }) })).toBe(
      `${scope}: nothing would differ in 14 events`,
    )
    await expect(replay({ ...nothing, journal, policyPath: policy({ capacity: 0 }) })).rejects.toThrow(
      'policy.capacity: expected an integer in [1, 65536], got 0',
    )
    await expect(replay({ ...nothing, journal, policyPath: `${journal}.none` })).rejects.toThrow('ENOENT')
  })
})
