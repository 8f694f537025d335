/** The codec of a scope: plain JSON, equal for equal scopes, and strict about unknown values. */
import { HashMap, Schema } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { type Heap, rest } from '../../../machines/collections/heap.ts'
import { toArray } from '../../../machines/collections/queue.ts'
import { providerScope, SnapshotUnreadable, snapshotVersion } from '../../../machines/index.ts'
import { decodeScope, encodeScope } from '../../../machines/snapshot/codec.ts'
import type { EncodedScope } from '../../../machines/snapshot/encoded.ts'
import {
  InFlightSchema,
  isInFlightRow,
  isWaitingRow,
  WaitingSchema,
} from '../../../machines/snapshot/rows.ts'
import { lookup, type ScopeContext } from '../../../machines/state/context.ts'
import { runs } from '../../properties/runs.ts'
import { anyMove, anyPolicy, Drive } from '../../properties/scope-drive.ts'
import { refusalOf, Story } from '../story.ts'

/** A scope in the middle of everything. */
const rich = (): Story => {
  const story = new Story({
    capacity: 4,
    reserve: 1,
    limits: { inputTokensPerMinute: 500_000 },
    weights: { a: 2 },
  })
  story.auxiliary('a1', { inputTokens: 50_000, principal: 'a', deadlineAt: story.at + 500_000 })
  story.auxiliary('child', { parentId: 'a1', principal: 'a' })
  story.auxiliary('child-2', { parentId: 'a1', principal: 'a' })
  story.primary('p1', { inputTokens: 180_000, dependsOn: ['never'] })
  story.pass(1_000)
  story.auxiliary('b1', { inputTokens: 70_000, principal: 'b' })
  story.primary('p2', { dependsOn: ['b1'], priorityClass: 'hydration' })
  story.settle('a1', 'completed', { inputTokens: 60_000, outputTokens: 10 })
  story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
  story.refuse(
    'p1',
    refusalOf('acceleration', { retryAfterMs: 3_000, facts: { currentLimit: 9, nextLimit: 11 } }),
  )
  story.tell({ type: 'foreground.changed', active: true })
  return story
}

const values: ReadonlyArray<unknown> = [
  ...[null, undefined, '', 'primary', 'admitted', true, -1, 0, 1.5, 2 ** 53, Number.NaN],
  ...[[], ['a'], [7], {}, '\u0000', '\u0085', 'x'.repeat(257), 'interactive', 'toString'],
]

/** The object with one of its fields gone, or of any value. */
const spoilt = <T extends object>(object: T): ReadonlyArray<object> =>
  Object.keys(object).flatMap((field) => [
    Object.fromEntries(Object.entries(object).filter(([name]) => name !== field)),
    ...values.map((value) => ({ ...object, [field]: value })),
  ])

/** The row with one of its fields, or of its call's, gone or of any value. */
const faultsOf = <Row extends { readonly call: object }>(row: Row): ReadonlyArray<unknown> => [
  ...values,
  ...spoilt(row),
  ...spoilt(row.call).map((call) => ({ ...row, call })),
]

const encoded = (): EncodedScope => encodeScope(rich().context)

