/** Whatever comes in by whichever door, a scope goes on, and its journal opens again. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { replayScopes } from '../../src/host/replay.ts'
import { InvalidInput, LaneHost, ManualClock } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { runs } from '../properties/runs.ts'
import { settle } from './bench.ts'

const circular: { self?: unknown } = {}
circular.self = circular
const throwing = {
  get inputTokens(): number {
    throw new Error('a getter throws')
  },
}

/** Values that a number's place may hold. */
const hostile: ReadonlyArray<unknown> = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  -0,
  0.5,
  1_562.5,
  1e300,
  2 ** 53 - 1,
  2 ** 53,
  Number.MIN_VALUE,
  null,
  undefined,
  '',
  '17',
  true,
  12n,
  2n ** 80n,
  Symbol('tokens'),
  circular,
  [],
  () => 1,
  new Date(0),
]

const opened = async (history?: { entries: never[]; checkpoints: never[] }) => {
  const journal = openMemoryJournal(history === undefined ? {} : { history })
  const clock = new ManualClock(1_000_000)
  const host = new LaneHost(await Kernel.open({ journal, journalPath: 'memory', clock }))
  return { host, journal, clock }
}

/** Closes the host; a later one must open to the same state, from its checkpoints and from its entries. */
const opensAgain = async ({ host, journal }: Awaited<ReturnType<typeof opened>>): Promise<void> => {
  const runner = kernelOf(host).runners.get('scope')!
  expect(kernelOf(host).failure).toBe(null)
  expect(runner.stopped('any')).toBe(null)
  const text = JSON.stringify(encodeScope(runner.context))
  expect(JSON.stringify(encodeScope(decodeScope(JSON.parse(text))))).toBe(text)
  await host.close()
  const end = JSON.stringify(encodeScope(runner.context))
  const { scopes } = await replayScopes(
    openMemoryJournal({ history: { ...journal.survivors(), checkpoints: [] } }),
    'memory',
  )
  expect(JSON.stringify(encodeScope(scopes[0]!.context))).toBe(end)
  const later = openMemoryJournal({ history: journal.survivors() })
  const again = await Kernel.open({
    journal: later,
    journalPath: 'memory',
    clock: new ManualClock(2_000_000),
  })
  await again.close(0)
}

const name = (value: unknown): string =>
  typeof value === 'object' || typeof value === 'function' ? `a ${typeof value}` : String(value)

describe.each(hostile.map((value) => [name(value), value] as const))(
  'a provider that says %s',
  (_, value) => {
    it('as usage, its fields, evidence, their fields or limits stops nothing', async () => {
      const bench = await opened()
      const scope = bench.host.scope('scope', { pacingMaxMs: 250 })
      const usages = [value, { inputTokens: value, outputTokens: value }, throwing]
      for (const [index, usage] of usages.entries()) {
        const answer = scope.run({ id: `used-${index}`, inputTokens: 10 }, async () => 'answer', {
          usage: () => usage as never,
        })
        await expect(answer).resolves.toBe('answer')
      }
      const sound = { kind: 'overloaded', scope: 'model', retryAfterMs: 1, retryable: true, facts: {} }
      const facts = { currentLimit: value, limit: value, used: value, unit: value }
      const said = [
        value,
        ...Object.keys(sound).map((field) => ({ ...sound, [field]: value })),
        { ...sound, facts },
      ]
      for (const [index, evidence] of said.entries()) {
        const failed = scope
          .run(
            { id: `failed-${index}`, deadlineAt: 1_000_000 + 60_000 },
            async () => Promise.reject('refused'),
            {
              evidence: () => evidence as never,
            },
          )
          .catch((error: unknown) => error)
        await settle(2)
        kernelOf(bench.host).runners.get('scope')!.takeAway(`failed-${index}`)
        await failed
        scope.releaseWait()
      }
      const reading = { dimension: 'requests-per-minute', limit: 9, remaining: 9, resetAtMs: 0 } as const
      for (const field of Object.keys(reading)) scope.learn([{ ...reading, [field]: value } as never])
      scope.learn([value as never])
      await opensAgain(bench)
    })
  },
)

