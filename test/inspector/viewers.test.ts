import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { projectEvent } from '../../inspector/projection.ts'
import type { EntryFrame, Frame } from '../../inspector/protocol.ts'
import { Viewers } from '../../inspector/viewers.ts'
import { contractPolicy, type ScopeEvent } from '../../machines/index.ts'
import { median } from './median.ts'

const entry = (position: number): EntryFrame => ({
  scope: 'pool',
  position,
  event: { type: 'call.accepted', at: position, callId: `call-${position}` },
  decisions: [],
})

const framesOf = (texts: ReadonlyArray<string>): ReadonlyArray<Frame> =>
  texts
    .join('')
    .split('\n\n')
    .filter((text) => text.startsWith('data: '))
    .map((text) => JSON.parse(text.slice('data: '.length)) as Frame)

const positionsIn = (frames: ReadonlyArray<Frame>): number[] =>
  frames.flatMap((frame) => (frame.kind === 'entries' ? frame.entries.map(({ position }) => position) : []))

const viewersWith = (ringSize?: number) =>
  new Viewers({ rows: () => [], flushMs: 1, ...(ringSize === undefined ? {} : { ringSize }) })

it('brings every entry to a viewer that keeps up, in order', async () => {
  const viewers = viewersWith()
  const texts: string[] = []
  viewers.join({ write: (text) => texts.push(text) > 0 }, [])
  for (let position = 1; position <= 5_000; position += 1) viewers.entry(entry(position))
  while (positionsIn(framesOf(texts)).length < 5_000) await sleep(2)
  expect(positionsIn(framesOf(texts))).toEqual(Array.from({ length: 5_000 }, (_, index) => index + 1))
  expect(viewers.dropped).toBe(0)
})

it('drops the oldest for a viewer that is slower than the ring, counts them, and says so', async () => {
  const viewers = viewersWith(100)
  const texts: string[] = []
  let isOpen = false
  const viewer = viewers.join(
    {
      write: (text) => {
        texts.push(text)
        return isOpen
      },
    },
    [{ kind: 'hello', live: true, actions: false, host: 'one' }],
  )
  for (let position = 1; position <= 1_000; position += 1) viewers.entry(entry(position))
  await sleep(10)
  expect(positionsIn(framesOf(texts))).toEqual([])
  isOpen = true
  viewer.resume()
  await sleep(10)
  const frames = framesOf(texts)
  expect(frames[1]).toEqual({ kind: 'dropped', count: 900, total: 900 })
  expect(positionsIn(frames)).toEqual(Array.from({ length: 100 }, (_, index) => 901 + index))
  expect(viewers.dropped).toBe(900)
})

it('keeps a slow viewer from the others: they lose nothing', async () => {
  const viewers = viewersWith(50)
  const quick: string[] = []
  viewers.join({ write: () => false }, [{ kind: 'hello', live: true, actions: false, host: 'one' }])
  viewers.join({ write: (text) => quick.push(text) > 0 }, [])
  for (let round = 0; round < 10; round += 1) {
    for (let one = 1; one <= 40; one += 1) viewers.entry(entry(round * 40 + one))
    await sleep(5)
  }
  expect(positionsIn(framesOf(quick))).toHaveLength(400)
})

it('makes the bytes once for all viewers that stand at the same place', async () => {
  const viewers = viewersWith()
  const seen = new Set<string>()
  let writes = 0
  for (let one = 0; one < 100; one += 1) {
    viewers.join(
      {
        write: (text) => {
          if (text !== '') {
            seen.add(text)
            writes += 1
          }
          return true
        },
      },
      [],
    )
  }
  for (let position = 1; position <= 100; position += 1) viewers.entry(entry(position))
  await sleep(10)
  expect(writes).toBe(100)
  expect(seen.size).toBe(1)
})

it('stops its work when the last viewer leaves', async () => {
  const viewers = viewersWith()
  const texts: string[] = []
  const viewer = viewers.join({ write: (text) => texts.push(text) > 0 }, [])
  viewer.leave()
  viewers.entry(entry(1))
  await sleep(5)
  expect(positionsIn(framesOf(texts))).toEqual([])
  expect(viewers.count).toBe(0)
})