describe('a snapshot', () => {
  it('is JSON, and gives the same bytes again', () => {
    const text = JSON.stringify(encoded())
    expect(JSON.stringify(encodeScope(decodeScope(JSON.parse(text))))).toBe(text)
  })

  it('gives back a scope that decides the same from there on', () => {
    const [one, other] = [rich(), rich().restarted()]
    for (const story of [one, other]) {
      story.settle('child')
      story.pass(90_000)
      story.tell({ type: 'turn.ended', turnId: 't' })
      story.settle('b1')
      story.pass(60_000)
    }
    expect(JSON.stringify(encodeScope(other.context))).toBe(JSON.stringify(encodeScope(one.context)))
  })

  it('leaves out only parts that follow from the rest: counts and dependents are the same in a restored scope', () => {
    const aux = fc.constantFrom('a', 'b', 'c')
    const primary = fc.constantFrom('p', 'q', 'r')
    const move = fc.oneof(
      aux.map((id) => (story: Story) => story.auxiliary(id)),
      fc.tuple(primary, fc.uniqueArray(aux)).map(
        ([id, dependsOn]) =>
          (story: Story) =>
            story.primary(id, { dependsOn }),
      ),
      fc.oneof(aux, primary).map((id) => (story: Story) => story.withdraw(id)),
      fc.oneof(aux, primary).map((id) => (story: Story) => story.settle(id)),
      fc.oneof(aux, primary).map((id) => (story: Story) => story.refuse(id)),
      fc.nat({ max: 40_000 }).map((ms) => (story: Story) => story.pass(ms)),
    )
    fc.assert(
      fc.property(fc.array(move, { maxLength: 25 }), (moves) => {
        const story = new Story({ capacity: 2, reserve: 0, primaryPendingTimeoutMs: 30_000 })
        for (const go of moves) go(story)
        const [live, restored] = [story.context, story.restarted().context]
        const byId = ({ dependents }: typeof live) => Object.fromEntries(HashMap.toEntries(dependents))
        expect([restored.counts, byId(restored)]).toEqual([live.counts, byId(live)])
      }),
      { numRuns: runs(1_000) },
    )
  })

  it('names its version', () => {
    expect(encoded().version).toBe(snapshotVersion)
  })

  it.each([
    [
      'a newer version',
      { version: snapshotVersion + 1 },
      `version ${snapshotVersion + 1} is not among those known here (1 to ${snapshotVersion})`,
    ],
    ['version 0', { version: 0 }, 'version 0 is not among those known here'],
    ['no version', { version: undefined }, 'version undefined is not among'],
    ['a state that nobody knows', { state: 'paused' }, 'snapshot.state'],
    ['a time that is no number', { at: 'now' }, 'snapshot.at'],
    ['a policy out of range', { policy: { capacity: -1 } }, 'snapshot.policy.capacity'],
    ['no list of waiting calls', { waiting: 'none' }, 'snapshot.waiting'],
    ['a waiting call without a call', { waiting: [{ seq: 1 }] }, 'snapshot.waiting.0.call'],
    [
      'a call in flight of a lane that nobody knows',
      { inFlight: [{ seq: 1, call: { lane: 'fast' } }] },
      'snapshot.inFlight.0.call',
    ],
    ['a call in flight that is nothing', { inFlight: [null] }, 'snapshot.inFlight.0'],
    ['no list of principals', { principals: undefined }, 'snapshot.principals: expected a list of pairs'],
    ['a turn that is no pair', { turns: [['t']] }, 'snapshot.turns.0'],
    ['an ended call without an id', { ended: [[], [[7, 'completed']]] }, 'snapshot.ended.1.0'],
    ['ended calls of no generation', { ended: undefined }, 'snapshot.ended.0'],
  ])('with %s is refused, by name', (_, fault, named) => {
    const bad = { ...encoded(), ...fault }
    expect(() => decodeScope(bad)).toThrow(SnapshotUnreadable)
    expect(() => decodeScope(bad)).toThrow(named)
  })

  it('names row, field and value of a call far down its list', () => {
    const { waiting, ...rest } = encoded()
    const rows = Array.from({ length: 5_000 }, () => waiting[0]!)
    const bad = { ...waiting[0]!, call: { ...waiting[0]!.call, inputTokens: -3 } }
    expect(() => decodeScope({ ...rest, waiting: rows.with(4_711, bad) })).toThrow(
      'snapshot.waiting.4711.call.inputTokens: expected an integer in [0, 1000000000], got -3',
    )
  })

  it('asks the same of a row as its schema does', () => {
    const { waiting, inFlight } = encoded()
    const kinds = [
      [waiting[0]!, isWaitingRow, Schema.is(WaitingSchema)],
      [inFlight[0]!, isInFlightRow, Schema.is(InFlightSchema)],
    ] as const
    for (const [row, isRow, fitsSchema] of kinds) {
      expect([isRow(row), fitsSchema(row)]).toEqual([true, true])
      for (const faulty of faultsOf(row))
        expect([faulty, isRow(faulty)]).toEqual([faulty, fitsSchema(faulty)])
    }
  })

  it.each([
    ['no list of pairs', { turns: 'none' }, 'snapshot.turns: expected a list of pairs, got none'],
    ['no pair', { turns: ['t'] }, 'snapshot.turns.0: expected a pair of a text and its value, got "t"'],
    [
      'one of a pair',
      { turns: [['t']] },
      'snapshot.turns.0: expected a pair of a text and its value, got ["t"]',
    ],
    ['three for a pair', { turns: [['t', 1, 2]] }, 'got ["t",1,2]'],
    ['a pair without a name', { turns: [[7, 1]] }, 'got [7,1]'],
    ['nothing for a pair', { turns: [undefined] }, 'got nothing'],
  ])('with %s says what it got instead', (_, fault, message) => {
    expect(() => decodeScope({ ...encoded(), ...fault })).toThrow(message)
  })

  it('with a row that has a fault names it, not what a newer version has added', () => {
    const { waiting, ...rest } = encoded()
    expect(() => decodeScope({ ...rest, waiting: [{ ...waiting[0]!, added: 1, seq: -1 }] })).toThrow(
      'snapshot.waiting.0.seq',
    )
    expect(() => decodeScope({ ...rest, waiting: [{ ...waiting[0]!, added: 1 }] })).not.toThrow()
  })

  it('has no call with a field that nobody knows', () => {
    const { waiting, ...rest } = encoded()
    const call = { ...waiting[0]!.call, prompt: 'hello' }
    expect(() => decodeScope({ ...rest, waiting: [{ ...waiting[0]!, call }] })).toThrow(
      'snapshot.waiting.0.call.prompt',
    )
  })

  it.each([null, undefined, 7, 'text'])('that is %s is refused', (value) => {
    expect(() => decodeScope(value)).toThrow(SnapshotUnreadable)
  })

  it('that is unreadable leaves an actor with that error, and without a scope', () => {
    const snapshot = { status: 'active', scope: { ...encoded(), version: 99 } } as never
    const actor = createActor(providerScope, { input: { scope: 'test' }, snapshot })
    expect(actor.getSnapshot().status).toBe('error')
    expect(actor.getSnapshot().error).toBeInstanceOf(SnapshotUnreadable)
  })

  it('of an older scope lacks fields of its policy: they are what scopes did before', () => {
    const { policy, ...rest } = encoded()
    const { quotas: _, principalQuota: __, ...older } = policy
    const context = decodeScope({ ...rest, policy: older })
    expect(JSON.stringify(encodeScope(context))).toBe(JSON.stringify(encoded()))
  })

  it('of an older scope lacks new counters: they begin at 0', () => {
    const { counters: _, ...rest } = encoded()
    const context = decodeScope({ ...rest, counters: {} })
    expect(context.counters.submitted).toBe(0)
  })
})

