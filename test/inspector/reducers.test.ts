import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { History } from '../../inspector/history.ts'
import { foldActors, noActors } from '../../inspector/page/src/model/actors.ts'
import { CallBook, spanAt, spentMs } from '../../inspector/page/src/model/calls.ts'
import { FilteredLog } from '../../inspector/page/src/model/log.ts'
import { noFilter } from '../../inspector/page/src/model/log-filter.ts'
import { formatPlace, home, parsePlace } from '../../inspector/page/src/model/place.ts'
import { Track } from '../../inspector/page/src/model/track.ts'
import { worstFirst } from '../../inspector/page/src/model/waiting.ts'
import type { EntryFrame } from '../../inspector/protocol.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { scopeFacts } from '../../src/host/scope-facts.ts'
import { ManualClock, openHost } from '../../src/index.ts'
import { entriesOf, openStory, type Story, scope, startMs, tellStory } from './story.ts'

const pause = {
  kind: 'overloaded',
  scope: 'provider',
  retryAfterMs: 60_000,
  retryable: true,
  facts: {},
} as const
const nothing = { base: { scope, position: 0, at: 0, snapshot: null }, earlier: 0, later: 0 }
let story: Story
let entries: ReadonlyArray<EntryFrame>
let history: History

beforeAll(async () => {
  story = await openStory()
  for (let round = 0; round < 4; round += 1) await tellStory(story, round)
  entries = await entriesOf(kernelOf(story.host).journal)
  history = new History(kernelOf(story.host).journal, 'of this test')
})
afterAll(() => story.host.close())

const trackOf = (): Track => {
  const track = new Track(nothing)
  track.add(entries)
  track.replay(() => true)
  return track
}

describe('a track', () => {
  it('shows at every moment the state that a replay of the journal gives', async () => {
    const track = trackOf()
    expect(track.disagreements).toBe(0)
    for (const [index, { position }] of entries.entries()) {
      const { snapshot } = await history.stateAt(scope, { position })
      expect(encodeScope(track.contextAt(index))).toEqual(snapshot)
    }
  })

  it('comes to the same state from a base in the middle, and forgets nothing that still lives', async () => {
    const middle = Math.floor(entries.length / 2)
    const base = await history.stateAt(scope, { position: entries[middle - 1]!.position })
    const track = new Track({ base, earlier: middle, later: entries.length - middle })
    track.add(entries)
    track.replay(() => true)
    expect(track.entries.length).toBe(entries.length - middle)
    expect(track.disagreements).toBe(0)
    const whole = trackOf()
    expect(encodeScope(track.contextAt(track.entries.length - 1))).toEqual(
      encodeScope(whole.contextAt(entries.length - 1)),
    )
  })

  it('can be looked at before its replica has come to the end', () => {
    const track = new Track(nothing)
    track.add(entries)
    let steps = 2
    track.replay(() => steps-- > 0)
    expect(track.progress).toBeLessThan(1)
    expect(encodeScope(track.contextAt(entries.length - 1))).toEqual(
      encodeScope(trackOf().contextAt(entries.length - 1)),
    )
  })

  it('passes over entries that it has, and those of other scopes', () => {
    const track = trackOf()
    track.add(entries)
    track.add([{ ...entries[0]!, position: 1e9, scope: 'another' }])
    expect(track.entries.length).toBe(entries.length)
  })

  it('goes through every state, and knows which arrows led there', () => {
    const track = trackOf()
    const states = new Set(track.series.bands.map(({ state }) => state))
    expect([...states]).toEqual(
      expect.arrayContaining(['idle', 'primaryPending', 'auxiliaryDraining', 'settled']),
    )
    const refused = entries.findIndex(
      ({ event }) => event.type === 'call.settled' && event.outcome === 'throttled',
    )
    // The holder of a bare permit is waited for: the scope moves on when it asks again.
    const asked = refused + 1
    expect(entries[asked]!.event.type).toBe('call.submitted')
    expect(track.arrowsAt(refused)).toEqual([])
    expect(track.arrowsAt(asked)).toMatchObject([
      { sourceId: 'scope.quietRamp.admitting', targetId: 'scope.quietRamp.quiet', guard: 'headMustWait' },
    ])
    expect(track.lastMove(asked)).toBe(asked)
    expect(track.lastMove(0)).toBe(-1)
  })

  it('finds moments by position and by time', () => {
    const track = trackOf()
    expect(track.indexAt(0)).toBe(-1)
    expect(track.indexAt(entries[7]!.position)).toBe(7)
    expect(track.indexAtTime(startMs - 1)).toBe(-1)
    expect(track.indexAtTime(startMs + 45)).toBe(7)
    expect(track.indexAtTime(Number.MAX_SAFE_INTEGER)).toBe(entries.length - 1)
  })

  it('says so when its core decides otherwise than was recorded', () => {
    const track = new Track(nothing)
    track.add(entries.map((entry) => (entry.position === 4 ? { ...entry, decisions: [] } : entry)))
    track.replay(() => true)
    expect(track.disagreements).toBe(1)
  })

  it('makes the row of a moment as the host does now', () => {
    const track = trackOf()
    const { context } = kernelOf(story.host).runners.get(scope)!
    const last = track.contextAt(track.entries.length - 1)
    expect(scopeFacts(last)).toEqual(scopeFacts(context))
  })

  it('samples tokens and calls over time, with the refusals', () => {
    const { series } = trackOf()
    expect(series.refusals).toHaveLength(4)
    expect(series.at).toEqual([...series.at].sort((one, other) => one - other))
    expect(Math.max(...series.values.auxiliaryWaiting.map(Number))).toBe(4)
    expect(series.countUntil(startMs - 1)).toBe(0)
    expect(series.countUntil(series.at.at(-1)!)).toBe(series.at.length)
  })
})

