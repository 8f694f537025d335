/** Whose turn it is, step by step: tags, virtual time, debts, refunds, and principals that are skipped. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contractPolicy, type PolicyInput, type PriorityClass, parsePolicy } from '../../../machines/index.ts'
import {
  enqueueAuxiliary,
  enterFlight,
  leaveBacklog,
  leaveFlight,
  returnTurn,
  served,
} from '../../../machines/scheduling/fairness.ts'
import {
  type Front,
  heldSince,
  longestUnserved,
  nextAuxiliary,
  nextThatFits,
} from '../../../machines/scheduling/turns.ts'
import type { Waiting } from '../../../machines/state/calls.ts'
import { emptyContext, lookup } from '../../../machines/state/context.ts'
import { type Draft, draftOf } from '../../../machines/state/draft.ts'
import { firstNames } from '../../../machines/state/lines.ts'
import { blankCall } from '../story.ts'

const at = 1_000

/** A scope with a backlog: `a: [100, 50]` are two calls of a principal, `a0` and `a1`. */
const backlog = (calls: Readonly<Record<string, ReadonlyArray<number>>>, policy: PolicyInput = {}): Draft => {
  const draft = draftOf(
    emptyContext('test', parsePolicy({ quantumTokens: 100, ...policy }, contractPolicy)),
    at,
  )
  for (const [principal, tokens] of Object.entries(calls))
    for (const [index, inputTokens] of tokens.entries())
      come(draft, principal, `${principal}${index}`, inputTokens)
  return draft
}