/**
 * The parts that a snapshot leaves out because they follow from the calls, without the places of calls that
 * are gone.
 */
const derived = (context: ScopeContext) => {
  const { waiting, inFlight } = context
  const stands = ({ id, seq }: { id: string; seq: number }): boolean => {
    const call = lookup(waiting, id)
    return call?.seq === seq && call.waitsFor.length === 0 && call.unclaimedUntilMs === null
  }
  const waits = ({ id, seq }: { id: string; seq: number }): boolean => lookup(waiting, id)?.seq === seq
  const flies = ({ id, grantedAt }: { id: string; grantedAt: number }): boolean =>
    lookup(inFlight, id)?.grantedAt === grantedAt
  // A call that came back and was granted again in the same moment stands among the grants twice.
  const once = <T extends { seq: number }>(places: ReadonlyArray<T>): T[] => [
    ...new Map(places.map((place) => [place.seq, place])).values(),
  ]
  // Calls that were granted in one moment time out in one moment, in any order.
  const byGrant = <T extends { seq: number; grantedAt: number }>(places: ReadonlyArray<T>): T[] =>
    places.toSorted((one, other) => one.grantedAt - other.grantedAt || one.seq - other.seq)
  const due = (heap: Heap | null, counts: (callId: string, at: number) => boolean): string[] => {
    const list: string[] = []
    for (let next = heap; next !== null; next = rest(next))
      if (counts(next.due.callId, next.due.at)) list.push(`${next.due.callId} ${next.due.at}`)
    return [...new Set(list)]
  }
  const callOf = (id: string) => (lookup(waiting, id) ?? lookup(inFlight, id))?.call
  return {
    counts: context.counts,
    heldTurns: context.heldTurns,
    primaries: context.primaries.map((queue) => toArray(queue).filter(stands)),
    urgent: toArray(context.urgent).filter((place) => stands(place) && lookup(waiting, place.id)?.urgent),
    arrivals: [context.arrivals.primary, context.arrivals.auxiliary].map((queue) =>
      toArray(queue).filter(waits),
    ),
    grants: [context.grants.primary, context.grants.auxiliary].map((queue) =>
      byGrant(once(toArray(queue).filter(flies))),
    ),
    deadlines: due(context.deadlines, (id, at) => callOf(id)?.deadlineAt === at),
    unclaimed: due(context.unclaimed, (id, at) => lookup(waiting, id)?.unclaimedUntilMs === at),
    dependents: HashMap.toEntries(context.dependents)
      .map(([id, list]) => [id, list.filter((one) => lookup(waiting, one)?.waitsFor.includes(id)).sort()])
      .filter(([, list]) => list!.length > 0)
      .sort(),
    principals: HashMap.toEntries(context.principals)
      .map(([name, { queue, begun, ...rest }]) => [
        name,
        {
          ...rest,
          queue: toArray(queue).filter((place) => stands(place) && !lookup(waiting, place.id)?.urgent),
          // As in the queue, places of calls that have gone since may stand here still.
          begun: toArray(begun).filter((place) => {
            const one = stands(place) ? lookup(waiting, place.id) : undefined
            return one !== undefined && !one.urgent && one.ofBegunTurn === true
          }),
        },
      ])
      .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
  }
}