describe('calls as bars', () => {
  it('tell where a call was from when to when, and why', () => {
    const book = trackOf().calls
    const turn = book.get('turn-0')!
    expect(
      turn.spans.map(({ phase, reason, from, to }) => [phase, reason, from - startMs, to! - startMs]),
    ).toEqual([
      ['waiting', 'auxiliaries-in-flight', 20, 57],
      ['admitted', 'primary', 57, 68],
      ['waiting', 'refused-by-provider', 68, 468],
      ['admitted', 'primary', 468, 668],
      ['streaming', 'primary', 668, 675],
    ])
    expect(turn).toMatchObject({ end: 'completed', grants: 2 })
    expect(spanAt(turn, startMs + 60)?.phase).toBe('admitted')
    expect(spanAt(turn, startMs + 9_999)).toBeNull()
    expect(spentMs(turn, 'waiting', startMs + 9_999)).toBe(37 + 400)
    expect(spentMs(turn, 'waiting', startMs + 100)).toBe(37 + 32)
  })

  it('never share a row at the same time, and use few rows', () => {
    const { bars, rows } = ((book) => ({ bars: book.bars, rows: book.rows('auxiliary') }))(trackOf().calls)
    for (const bar of bars) {
      for (const other of bars) {
        if (bar === other || bar.row !== other.row || bar.call.lane !== other.call.lane) continue
        const apart = bar.endedAt! <= other.submittedAt || other.endedAt! <= bar.submittedAt
        expect(apart, `${bar.call.id} and ${other.call.id}`).toBe(true)
      }
    }
    expect(rows).toBeLessThanOrEqual(5)
  })

  it('do not end with an answer to a second submission of the same id', () => {
    const book = new CallBook()
    for (const entry of entries) book.add(entry)
    const again = entries.find(({ event }) => event.type === 'call.submitted' && event.call.id === 'merge-0')!
    const at = again.event.at + 1e6
    book.add({
      ...again,
      event: { type: 'clock.woke', at },
      decisions: [{ callId: 'merge-0', verdict: 'reject', reason: 'already-settled', at, state: 'idle' }],
    })
    expect(book.get('merge-0')).toMatchObject({ end: 'completed' })
  })
})

