/** The codec of a scope: plain JSON, equal for equal scopes, and closed to what it does not know. */
import { HashMap, Schema } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { providerScope, SnapshotUnreadable, snapshotVersion } from '../../machines/index.ts'
import { decodeScope, type EncodedScope, encodeScope } from '../../machines/snapshot.ts'
import { InFlightSchema, isInFlightRow, isWaitingRow, WaitingSchema } from '../../machines/snapshot-rows.ts'
import { refusalOf, Story } from './story.ts'

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

const anyValue = fc.oneof(
  fc.constantFrom<unknown>(null, undefined, '', 'primary', 'admitted', true, -1, 0, 1.5, 2 ** 53, Number.NaN),
  fc.constantFrom<unknown>(
    [],
    ['a'],
    [7],
    {},
    '\u0000',
    '\u0085',
    'x'.repeat(257),
    'interactive',
    'toString',
  ),
)

/** The row with one of its fields, or of its call's, gone or of any value. */
const anyFault = <Row extends { readonly call: object }>(row: Row): fc.Arbitrary<unknown> => {
  const without = (object: object, field: string) =>
    Object.fromEntries(Object.entries(object).filter(([name]) => name !== field))
  const spoilt = (object: object) =>
    fc.oneof(
      fc.constantFrom(...Object.keys(object)).map((field) => without(object, field)),
      fc.tuple(fc.constantFrom(...Object.keys(object)), anyValue).map(([field, value]) => ({
        ...object,
        [field]: value,
      })),
    )
  return fc.oneof(
    anyValue,
    spoilt(row),
    spoilt(row.call).map((call) => ({ ...row, call })),
  )
}

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

  it('leaves out only what follows from the rest: counts and dependents are the same in who is restored', () => {
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
      { numRuns: 1_000 },
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
      fc.assert(
        fc.property(anyFault(row), (faulty) => {
          expect(isRow(faulty)).toBe(fitsSchema(faulty))
        }),
        { numRuns: 2_000 },
      )
    }
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