describe('a caller that says what cannot be', () => {
  it.each<[string, object, string]>([
    ['no outcome', { outcome: 'done' }, 'settlement.outcome: expected one of completed, failed'],
    [
      'NaN tokens',
      { outcome: 'completed', usage: { inputTokens: Number.NaN } },
      'settlement.usage.inputTokens',
    ],
    ['negative tokens', { outcome: 'completed', usage: { outputTokens: -1 } }, 'in [0, 1000000000], got -1'],
    ['a BigInt', { outcome: 'completed', usage: { inputTokens: 1n } }, 'settlement.usage.inputTokens'],
    ['text for usage', { outcome: 'completed', usage: '12' }, 'settlement.usage'],
    ['an unknown kind', { outcome: 'throttled', evidence: { kind: 'x' } }, 'settlement.evidence.kind'],
    [
      'an endless wait',
      {
        outcome: 'throttled',
        evidence: { kind: 'overloaded', scope: 'model', retryable: true, facts: {}, retryAfterMs: Infinity },
      },
      'settlement.evidence.retryAfterMs: expected null or milliseconds in [0, 3162240000000], got Infinity',
    ],
    [
      'no facts',
      {
        outcome: 'throttled',
        evidence: { kind: 'overloaded', scope: 'model', retryable: true, retryAfterMs: null },
      },
      'settlement.evidence.facts',
    ],
  ])('is told: %s; nothing is settled by it', async (_, settlement, problem) => {
    const bench = await opened()
    const permit = await bench.host.scope('scope').admit({ id: 'a' })
    expect(() => permit.settle(settlement as never)).toThrow(InvalidInput)
    expect(() => permit.settle(settlement as never)).toThrow(problem)
    expect(permit.settled).toBe(false)
    permit.settle({ outcome: 'completed', usage: { inputTokens: 1250 * 1.25, outputTokens: null } })
    await opensAgain(bench)
  })

  it.each(hostile.map((value) => [name(value), value] as const))(
    'is told of any other word: %s',
    async (_, value) => {
      const bench = await opened()
      const scope = bench.host.scope('scope', {})
      await scope.run({ id: 'a' }, async () => 1)
      const word = value as never
      if (typeof value !== 'string' || value === '') {
        expect(() => scope.beginTurn(word)).toThrow(InvalidInput)
        expect(() => scope.endTurn(word)).toThrow(InvalidInput)
        expect(() => scope.promote(word)).toThrow(InvalidInput)
        expect(() => scope.withdraw(word)).toThrow(InvalidInput)
      }
      if (value !== undefined)
        expect(() => scope.beginTurn('t', { betweenRounds: word })).toThrow(InvalidInput)
      if (typeof value !== 'boolean') expect(() => scope.setForeground(word)).toThrow(InvalidInput)
      if (!Array.isArray(value)) expect(() => scope.learn(word)).toThrow(InvalidInput)
      await opensAgain(bench)
    },
  )
})

describe('a clock that shows what is no time', () => {
  it.each([Number.NaN, Infinity, -Infinity, -5, 1e300, 1_000_000.75, undefined])('%s', async (shown) => {
    const journal = openMemoryJournal()
    let nowMs: unknown = 1_000_000
    const timers = new ManualClock()
    const clock = { now: () => nowMs as number, after: timers.after.bind(timers) }
    const host = new LaneHost(await Kernel.open({ journal, journalPath: 'memory', clock }))
    const scope = host.scope('scope', {})
    nowMs = shown
    await scope.run({ id: 'a' }, async () => 1)
    nowMs = 1_000_500
    await scope.run({ id: 'b' }, async () => 1)
    await opensAgain({ host, journal, clock: timers })
  })
})