describe('the log', () => {
  it('has every decision once, with the lane and the principal of its call', () => {
    const { log } = trackOf()
    expect(log.rows).toHaveLength(entries.flatMap(({ decisions }) => decisions).length)
    expect(log.rows.every(({ lane, principal }) => lane !== null && principal !== null)).toBe(true)
    expect([...log.principals].sort()).toEqual(['ingestion', 'memory', 'residence'])
  })

  it.each([
    [{ lane: 'primary' as const }, ({ callId }: { callId: string }) => callId.startsWith('turn')],
    [{ verdict: 'release' as const }, ({ verdict }: { verdict: string }) => verdict === 'release'],
    [{ reason: 'primary-pending' }, ({ reason }: { reason: string }) => reason === 'primary-pending'],
    [{ principal: 'ingestion' }, ({ callId }: { callId: string }) => callId.startsWith('ingest')],
    [{ text: 'QUIETRAMP.quiet' }, ({ state }: { state: string }) => state === 'quietRamp.quiet'],
    [
      { text: 'turn-2', verdict: 'defer' as const },
      (row: { callId: string; verdict: string }) => row.callId === 'turn-2' && row.verdict === 'defer',
    ],
  ])('lets pass %j', (filter, expected) => {
    const { log } = trackOf()
    const { indices, length } = new FilteredLog(log, { ...noFilter, ...filter }).until(log.rows.length)
    const passed = indices.slice(0, length).map((index) => log.rows[index])
    expect(passed).toEqual(log.rows.filter(expected))
    expect(passed.length).toBeGreaterThan(0)
  })

  it('ends at the moment that is looked at, also while more comes in', () => {
    const track = new Track(nothing)
    track.add(entries.slice(0, 20))
    const filtered = new FilteredLog(track.log, noFilter)
    const count = track.log.countUntil(entries[9]!.position)
    const before = filtered.until(count).length
    track.add(entries)
    expect(filtered.until(count).length).toBe(before)
    expect(filtered.until(track.log.rows.length).length).toBe(track.log.rows.length)
  })
})

describe('a link', () => {
  it.each([
    [home],
    [{ view: 'lanes', scope: 'a/b/c d&e', position: 42, call: 'x#1', filter: noFilter }],
    [{ view: 'decisions', scope: null, position: 0, call: null, filter: noFilter }],
  ] as const)('holds %j', (place) => {
    expect(parsePlace(formatPlace(place))).toEqual(place)
  })

  it('carries the filter of decisions', () => {
    const filter = { ...noFilter, lane: 'primary', verdict: 'defer', text: 'a & b=c' } as const
    expect(parsePlace(formatPlace({ ...home, filter }))).toEqual({ ...home, filter })
    expect(parsePlace('#lane=nobody&verdict=perhaps')).toEqual(home)
  })

  it.each([['#'], ['#view=nowhere&at=-3'], ['#at=soon&scope='], ['']])('survives %j', (hash) => {
    expect(parsePlace(hash)).toEqual(home)
  })
})

describe('waiting calls', () => {
  it('begin with the primary that has waited longest, behind however many auxiliaries it came', async () => {
    const host = await openHost({ clock: new ManualClock(startMs) })
    const lanes = host.scope('flooded', { capacity: 2 })
    const runner = kernelOf(host).runners.get('flooded')!
    runner.tell({ type: 'provider.evidence', evidence: pause })
    const asked = Array.from({ length: 70 }, (_, index) =>
      lanes.admit({ id: `a${index}`, lane: 'auxiliary' }),
    )
    asked.push(lanes.admit({ id: 'p', lane: 'primary' }))
    const order = worstFirst(runner.context).map(({ call }) => call.id)
    expect(order.slice(0, 3)).toEqual(['p', 'a0', 'a1'])
    expect(order).toHaveLength(71)
    const refused = Promise.allSettled(asked)
    await host.close()
    await refused
  })
})

describe('actors that stream in', () => {
  it('are known by their newest state; messages are bounded and counted', () => {
    let state = foldActors(noActors, [
      {
        kind: 'actor',
        at: 1,
        sessionId: 'x:0',
        parentId: null,
        name: 'app',
        status: 'active',
        value: 'off',
        chart: null,
      },
      { kind: 'snapshot', at: 2, sessionId: 'x:0', status: 'active', value: 'on', eventType: 'TOGGLE' },
    ])
    expect(state.actors.get('x:0')).toMatchObject({ value: 'on', previousValue: 'off', lastEvent: 'TOGGLE' })
    const event = { kind: 'event', at: 3, sessionId: 'x:0', sourceId: null, eventType: 'TICK' } as const
    state = foldActors(
      state,
      Array.from({ length: 1_200 }, () => event),
    )
    expect(state.messages).toHaveLength(500)
    expect(state.total).toBe(1_200)
    expect(state.messages.at(-1)?.number).toBe(1_200)
  })
})