const thawed = (context: ScopeContext): ScopeContext =>
  decodeScope(JSON.parse(JSON.stringify(encodeScope(context))))

describe('what a snapshot leaves out', () => {
  it('follows from the calls, in the middle of everything', () => {
    const { context } = rich()
    expect(derived(thawed(context))).toEqual(derived(context))
  })

  it('follows from the calls, after a restart whose owners have not come back', () => {
    const story = rich().restarted()
    story.tell({ type: 'host.recovered' })
    story.auxiliary('b1', { inputTokens: 70_000, principal: 'b', deadlineAt: story.at + 900_000 })
    const { context } = story
    expect(HashMap.size(context.waiting)).toBeGreaterThan(2)
    expect(derived(thawed(context))).toEqual(derived(context))
  })

  it('follows from the calls, whatever happened', () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(anyMove, { maxLength: 60 }), (policy, moves) => {
        const drive = new Drive(policy)
        for (const move of moves) drive.move(move)
        expect(derived(thawed(drive.context))).toEqual(derived(drive.context))
      }),
      { numRuns: runs(500) },
    )
  })

  it('is in the order of names and places, however the calls came', () => {
    const story = new Story({ capacity: 1 })
    for (const id of ['m', 'z', 'b', 'a', 'k', 'c']) story.auxiliary(id, { principal: id })
    for (const id of ['z', 'k', 'a']) story.withdraw(id)
    const { principals, waiting } = encodeScope(story.context)
    expect(principals.map(([name]) => name)).toEqual(['b', 'c', 'm'])
    expect(waiting.map(({ call }) => call.id)).toEqual(['b', 'c'])
  })

  it('is, of ended calls, in the order in which they ended', () => {
    const story = new Story({ capacity: 1, settledRetention: 2 })
    for (const id of ['m', 'z', 'b', 'a', 'k', 'c']) story.auxiliary(id)
    for (const id of ['z', 'k', 'b', 'a']) story.withdraw(id)
    const { ended } = encodeScope(story.context)
    expect(ended.map((generation) => generation.map(([id]) => id))).toEqual([['a'], ['z', 'k', 'b']])
  })

  it('is no field of a scope that knows nothing: budgets and paces name only what there is', () => {
    const { budget, pacing, refusalsByKind } = encodeScope(new Story().context)
    expect([budget, pacing, refusalsByKind].map((record) => Object.keys(record))).toEqual([[], [], []])
  })
})

describe('an unreadable snapshot', () => {
  it.each([
    ['an object', null, 'expected an object, got null'],
    [
      'calls that are calls',
      { ...encoded(), waiting: [null] },
      'snapshot.waiting.0: expected object, got null',
    ],
  ])('wants %s, and says so', (_, input, message) => {
    expect(() => decodeScope(input)).toThrow(
      expect.objectContaining({
        _tag: 'SnapshotUnreadable',
        name: 'SnapshotUnreadable',
        message: expect.stringContaining(message),
      }),
    )
  })
})