const come = (
  draft: Draft,
  principal: string,
  id: string,
  inputTokens: number,
  priorityClass: PriorityClass = 'background_ingestion',
): void => {
  const waiting: Waiting = {
    call: { ...blankCall, id, principal, inputTokens, priorityClass },
    seq: draft.nextSeq++,
    submittedAt: draft.at,
    attempts: 0,
    triedAtMs: 0,
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

const tagOf = (draft: Draft, name: string): number | undefined => lookup(draft.principals, name)?.tag

/** The names that may take a turn, in the order of their tags. */
const byTags = (draft: Draft): ReadonlyArray<string> => firstNames(draft.lines, 'byTag', 100)
/** The same names, the one that was served least recently first. */
const byAge = (draft: Draft): ReadonlyArray<string> => firstNames(draft.lines, 'byAge', 100)

describe('turns', () => {
  it.each<[string, Record<string, number[]>, PolicyInput, string[]]>([
    ['of calls of a whole quantum alternate', { a: [100, 100], b: [100, 100] }, {}, ['a0', 'b0', 'a1', 'b1']],
    [
      'of small calls come as often as their tokens say',
      { a: [50, 50, 50], b: [100] },
      {},
      ['a0', 'b0', 'a1', 'a2'],
    ],
    [
      'leave over what a larger call took more',
      { a: [60, 60, 60], b: [100, 100, 100] },
      {},
      ['a0', 'b0', 'a1', 'b1', 'a2', 'b2'],
    ],
    [
      'of a weight of 2 come twice as often',
      { a: [100, 100, 100], b: [100, 100] },
      { weights: { a: 2 } },
      ['a0', 'b0', 'a1', 'b1', 'a2'],
    ],
    [
      'of calls without tokens are of one call each',
      { a: [0, 0], b: [0] },
      { quantumTokens: 1 },
      ['a0', 'b0', 'a1'],
    ],
    [
      'of a weight of 2 come twice as often for calls far above the quantum, too',
      { a: [10_000, 10_000], b: [10_000, 10_000, 10_000] },
      { quantumTokens: 1, weights: { b: 2 } },
      ['a0', 'b0', 'b1', 'a1', 'b2'],
    ],
  ])('%s', (_, calls, policy, ids) => {
    expect(order(backlog(calls, policy), ids.length)).toEqual(ids)
  })

  it('come to no principal when none waits, or all that wait are at their quota', () => {
    expect(nextAuxiliary(backlog({}))).toBeNull()
    const draft = backlog({ a: [1, 1], b: [1] }, { principalQuota: 1 })
    expect(order(draft, 3)).toEqual(['a0', 'b0', null])
    leaveFlight(draft, 'a')
    expect(order(draft, 1)).toEqual(['a1'])
  })

  it('skip principals whose first call is of a class that may not go, and they keep their turns', () => {
    const draft = backlog({})
    come(draft, 'a', 'a0', 100, 'hydration')
    come(draft, 'b', 'b0', 100)
    come(draft, 'c', 'c0', 100, 'hydration')
    expect(nextAuxiliary(draft, (line) => line === 'hydration')?.call.id).toBe('b0')
    expect(longestUnserved(draft, (line) => line === 'hydration')?.head.call.id).toBe('b0')
    expect(nextAuxiliary(draft, () => true)).toBeNull()
    expect(order(draft, 3)).toEqual(['a0', 'b0', 'c0'])
  })

  it.each<[string, (draft: Draft) => void]>([
    ['the call before it was served', (draft) => serve(draft, lookup(draft.waiting, 'a0') as Waiting)],
    [
      'the call before it was withdrawn',
      (draft) => {
        draft.waiting = HashMap.remove(draft.waiting, 'a0')
        leaveBacklog(draft, 'a')
      },
    ],
    [
      'the call before it leaves, and is not out of the calls that wait yet',
      (draft) => leaveBacklog(draft, 'a', lookup(draft.waiting, 'a0')?.seq),
    ],
  ])('look at the class of the first call that is left when %s', (_, leaves) => {
    const draft = backlog({})
    come(draft, 'a', 'a0', 100, 'hydration')
    come(draft, 'a', 'a1', 100)
    const isOut = (line: PriorityClass) => line === 'hydration'
    expect(nextAuxiliary(draft, isOut)).toBeNull()
    leaves(draft)
    expect(nextAuxiliary(draft, isOut)?.call.id).toBe('a1')
    expect(nextAuxiliary(draft, (line) => !isOut(line))).toBeNull()
  })

  it('look at the class of a call that comes back before the others', () => {
    const draft = backlog({})
    come(draft, 'a', 'a0', 100, 'hydration')
    come(draft, 'a', 'a1', 100)
    const call = nextAuxiliary(draft) as Waiting
    const turn = served(draft, call, true)
    const again = { ...call, attempts: 1 }
    draft.waiting = HashMap.set(draft.waiting, 'a0', again)
    leaveFlight(draft, 'a')
    returnTurn(draft, again, turn)
    expect(nextAuxiliary(draft, (line) => line === 'hydration')).toBeNull()
  })

  it('are found among 20,000 principals of classes that may not go by a look at one of them', () => {
    const draft = backlog({})
    for (let index = 0; index < 20_000; index += 1)
      come(draft, `p${index}`, `c${index}`, 1, index % 2 === 0 ? 'hydration' : 'orchestration')
    come(draft, 'last', 'last', 1)
    let looks = 0
    const counted = new Proxy(draft, {
      get: (target, key: keyof Draft) => {
        if (key === 'principals') looks += 1
        return target[key]
      },
    })
    const isOut = (line: PriorityClass) => line !== 'background_ingestion'
    expect(nextAuxiliary(counted, isOut)?.call.id).toBe('last')
    expect(longestUnserved(counted, isOut)?.head.call.id).toBe('last')
    expect(looks).toBeLessThanOrEqual(4)
  })

  it('are in the order of plain start-time fair queueing, whoever comes and goes between', () => {
    const step = fc.record({
      comes: fc.boolean(),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      tokens: fc.nat({ max: 400 }),
      ends: fc.boolean(),
    })
    const weights = { a: 0.5, b: 1, c: 2, d: 5 }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const draft = backlog({}, { weights, quantumTokens: 1_000_000 })
        // The paper's arithmetic over plain lists. `since` decides between equal tags: when it came, or was served.
        const model = new Map<string, { tag: number; since: number; inFlight: number; calls: string[] }>()
        let [virtual, clock] = [0, 0]
        const isIdle = () => [...model.values()].every((one) => one.calls.length + one.inFlight === 0)
        for (const [index, { comes, name, tokens, ends }] of steps.entries()) {
          clock += 1
          if (comes) {
            const one = model.get(name) ?? { tag: 0, since: 0, inFlight: 0, calls: [] }
            if (one.calls.length === 0) {
              one.tag = Math.max(one.tag, virtual)
              one.since = clock
            }
            one.calls.push(`${name}${index}/${tokens}`)
            model.set(name, one)
            come(draft, name, `${name}${index}/${tokens}`, tokens)
            continue
          }
          const waiting = [...model].filter(([, { calls }]) => calls.length > 0)
          const next = waiting.sort(([, x], [, y]) => x.tag - y.tag || x.since - y.since)[0]
          const id = serve(draft, nextAuxiliary(draft))
          expect(id).toBe(next?.[1].calls[0] ?? null)
          if (next === undefined || id === null) continue
          const [who, one] = next
          virtual = Math.max(virtual, one.tag)
          one.tag += Math.max(1, Number(id.split('/')[1])) / weights[who as 'a']
          one.since = clock
          one.calls.shift()
          one.inFlight += 1
          if (!ends) continue
          one.inFlight -= 1
          leaveFlight(draft, who)
          // A busy time ends: virtual time comes up to all that was charged.
          if (isIdle()) for (const { tag } of model.values()) virtual = Math.max(virtual, tag)
        }
      }),
    )
  })

  it('are shared by tokens between principals that come with one call at a time, whatever its size', () => {
    const sizes: Record<string, number> = { large: 700, s0: 300, s1: 250, s2: 310, s3: 190 }
    const draft = backlog(Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, [size]])))
    const got = new Map(Object.keys(sizes).map((name) => [name, 0]))
    for (let round = 0; round < 400; round += 1) {
      const head = nextAuxiliary(draft) as Waiting
      const { principal, inputTokens } = head.call
      serve(draft, head)
      got.set(principal, got.get(principal)! + inputTokens)
      leaveFlight(draft, principal)
      expect(lookup(draft.principals, principal)).toBeUndefined()
      come(draft, principal, `${principal}/${round}`, inputTokens)
    }
    // A principal is never further ahead of another than its own largest call.
    expect(Math.max(...got.values()) - Math.min(...got.values())).toBeLessThanOrEqual(700)
  })
})

