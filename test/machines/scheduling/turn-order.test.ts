/** Whose turn it is, step by step: deficits, ends of turns, refunds, and who is passed over. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { names } from '../../../machines/collections/ring.ts'
import { type PolicyInput, parsePolicy } from '../../../machines/index.ts'
import {
  enqueueAuxiliary,
  enterFlight,
  leaveBacklog,
  leaveFlight,
  passTurn,
  returnTurn,
  served,
} from '../../../machines/scheduling/fairness.ts'
import { heldSince, nextAuxiliary, nextThatFits, ringFront } from '../../../machines/scheduling/turns.ts'
import { emptyContext, lookup, type Waiting } from '../../../machines/state/context.ts'
import { type Draft, draftOf } from '../../../machines/state/draft.ts'
import { blankCall } from '../story.ts'

const at = 1_000

/** A scope with a backlog: `a: [100, 50]` are two calls of a principal, `a0` and `a1`. */
const backlog = (calls: Readonly<Record<string, ReadonlyArray<number>>>, policy: PolicyInput = {}): Draft => {
  const draft = draftOf(emptyContext('test', parsePolicy({ quantumTokens: 100, ...policy })), at)
  for (const [principal, tokens] of Object.entries(calls))
    for (const [index, inputTokens] of tokens.entries())
      come(draft, principal, `${principal}${index}`, inputTokens)
  return draft
}

const come = (draft: Draft, principal: string, id: string, inputTokens: number): void => {
  const waiting: Waiting = {
    call: { ...blankCall, id, principal, inputTokens },
    seq: draft.nextSeq++,
    submittedAt: draft.at,
    attempts: 0,
    sizeRefusals: 0,
    reason: 'behind-others',
    urgent: false,
    inheritedRank: null,
    waitsFor: [],
    unclaimedUntilMs: null,
    dispatchAtOnce: false,
    heldFromMs: draft.heldMs,
  }
  draft.waiting = HashMap.set(draft.waiting, id, waiting)
  enqueueAuxiliary(draft, waiting)
}

const serve = (draft: Draft, waiting: Waiting | null): string | null => {
  if (waiting === null) return null
  served(draft, waiting, true)
  draft.waiting = HashMap.remove(draft.waiting, waiting.call.id)
  return waiting.call.id
}

const order = (draft: Draft, count: number): ReadonlyArray<string | null> =>
  Array.from({ length: count }, () => serve(draft, nextAuxiliary(draft)))

const deficitOf = (draft: Draft, name: string): number | undefined =>
  lookup(draft.principals, name)?.deficitTokens

