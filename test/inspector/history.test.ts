import { expect, it } from 'vitest'
import { History, HistoryDropped } from '../../inspector/history.ts'
import { Track } from '../../inspector/page/src/model/track.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { openStory, scope, settle, tellStory } from './story.ts'

const longStory = async (keepEntries: number) => {
  const journal = openMemoryJournal({ keepEntries })
  const story = await openStory(journal)
  for (let round = 0; round < 30; round += 1) await tellStory(story, round)
  return { story, journal, history: new History(journal, 'of this test') }
}

it('begins a window so that about as many entries follow, and a track comes to the present', async () => {
  const { story, history } = await longStory(Number.POSITIVE_INFINITY)
  const all = await history.entries({ scope, after: 0, limit: 100_000 })
  const window = await history.window(scope, 300)
  expect(window.later).toBeGreaterThanOrEqual(300)
  expect(window.later).toBeLessThan(300 + 256)
  expect(window.earlier + window.later).toBe(all.entries.length)
  const track = new Track(window)
  track.add((await history.entries({ scope, after: window.base.position, limit: 100_000 })).entries)
  track.replay(() => true)
  expect(track.entries.length).toBe(window.later)
  expect(track.disagreements).toBe(0)
  const { context } = kernelOf(story.host).runners.get(scope)!
  expect(encodeScope(track.contextAt(track.entries.length - 1))).toEqual(encodeScope(context))
  const earlier = await history.window(scope, 300, window.base.position)
  expect(earlier.base.position).toBeLessThan(window.base.position)
  await story.host.close()
})

it('replays from a checkpoint where there is one, to the same state as from the beginning', async () => {
  const { story, history, journal } = await longStory(Number.POSITIVE_INFINITY)
  const position = 400
  const before = await history.stateAt(scope, { position })
  const late = await history.stateAt(scope, { position: 600 })
  await kernelOf(story.host).checkpoint(kernelOf(story.host).runners.get(scope)!)
  expect(await journal.checkpoints()).toHaveLength(1)
  expect(await new History(journal, 'x').stateAt(scope, { position })).toEqual(before)
  expect(await new History(journal, 'x').stateAt(scope, { at: late.at })).toMatchObject({ at: late.at })
  await story.host.close()
})

it('says so where retention has dropped the entries, and begins after them', async () => {
  const { story, journal } = await longStory(100)
  const kernel = kernelOf(story.host)
  const runner = kernel.runners.get(scope)!
  await kernel.checkpoint(runner)
  await tellStory(story, 31)
  await settle()
  const history = new History(journal, 'of this test')
  const kept = await history.entries({ after: 0, limit: 100_000 })
  expect(kept.entries[0]?.position).toBeGreaterThan(1)
  await expect(history.stateAt(scope, { position: 5 })).rejects.toThrow(HistoryDropped)
  const window = await history.window(scope, 100_000)
  const track = new Track(window)
  track.add((await history.entries({ scope, after: window.base.position, limit: 100_000 })).entries)
  track.replay(() => true)
  expect(track.disagreements).toBe(0)
  expect(encodeScope(track.contextAt(track.entries.length - 1))).toEqual(encodeScope(runner.context))
  await story.host.close()
})

it('knows nothing of an empty journal, without complaint', async () => {
  const host = await openHost()
  const history = new History(kernelOf(host).journal, 'of this test')
  expect(await history.scopes()).toEqual([])
  expect(await history.rowsAt({ at: 1e15 })).toEqual([])
  expect(await history.stateAt('nobody', { position: 10 })).toMatchObject({ position: 0, snapshot: null })
  expect(await history.window('nobody', 10)).toMatchObject({ earlier: 0, later: 0 })
  expect(await history.explain('nobody', { nowMs: 0 })).toBeNull()
  await host.close()
})