describe('virtual time', () => {
  it('gives one that comes back no more than others have had, and takes nothing from it', () => {
    const draft = backlog({ a: [100], b: [100, 100, 100] })
    expect(order(draft, 2)).toEqual(['a0', 'b0'])
    leaveFlight(draft, 'a')
    expect(lookup(draft.debts.tags, 'a')).toBe(100)
    come(draft, 'a', 'again', 100)
    expect([tagOf(draft, 'a'), HashMap.size(draft.debts.tags)]).toEqual([100, 0])
    expect(order(draft, 3)).toEqual(['b1', 'again', 'b2'])
  })

  it('forgets a debt that it has passed', () => {
    const draft = backlog({ a: [100], b: [100, 100, 100] })
    order(draft, 2)
    leaveFlight(draft, 'a')
    order(draft, 2)
    expect([draft.virtualTokens, HashMap.size(draft.debts.tags)]).toEqual([200, 0])
  })

  it('comes up to all debts when nobody waits or runs any more', () => {
    const draft = backlog({ a: [500] })
    order(draft, 1)
    leaveFlight(draft, 'a')
    expect([draft.virtualTokens, draft.debts.order]).toEqual([500, null])
    come(draft, 'a', 'again', 1)
    come(draft, 'b', 'b0', 1)
    expect([tagOf(draft, 'a'), tagOf(draft, 'b')]).toEqual([500, 500])
  })

  it('remembers 512 debts at most, the largest', () => {
    const draft = backlog({ stays: [1] })
    enterFlight(draft, 'busy')
    for (let index = 1; index <= 600; index += 1) {
      come(draft, `p${index}`, `c${index}`, index)
      serve(draft, lookup(draft.waiting, `c${index}`) as Waiting)
      leaveFlight(draft, `p${index}`)
    }
    expect(HashMap.size(draft.debts.tags)).toBe(512)
    expect(lookup(draft.debts.tags, 'p600')).toBe(600)
    expect(lookup(draft.debts.tags, 'p88')).toBeUndefined()
  })

  it('lets a principal whose class backed off catch up by a quantum and a call, and no more', () => {
    const draft = backlog({}, { quantumTokens: 300 })
    for (let index = 0; index < 30; index += 1) come(draft, 'out', `out${index}`, 100, 'hydration')
    for (let index = 0; index < 60; index += 1) come(draft, 'b', `b${index}`, 100)
    const isOut = (line: PriorityClass) => line === 'hydration'
    for (let round = 0; round < 50; round += 1) serve(draft, nextAuxiliary(draft, isOut))
    const next = order(draft, 8).map((id) => id?.charAt(0))
    expect(next.join('')).toBe('oooobobo')
  })
})