/** What may be done to a scope, with any number. */
const anyNumber = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(...hostile), fc.nat({ max: 100_000 }))
const anyAct = fc.record({
  kind: fc.constantFrom('run', 'refuse', 'learn', 'turn', 'pass', 'checkpoint', 'admit'),
  id: fc.nat({ max: 12 }),
  lane: fc.constantFrom('primary', 'auxiliary'),
  numbers: fc.tuple(anyNumber, anyNumber, anyNumber),
  evidenceKind: fc.constantFrom(
    'overloaded',
    'input-tokens-per-minute',
    'acceleration',
    'concurrency',
    'quota-exhausted',
  ),
})

it('whatever events a scope can be brought to hold, its snapshot holds, and its journal opens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAct, { maxLength: 30 }), async (acts) => {
      const bench = await opened()
      const { host, clock } = bench
      const scope = host.scope('scope', {
        capacity: 3,
        limits: { inputTokensPerMinute: 1_000_000 },
        lingerMs: 0,
      })
      for (const [index, { kind, id, lane, numbers, evidenceKind }] of acts.entries()) {
        const [one, two, three] = numbers as [never, never, never]
        const request = { id: `${id}-${index}`, lane, inputTokens: 500 } as const
        const evidence = {
          kind: evidenceKind,
          scope: 'model',
          retryAfterMs: one,
          retryable: true,
          facts: { currentLimit: two, nextLimit: three, limit: one },
        }
        if (kind === 'run')
          void scope
            .run(request, async () => 1, { usage: () => ({ inputTokens: one, outputTokens: two }) })
            .catch(() => {})
        if (kind === 'refuse')
          void scope
            .run(request, async () => Promise.reject('no'), { evidence: () => evidence as never })
            .catch(() => {})
        if (kind === 'learn')
          scope.learn([
            { dimension: 'input-tokens-per-minute', limit: one, remaining: two, resetAtMs: three },
          ])
        if (kind === 'turn') scope.beginTurn(`turn-${id}`)
        if (kind === 'pass') clock.advance(Number.isInteger(one) ? Math.min(Math.abs(one), 600_000) : 1_000)
        if (kind === 'checkpoint') void kernelOf(host).checkpoint(kernelOf(host).runners.get('scope')!)
        if (kind === 'admit') {
          void scope
            .admit(request)
            .then((permit) =>
              permit.settle({ outcome: 'completed', usage: { inputTokens: one, outputTokens: two } }),
            )
            .catch(() => {})
        }
        await settle(1)
      }
      await opensAgain(bench)
    }),
    { numRuns: runs(60) },
  )
})

describe('a deadline that the caller states by the clock on the wall', () => {
  const hour = 3_600_000

  it('is as far away as it was meant, where that clock was set back, also for a later host', async () => {
    const timers = new ManualClock(10 * hour)
    let offsetMs = 0
    const machine = {
      now: () => timers.now() + offsetMs,
      after: timers.after.bind(timers),
      elapsed: () => timers.now(),
    }
    const journal = openMemoryJournal()
    const host = new LaneHost(await Kernel.open({ journal, journalPath: 'memory', clock: machine }))
    await host.scope('scope').run({ id: 'before' }, async () => 1)
    offsetMs = -hour
    const soon = () => machine.now() + 20_000
    await expect(host.scope('scope').run({ id: 'a', deadlineAt: soon() }, async () => 'sent')).resolves.toBe(
      'sent',
    )
    await host.close()
    const later = openMemoryJournal({ history: journal.survivors() })
    const second = new LaneHost(await Kernel.open({ journal: later, journalPath: 'memory', clock: machine }))
    const scope = second.scope('scope', { capacity: 1 })
    await expect(scope.run({ id: 'b', deadlineAt: soon() }, async () => 'sent')).resolves.toBe('sent')
    const holder = await scope.admit({ id: 'holder' })
    const waiting = scope
      .run({ id: 'c', deadlineAt: soon() }, async () => 'sent')
      .catch((error: unknown) => error)
    await settle()
    timers.advance(19_999)
    await settle()
    expect(scope.status.primary.waiting).toBe(1)
    timers.advance(1)
    expect(await waiting).toMatchObject({ _tag: 'DeadlineExceeded' })
    holder.settle({ outcome: 'completed' })
    await second.close()
  })
})