describe('turns', () => {
  it.each<[string, Record<string, number[]>, PolicyInput, string[]]>([
    ['of calls of a whole quantum alternate', { a: [100, 100], b: [100, 100] }, {}, ['a0', 'b0', 'a1', 'b1']],
    ['take as many calls as a quantum covers', { a: [50, 50, 50], b: [100] }, {}, ['a0', 'a1', 'b0', 'a2']],
    [
      'leave over what they do not use',
      { a: [60, 60, 60], b: [100, 100, 100] },
      {},
      ['a0', 'b0', 'a1', 'a2', 'b1', 'b2'],
    ],
    [
      'of a weight of 2 are twice as long',
      { a: [100, 100, 100], b: [100, 100] },
      { weights: { a: 2 } },
      ['a0', 'a1', 'b0', 'a2', 'b1'],
    ],
    [
      'of calls without tokens are of one call each',
      { a: [0, 0], b: [0] },
      { quantumTokens: 1 },
      ['a0', 'b0', 'a1'],
    ],
    [
      'of calls far above the quantum come by weight, not by who came first',
      { a: [10_000], b: [10_000] },
      { quantumTokens: 1, weights: { b: 2 } },
      ['b0', 'a0'],
    ],
  ])('%s', (_, calls, policy, ids) => {
    expect(order(backlog(calls, policy), ids.length)).toEqual(ids)
  })

  it('come to nobody when nobody waits, or all who do are at their quota', () => {
    expect(nextAuxiliary(backlog({}))).toBeNull()
    const draft = backlog({ a: [1, 1], b: [1] }, { principalQuota: 1 })
    expect(order(draft, 3)).toEqual(['a0', 'b0', null])
    leaveFlight(draft, 'a')
    expect(order(draft, 1)).toEqual(['a1'])
  })

  it('pass over who is out, who keeps the turn', () => {
    const draft = backlog({ a: [100], b: [100], c: [100] })
    expect(nextAuxiliary(draft, ({ call }) => call.principal === 'a')?.call.id).toBe('b0')
    expect(nextAuxiliary(draft, () => true)).toBeNull()
    expect(order(draft, 3)).toContain('a0')
  })

  it('are in the order of plain deficit round robin, rounds that serve nobody left out', () => {
    const principals = fc.array(
      fc.record({
        weight: fc.constantFrom(0.5, 1, 2, 5),
        calls: fc.array(fc.nat({ max: 400 }), { minLength: 1, maxLength: 6 }),
      }),
      { minLength: 1, maxLength: 5 },
    )
    fc.assert(
      fc.property(principals, fc.integer({ min: 1, max: 120 }), (list, quantumTokens) => {
        const named = list.map(({ weight, calls }, index) => ({ name: 'abcde'.charAt(index), weight, calls }))
        const weights = Object.fromEntries(named.map(({ name, weight }) => [name, weight]))
        const draft = backlog(Object.fromEntries(named.map(({ name, calls }) => [name, calls])), {
          quantumTokens,
          weights,
        })
        const ring = named.map(({ name, weight, calls }) => ({
          turn: weight * quantumTokens,
          deficit: weight * quantumTokens,
          ids: calls.map((tokens, index) => ({ id: `${name}${index}`, cost: Math.max(1, tokens) })),
        }))
        const expected: string[] = []
        while (ring.length > 0) {
          const front = ring.shift()!
          while (front.ids.length > 0 && front.deficit >= front.ids[0]!.cost) {
            front.deficit -= front.ids[0]!.cost
            expected.push(front.ids.shift()!.id)
          }
          front.deficit += front.turn
          if (front.ids.length > 0) ring.push(front)
        }
        expect(order(draft, expected.length)).toEqual(expected)
        expect(nextAuxiliary(draft)).toBeNull()
      }),
    )
  })
})

describe('the front of the ring', () => {
  it('is who came first, then who was served least recently', () => {
    const draft = backlog({ a: [100, 100], b: [100, 100] })
    expect(ringFront(draft)?.call.id).toBe('a0')
    order(draft, 1)
    expect(ringFront(draft)?.call.id).toBe('b0')
    expect(ringFront(backlog({}))).toBeNull()
  })

  it('has been held since it came, or since it was last served, by the held clock', () => {
    const draft = backlog({ a: [50, 50] })
    const since = () => heldSince(draft, ringFront(draft) as Waiting)
    expect(since()).toBe(0)
    draft.heldMs = 5_000
    order(draft, 1)
    expect(since()).toBe(5_000)
    order(draft, 1)
    expect(ringFront(draft)).toBeNull()
    draft.heldMs = 7_000
    come(draft, 'a', 'later', 1)
    expect(since()).toBe(7_000)
  })

  it('has been held since it was last below its quota', () => {
    const draft = backlog({ a: [50, 50] }, { principalQuota: 1 })
    order(draft, 1)
    expect([draft.ring.size, draft.parked]).toEqual([0, 1])
    draft.heldMs = 9_000
    leaveFlight(draft, 'a')
    expect([draft.ring.size, draft.parked]).toEqual([1, 0])
    expect(heldSince(draft, ringFront(draft) as Waiting)).toBe(9_000)
  })

  it('makes way when its turn is ended early, and keeps what it has left over', () => {
    const draft = backlog({ a: [50, 50], b: [50] })
    order(draft, 1)
    expect(ringFront(draft)?.call.id).toBe('a1')
    passTurn(draft)
    expect([...names(draft.ring)]).toEqual(['b', 'a'])
    expect(deficitOf(draft, 'a')).toBe(50)
  })

  it('stays where it was not served just now, or nobody waits', () => {
    const draft = backlog({ a: [50, 50], b: [50] })
    order(draft, 1)
    draft.at += 1
    passTurn(draft)
    expect([...names(draft.ring)]).toEqual(['a', 'b'])
    const nobody = backlog({})
    passTurn(nobody)
    expect(nobody.ring.size).toBe(0)
  })
})