describe('the principal that was served least recently', () => {
  it('is the principal that came first, then the one served least recently', () => {
    const draft = backlog({ a: [100, 100], b: [100, 100] })
    expect(longestUnserved(draft)?.head.call.id).toBe('a0')
    order(draft, 1)
    expect(longestUnserved(draft)?.head.call.id).toBe('b0')
    expect(longestUnserved(backlog({}))).toBeNull()
  })

  it('has been held since it came, or since it was last served, by the held clock', () => {
    const draft = backlog({ a: [50, 50] })
    const since = () => heldSince(longestUnserved(draft) as Front)
    expect(since()).toBe(0)
    draft.heldMs = 5_000
    order(draft, 1)
    expect(since()).toBe(5_000)
    order(draft, 1)
    expect(longestUnserved(draft)).toBeNull()
    draft.heldMs = 7_000
    come(draft, 'a', 'later', 1)
    expect(since()).toBe(7_000)
  })

  it('has been held since it was last below its quota', () => {
    const draft = backlog({ a: [50, 50] }, { principalQuota: 1 })
    order(draft, 1)
    expect([draft.lines.size, draft.parked]).toEqual([0, 1])
    draft.heldMs = 9_000
    leaveFlight(draft, 'a')
    expect([draft.lines.size, draft.parked]).toEqual([1, 0])
    expect(heldSince(longestUnserved(draft) as Front)).toBe(9_000)
  })
})