it('costs a scope next to nothing per event, with a hundred viewers of which half are stuck', () => {
  const costUs = (count: number): number => {
    const viewers = new Viewers({ rows: () => [] })
    for (let one = 0; one < count; one += 1) viewers.join({ write: () => one % 2 === 0 }, [])
    const began = performance.now()
    for (let position = 1; position <= 50_000; position += 1) viewers.entry(entry(position))
    const us = ((performance.now() - began) / 50_000) * 1_000
    viewers.close()
    return us
  }
  const alone = median(5, () => costUs(0))
  const crowded = median(5, () => costUs(100))
  console.log(`per event: ${alone.toFixed(2)} us without a viewer, ${crowded.toFixed(2)} us with 100`)
  expect(crowded - alone).toBeLessThan(2)
})

it('costs a host little in all, frames made and written to a hundred viewers', async () => {
  const cpuMs = async (count: number): Promise<number> => {
    const viewers = new Viewers({ rows: () => [] })
    for (let one = 0; one < count; one += 1) viewers.join({ write: () => true }, [])
    const before = process.cpuUsage()
    for (let batch = 0; batch < 50; batch += 1) {
      for (let one = 1; one <= 200; one += 1) viewers.entry(entry(batch * 200 + one))
      await sleep(4)
    }
    await sleep(150)
    const { user, system } = process.cpuUsage(before)
    viewers.close()
    return (user + system) / 1_000
  }
  const [alone, one, crowded] = [await cpuMs(0), await cpuMs(1), await cpuMs(100)]
  console.log(
    `10,000 events, process CPU: ${alone.toFixed(0)} ms without a viewer, ${one.toFixed(0)} ms with one, ${crowded.toFixed(0)} ms with 100`,
  )
  expect(crowded - alone).toBeLessThan(400)
})

const secret = 'PLANTED'
const spiced = (event: object): ScopeEvent =>
  ({ ...event, at: 5, prompt: secret, extra: { secret } }) as never

it.each<[string, object]>([
  [
    'call.submitted',
    {
      call: {
        id: 'c',
        turnId: null,
        lane: 'primary',
        priorityClass: 'interactive',
        principal: 'p',
        inputTokens: 1,
        outputTokens: 2,
        deadlineAt: null,
        dependsOn: [],
        parentId: null,
        messages: secret,
      },
    },
  ],
  ['call.withdrawn', { callId: 'c' }],
  ['call.dispatched', { callId: 'c' }],
  ['call.accepted', { callId: 'c' }],
  [
    'call.settled',
    {
      callId: 'c',
      outcome: 'throttled',
      usage: { inputTokens: 1, outputTokens: null, text: secret },
      evidence: {
        kind: 'overloaded',
        scope: 'model',
        retryAfterMs: null,
        retryable: true,
        message: secret,
        facts: { limit: 5, unit: secret, note: secret },
      },
      owner: 'sends',
      late: true,
      note: secret,
    },
  ],
  ['call.promoted', { callId: 'c' }],
  ['call.claimed', { callId: 'c' }],
  [
    'provider.evidence',
    { limits: [{ dimension: 'requests-per-day', limit: 1, remaining: 1, resetAtMs: null, header: secret }] },
  ],
  ['wait.released', {}],
  ['turn.began', { turnId: 't', betweenRounds: 'hold' }],
  ['turn.ended', { turnId: 't' }],
  [
    'policy.changed',
    { policy: { ...contractPolicy, limits: { ...contractPolicy.limits, secret }, note: secret } },
  ],
  ['foreground.changed', { active: true }],
  ['clock.woke', {}],
  ['host.closing', { unused: [] }],
  ['host.recovered', {}],
])('lets only known fields of %s into a frame', (type, fields) => {
  const frame = projectEvent(spiced({ type, ...fields }))
  expect(frame).toMatchObject({ type, at: 5 })
  expect(JSON.stringify(frame)).not.toContain(secret)
})

it('keeps every field of a policy', () => {
  expect(projectEvent({ type: 'policy.changed', at: 1, policy: contractPolicy })).toEqual({
    type: 'policy.changed',
    at: 1,
    policy: contractPolicy,
  })
})

it('shows nothing of an event that this version does not know', () => {
  expect(projectEvent(spiced({ type: 'call.whispered' }))).toBeNull()
})