describe('a principal', () => {
  it('gets a turn back that the provider did not take, with its place and its age', () => {
    const draft = backlog({ a: [60, 60], b: [100, 100] })
    draft.heldMs = 500
    const call = nextAuxiliary(draft) as Waiting
    const turn = served(draft, call, true)
    draft.waiting = HashMap.remove(draft.waiting, call.call.id)
    expect([...names(draft.ring)]).toEqual(['b', 'a'])
    expect(deficitOf(draft, 'a')).toBe(140)
    const again = { ...call, attempts: 1 }
    draft.waiting = HashMap.set(draft.waiting, call.call.id, again)
    leaveFlight(draft, 'a')
    returnTurn(draft, again, turn)
    expect([...names(draft.ring)]).toEqual(['a', 'b'])
    expect(deficitOf(draft, 'a')).toBe(100)
    expect(heldSince(draft, ringFront(draft) as Waiting)).toBe(0)
    expect(order(draft, 4)).toEqual(['a0', 'b0', 'a1', 'b1'])
  })

  it('that is not known has no place in flight to leave', () => {
    const draft = backlog({})
    leaveFlight(draft, 'ghost')
    expect(HashMap.size(draft.principals)).toBe(0)
  })

  it('without a backlog cannot leave one: that breaks a rule', () => {
    const draft = backlog({ a: [60] })
    const problem = (name: string) => `principal ${name} leaves a backlog that it does not have`
    expect(() => leaveBacklog(draft, 'ghost')).toThrow(problem('ghost'))
    order(draft, 1)
    expect(() => leaveBacklog(draft, 'a')).toThrow(problem('a'))
  })

  it('is forgotten when it neither waits nor runs', () => {
    const draft = backlog({ a: [60], b: [60, 60] })
    order(draft, 1)
    expect(lookup(draft.principals, 'a')).toMatchObject({ waiting: 0, inFlight: 1, deficitTokens: 100 })
    leaveFlight(draft, 'a')
    leaveBacklog(draft, 'b')
    expect([...names(draft.ring)]).toEqual(['b'])
    leaveBacklog(draft, 'b')
    expect(HashMap.size(draft.principals)).toBe(0)
    expect(draft.ring.size).toBe(0)
  })

  it('that runs without a turn of its own is counted in flight', () => {
    const draft = backlog({ a: [60] })
    enterFlight(draft, 'a')
    enterFlight(draft, 'b')
    expect(lookup(draft.principals, 'a')).toMatchObject({ waiting: 1, inFlight: 1 })
    expect(lookup(draft.principals, 'b')).toMatchObject({ waiting: 0, inFlight: 1 })
    expect([...names(draft.ring)]).toEqual(['a'])
  })

  it('whose call left and came again has it stand at its newer place', () => {
    const draft = backlog({ a: [10, 10] })
    draft.waiting = HashMap.remove(draft.waiting, 'a0')
    leaveBacklog(draft, 'a')
    come(draft, 'a', 'a0', 10)
    expect(order(draft, 2)).toEqual(['a1', 'a0'])
  })
})

describe('who goes past a head that does not fit', () => {
  const fits = ({ call }: Waiting): boolean => call.inputTokens < 80

  it.each<[string, Record<string, number[]>, PolicyInput, string | null]>([
    ['is the next who fits', { a: [90], b: [70], c: [10] }, {}, 'b0'],
    ['is covered by its turn', { a: [90], b: [70], c: [10] }, { quantumTokens: 69 }, 'c0'],
    ['may be covered to the last token', { a: [90], b: [70] }, { quantumTokens: 70 }, 'b0'],
    ['is nobody behind it in its own queue', { a: [90, 10] }, {}, null],
    ['is nobody when nobody waits', {}, {}, null],
  ])('%s', (_, calls, policy, id) => {
    expect(nextThatFits(backlog(calls, policy), fits)?.call.id ?? null).toBe(id)
  })

  it('keeps its turn and its place in the ring, though its next call is not covered', () => {
    const draft = backlog({ a: [90], b: [70, 70], c: [10] })
    served(draft, nextThatFits(draft, fits) as Waiting, false)
    draft.waiting = HashMap.remove(draft.waiting, 'b0')
    expect([...names(draft.ring)]).toEqual(['a', 'b', 'c'])
    expect(deficitOf(draft, 'b')).toBe(30)
  })

  it('is not at its quota', () => {
    const draft = backlog({ a: [90], b: [70], c: [10] }, { principalQuota: 1 })
    enterFlight(draft, 'b')
    expect(nextThatFits(draft, fits)?.call.id).toBe('c0')
  })
})