describe('a principal', () => {
  it('gets a turn back that the provider did not take, with its place and its age', () => {
    const draft = backlog({ a: [60, 60], b: [100, 100] })
    draft.heldMs = 500
    const call = nextAuxiliary(draft) as Waiting
    const turn = served(draft, call, true)
    draft.waiting = HashMap.remove(draft.waiting, call.call.id)
    expect([byTags(draft), byAge(draft)]).toEqual([
      ['b', 'a'],
      ['b', 'a'],
    ])
    expect(tagOf(draft, 'a')).toBe(60)
    const again = { ...call, attempts: 1 }
    draft.waiting = HashMap.set(draft.waiting, call.call.id, again)
    leaveFlight(draft, 'a')
    returnTurn(draft, again, turn)
    expect([byTags(draft), byAge(draft)]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
    expect(tagOf(draft, 'a')).toBe(0)
    expect(heldSince(longestUnserved(draft) as Front)).toBe(0)
    expect(order(draft, 4)).toEqual(['a0', 'b0', 'a1', 'b1'])
  })

  it.each([
    ['others of its own were served since, for which it stays charged', ['a1'], [], 70, 'b0'],
    ['it was gone since', [], ['a'], 0, 'a0'],
    ['it was gone since, and others went', ['b0', 'b1'], ['a'], 0, 'a0'],
  ])('gets a turn back when %s: only that one', (_, since, gone, tag, next) => {
    const draft = backlog({ a: since.includes('a1') ? [60, 70] : [60], b: [100, 100, 100] })
    const call = nextAuxiliary(draft) as Waiting
    const turn = served(draft, call, true)
    draft.waiting = HashMap.remove(draft.waiting, call.call.id)
    for (const id of since) serve(draft, lookup(draft.waiting, id) as Waiting)
    for (const name of gone) leaveFlight(draft, name)
    const again = { ...call, attempts: 1 }
    draft.waiting = HashMap.set(draft.waiting, call.call.id, again)
    returnTurn(draft, again, turn)
    expect(tagOf(draft, 'a')).toBe(tag)
    expect(nextAuxiliary(draft)?.call.id).toBe(next)
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
    expect(lookup(draft.principals, 'a')).toMatchObject({ waiting: 0, inFlight: 1, tag: 60 })
    leaveFlight(draft, 'a')
    leaveBacklog(draft, 'b')
    expect(byAge(draft)).toEqual(['b'])
    leaveBacklog(draft, 'b')
    expect(HashMap.size(draft.principals)).toBe(0)
    expect(draft.lines.size).toBe(0)
  })

  it('that runs without a turn of its own is counted in flight', () => {
    const draft = backlog({ a: [60] })
    enterFlight(draft, 'a')
    enterFlight(draft, 'b')
    expect(lookup(draft.principals, 'a')).toMatchObject({ waiting: 1, inFlight: 1 })
    expect(lookup(draft.principals, 'b')).toMatchObject({ waiting: 0, inFlight: 1 })
    expect(byAge(draft)).toEqual(['a'])
  })

  it('whose call left and came again has it stand at its newer place', () => {
    const draft = backlog({ a: [10, 10] })
    draft.waiting = HashMap.remove(draft.waiting, 'a0')
    leaveBacklog(draft, 'a')
    come(draft, 'a', 'a0', 10)
    expect(order(draft, 2)).toEqual(['a1', 'a0'])
  })
})

describe('calls that pass a head that does not fit', () => {
  const fits = ({ call }: Waiting): boolean => call.inputTokens < 80

  it.each<[string, Record<string, number[]>, PolicyInput, string | null]>([
    ['is the next who fits', { a: [90], b: [70], c: [10] }, {}, 'b0'],
    ['fits, whatever the quantum is', { a: [90], b: [70], c: [10] }, { quantumTokens: 1 }, 'b0'],
    ['is nobody behind it in its own queue', { a: [90, 10] }, {}, null],
    ['is nobody when nobody waits', {}, {}, null],
  ])('%s', (_, calls, policy, id) => {
    expect(nextThatFits(backlog(calls, policy), fits)?.call.id ?? null).toBe(id)
  })

  it('is charged to its principal, and virtual time waits for the one that was passed', () => {
    const draft = backlog({ a: [90], b: [70, 70], c: [10] })
    served(draft, nextThatFits(draft, fits) as Waiting, false)
    draft.waiting = HashMap.remove(draft.waiting, 'b0')
    expect(byTags(draft)).toEqual(['a', 'c', 'b'])
    expect([tagOf(draft, 'b'), draft.virtualTokens]).toEqual([70, 0])
  })

  it('is not at its quota', () => {
    const draft = backlog({ a: [90], b: [70], c: [10] }, { principalQuota: 1 })
    enterFlight(draft, 'b')
    expect(nextThatFits(draft, fits)?.call.id).toBe('c0')
  })
})
