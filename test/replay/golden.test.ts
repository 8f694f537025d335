/** Golden journals: recorded decisions stay the same, and give the same state to the byte. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { differenceText, replayScopes } from '../../src/host/replay.ts'
import { ManualClock } from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { type JournalHistory, openMemoryJournal } from '../../src/journal/memory.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { exportJournal, importJournal } from '../../src/journal/transfer.ts'
import { temporaryPath } from '../journal/fixture.ts'
import { goldenPath, readGolden } from './golden.ts'
import { beginsAt, scenes } from './scenes.ts'

const names = Object.keys(scenes)

const journalOf = ({ entries }: JournalHistory): Pick<Journal, 'read' | 'checkpoints'> =>
  openMemoryJournal({ history: { entries, checkpoints: [] } })

/** Replays without checkpoints, and holds every decision to the record. */
const replayed = async (golden: JournalHistory) => {
  const { scopes, differences } = await replayScopes(journalOf(golden), 'golden')
  return { scopes, diff: differenceText(differences) }
}

describe.each(names)('the golden journal %s', (name) => {
  it('replays to the same decisions and to the same snapshot, byte for byte', async () => {
    const golden = readGolden(name)
    const { scopes, diff } = await replayed(golden)
    expect(
      diff,
      `decisions changed; if they were meant to: node test/replay/record.ts ${name}\n${diff}`,
    ).toBe('')
    for (const { context } of scopes) {
      const kept = golden.checkpoints.find(({ scope }) => scope === context.scope)
      expect(JSON.stringify(encodeScope(context))).toBe(kept?.snapshot)
    }
    expect(scopes.length).toBe(golden.checkpoints.length)
  })

  it('is small and names nothing but ids', () => {
    const text = readFileSync(goldenPath(name), 'utf8')
    expect(text.length).toBeLessThan(16_384)
    expect(text).not.toMatch(/message|content|prompt|sk-/)
  })

  it('is a whole export: it is imported, opened by a host, and exported again to the byte', async () => {
    const text = readFileSync(goldenPath(name), 'utf8')
    const path = temporaryPath()
    await importJournal(path, text.split('\n'))
    const lines: string[] = []
    for await (const line of exportJournal(path)) lines.push(line)
    expect(lines.join('')).toBe(text)
    const journal = await openSqliteJournal(path)
    const kernel = await Kernel.open({ journal, journalPath: path, clock: new ManualClock(beginsAt) })
    expect([...kernel.runners.keys()]).toEqual(['anthropic/k1/m'])
    await kernel.close(0)
  })
})

it('shows a change that alters decisions as a diff of decisions', async () => {
  const golden = readGolden('settle')
  const entries = golden.entries.map((entry) => ({
    ...entry,
    record: entry.record
      .replaceAll('"reason":"drain"', '"reason":"open"')
      .replaceAll('reserve-kept', 'budget'),
  }))
  const { diff } = await replayed({ ...golden, entries })
  expect(diff).toMatchInlineSnapshot(`
    "entry 5 of anthropic/k1/m, 22:13:20.000, call.submitted merge-4
      - defer merge-4: budget (in idle)
      + defer merge-4: reserve-kept (in idle)
    entry 11 of anthropic/k1/m, 22:13:24.000, call.settled turn-1 (completed)
      - release compress-1: open (in auxiliaryDraining)
      - release merge-4: open (in auxiliaryDraining)
      + release compress-1: drain (in auxiliaryDraining)
      + release merge-4: drain (in auxiliaryDraining)"
  `)
})

it('shows the first twenty entries of a diff, and counts the rest', async () => {
  const golden = readGolden('settle')
  const many = Array.from({ length: 25 }, (_, index) => ({
    scope: 's',
    position: index + 1,
    event: { type: 'clock.woke', at: index } as const,
    was: [],
    is: [],
  }))
  expect(differenceText(many).split('\n').at(-1)).toBe('... and 5 more entries')
  expect(golden.entries.length).toBeGreaterThan(0)
})
