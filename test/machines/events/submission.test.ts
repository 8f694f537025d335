/** A call comes, comes again, names other calls, or goes: the parts that the scope keeps and drops. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import type { Ending } from '../../../machines/collections/ended-log.ts'
import { waitReason } from '../../../machines/index.ts'
import { endingOf } from '../../../machines/scheduling/lifecycle.ts'
import { refusalOf, Story } from '../story.ts'

const story = (policy = {}): Story =>
  new Story({ capacity: 1, reserve: 0, maxDeferralMs: 3_600_000, ...policy })

describe('an id', () => {
  it.each([
    [
      'that was withdrawn while it waited',
      (lanes: Story) => [lanes.auxiliary('r'), lanes.auxiliary('a'), lanes.withdraw('a'), lanes.settle('r')],
    ],
    ['that was withdrawn before it was sent', (lanes: Story) => [lanes.auxiliary('a'), lanes.withdraw('a')]],
  ])('%s may come again', (_, leave) => {
    const lanes = story()
    leave(lanes)
    expect(lanes.auxiliary('a')).toEqual(['admit a: open'])
    expect(lanes.context.counters.submitted).toBe(lanes.context.nextSeq - 1)
  })

  it.each<[string, string, (lanes: Story) => unknown, Ending]>([
    ['completed', 'a', (lanes) => lanes.settle('a'), 'completed'],
    ['failed', 'a', (lanes) => lanes.settle('a', 'failed'), 'failed'],
    [
      'was refused for good',
      'a',
      (lanes) => lanes.refuse('a', refusalOf('not-capacity', { retryable: false })),
      'throttled',
    ],
    ['ran out of time as it ran', 'a', (lanes) => lanes.pass(900_000), 'timedOut'],
    ['ran out of time as it waited', 'b', (lanes) => lanes.pass(10), 'expired'],
    ['was abandoned', 'a', (lanes) => [lanes.primary('p'), lanes.pass(50)], 'abandoned'],
  ])('of a call that %s is not sent again', (_, id, end, ending) => {
    const lanes = story({ inFlight: 'cancel', graceMs: 50 })
    lanes.auxiliary('a')
    lanes.auxiliary('b', { deadlineAt: lanes.at + 10 })
    end(lanes)
    expect(endingOf(lanes.context, id)).toBe(ending)
    expect(lanes.auxiliary(id)).toEqual([`reject ${id}: already-settled`])
    expect(lanes.context.counters.rejected).toBeGreaterThan(0)
  })

  it.each([
    ['while it waited', 'w'],
    ['before it was sent', 'r'],
  ])('that was withdrawn %s is remembered as that', (_, id) => {
    const lanes = story()
    for (const one of ['r', 'w']) lanes.auxiliary(one)
    lanes.withdraw(id)
    expect(endingOf(lanes.context, id)).toBe('withdrawn')
  })

  it('that runs already is not counted twice', () => {
    const lanes = story()
    lanes.auxiliary('a')
    expect(lanes.auxiliary('a')).toEqual([])
    expect(lanes.context.counters.submitted).toBe(1)
  })

  it('that waits already is one call: it goes once', () => {
    const lanes = story()
    lanes.auxiliary('r')
    for (let time = 0; time < 3; time += 1) lanes.auxiliary('w')
    expect(lanes.settle('r')).toEqual(['release w: open'])
    expect(lanes.settle('w')).toEqual([])
    expect(lanes.context.counts.auxiliaryWaiting).toBe(0)
  })

  it('is remembered for at least settledRetention endings, and at most twice as many', () => {
    const lanes = story({ settledRetention: 3 })
    for (let index = 0; index < 20; index += 1) {
      lanes.auxiliary(`c${index}`)
      lanes.settle(`c${index}`)
      const known = lanes.context.ended.newer.length + lanes.context.ended.older.length
      expect(known).toBeGreaterThanOrEqual(Math.min(3, index + 1))
      expect(known).toBeLessThanOrEqual(8)
    }
    expect(lanes.auxiliary('c19')).toEqual(['reject c19: already-settled'])
    expect(lanes.auxiliary('c17')).toEqual(['reject c17: already-settled'])
    expect(lanes.auxiliary('c0')).toEqual(['admit c0: open'])
  })

  it('of the older generation is still known', () => {
    const lanes = story({ settledRetention: 3 })
    for (let index = 0; index < 5; index += 1) {
      lanes.auxiliary(`c${index}`)
      lanes.settle(`c${index}`)
    }
    expect([lanes.context.ended.newer.length, lanes.context.ended.older.length]).toEqual([1, 4])
    expect(lanes.auxiliary('c1')).toEqual(['reject c1: already-settled'])
  })
})

describe('a call that is asked for again while it waits', () => {
  it('without its deadline waits as long as the policy lets it', () => {
    const lanes = story({ auxiliaryPendingTimeoutMs: 50_000, auxiliaryActiveTimeoutMs: 3_600_000 })
    lanes.auxiliary('r')
    lanes.auxiliary('w', { deadlineAt: lanes.at + 5_000 })
    expect(lanes.auxiliary('w', { deadlineAt: null })).toEqual([])
    expect(lanes.pass(49_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['expire w: pending-timeout'])
  })
})

describe('a call that names others', () => {
  it('keeps no ended call among the expected ones', () => {
    const lanes = story()
    lanes.auxiliary('a')
    lanes.settle('a')
    lanes.primary('p', { dependsOn: ['a'] })
    expect(HashMap.size(lanes.context.expected)).toBe(0)
  })

  it('and is made inside one of them does not wait for that one', () => {
    const lanes = story({ capacity: 2 })
    lanes.auxiliary('parent')
    expect(lanes.primary('child', { parentId: 'parent', dependsOn: ['parent'] })).toEqual([
      'admit child: nested',
    ])
  })

  it('and ends takes their right of way only when nobody else names them', () => {
    const lanes = story({ capacity: 3 })
    for (const id of ['p', 'q']) lanes.primary(id, { dependsOn: ['later'] })
    lanes.settle('p')
    expect(lanes.auxiliary('later')).toEqual(['admit later: dependency'])
  })

  it('and is withdrawn while it waits takes their right of way', () => {
    const lanes = story()
    lanes.primary('r')
    lanes.primary('p', { dependsOn: ['later'] })
    lanes.withdraw('p')
    lanes.auxiliary('later')
    expect(lanes.reasonOf('later')).toBe('primary-active')
    expect(HashMap.size(lanes.context.expected)).toBe(0)
  })

  it('waits for each of several that ends, in whatever order, and counts as ready once', () => {
    const lanes = story({ capacity: 3 })
    for (const id of ['a', 'b']) lanes.auxiliary(id)
    lanes.primary('p', { dependsOn: ['a', 'b'] })
    expect(lanes.context.counts.primaryReady).toBe(0)
    lanes.settle('a')
    expect(lanes.context.counts.primaryReady).toBe(0)
    lanes.settle('b')
    expect(lanes.running).toEqual(['p'])
    expect(lanes.context.counts).toMatchObject({ primaryReady: 0, primaryWaiting: 0, primaryInFlight: 1 })
  })

  it('that is withdrawn before they end leaves nothing behind when they do', () => {
    const lanes = story({ capacity: 2 })
    lanes.auxiliary('a')
    lanes.primary('p', { dependsOn: ['a'] })
    lanes.withdraw('p')
    expect(lanes.settle('a')).toEqual([])
    expect(lanes.context.counts).toMatchObject({ primaryReady: 0, primaryWaiting: 0 })
  })

  it('and is ready is taken out of the count when it is withdrawn', () => {
    const lanes = story()
    lanes.primary('p')
    lanes.primary('q')
    expect(lanes.context.counts.primaryReady).toBe(1)
    lanes.withdraw('q')
    expect(lanes.context.counts).toMatchObject({ primaryReady: 0, primaryWaiting: 0 })
  })
})

describe('a call made inside another', () => {
  it.each([
    ['that is gone takes a place of its own', 'gone'],
    ['that nobody knows takes a place of its own', 'ghost'],
    ['of none takes a place of its own', null],
  ])('%s, and nothing is kept for its parent', (_, parentId) => {
    const lanes = story()
    lanes.auxiliary('gone')
    lanes.settle('gone')
    expect(lanes.auxiliary('child', { parentId })).toEqual(['admit child: open'])
    expect(HashMap.size(lanes.context.nested)).toBe(0)
    expect(lanes.context.counts.places).toBe(1)
  })

  it('and that waits for another gets its place when that one has ended', () => {
    const lanes = story({ capacity: 2 })
    lanes.auxiliary('parent')
    lanes.auxiliary('other')
    expect(lanes.primary('child', { parentId: 'parent', dependsOn: ['other'] })).toEqual([
      'defer child: dependencies',
    ])
    expect(lanes.settle('other')).toEqual(['release child: nested'])
    expect(lanes.context.counts.places).toBe(1)
  })
})

describe('a call that returns', () => {
  const backlog = (policy = {}): Story => {
    const lanes = story({ pacingBaseMs: 0, pacingMaxMs: 0, quantumTokens: 100, ...policy })
    for (const id of ['a0', 'b0', 'a1', 'b1'])
      lanes.auxiliary(id, { principal: id.charAt(0), inputTokens: 100 })
    return lanes
  }

  it('goes before later ones of its principal, and its turn is given back', () => {
    const lanes = backlog()
    lanes.pass(5)
    lanes.refuse('a0')
    lanes.pass(1_000)
    const order: string[] = []
    while (lanes.running.length > 0) {
      order.push(lanes.running[0] as string)
      lanes.settle(lanes.running[0] as string)
    }
    expect(order.filter((id) => id.startsWith('a'))).toEqual(['a0', 'a1'])
    expect(order.join(' ')).not.toContain('b0 b1')
  })

  it('that had been let through for a primary is let through again', () => {
    const lanes = backlog({ capacity: 2 })
    lanes.primary('p', { dependsOn: ['b1'] })
    for (const id of ['a0', 'b0']) lanes.settle(id)
    lanes.withdraw('p')
    expect(lanes.running).toContain('b1')
    lanes.primary('q')
    lanes.pass(5)
    lanes.refuse('b1')
    lanes.pass(1_000)
    expect(lanes.running).toContain('b1')
  })

  it('of its own turn gets that back, and nothing that another call was charged', () => {
    const lanes = story({ pacingBaseMs: 1_000, pacingMaxMs: 1_000, quantumTokens: 100 })
    for (const id of ['a', 'w']) lanes.auxiliary(id, { principal: 'a', inputTokens: 70 })
    lanes.pass(5)
    expect(HashMap.getUnsafe(lanes.context.principals, 'a').tag).toBe(70)
    lanes.refuse('a')
    expect(HashMap.getUnsafe(lanes.context.principals, 'a').tag).toBe(0)
  })

  it('of an urgent grant pays no turn: none is given back', () => {
    const lanes = story({ capacity: 2, pacingBaseMs: 1_000, pacingMaxMs: 1_000, quantumTokens: 100 })
    lanes.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    lanes.auxiliary('tool', { turnId: 't', principal: 'a', inputTokens: 70 })
    lanes.auxiliary('w', { principal: 'a', inputTokens: 70 })
    lanes.pass(5)
    lanes.refuse('tool')
    expect(HashMap.getUnsafe(lanes.context.principals, 'a').tag).toBe(0)
  })

  it('of a borrowed place pays no turn: none is given back', () => {
    const lanes = story({ capacity: 1, pacingBaseMs: 1_000, pacingMaxMs: 1_000, quantumTokens: 100 })
    lanes.auxiliary('parent', { principal: 'p' })
    lanes.auxiliary('w', { principal: 'a', inputTokens: 70 })
    lanes.auxiliary('child', { parentId: 'parent', principal: 'a', inputTokens: 70 })
    lanes.pass(5)
    lanes.refuse('child')
    expect(HashMap.getUnsafe(lanes.context.principals, 'a').tag).toBe(0)
  })

  it('keeps the place of its rank among primaries', () => {
    const lanes = story({ pacingBaseMs: 1, pacingMaxMs: 1 })
    for (const id of ['p', 'q']) lanes.primary(id)
    lanes.pass(5)
    lanes.refuse('p', refusalOf('overloaded'))
    lanes.pass(1_000)
    expect(lanes.running).toEqual(['p'])
  })

  it('tells that it was refused, for any reason that delays it now', () => {
    const lanes = story({ pacingBaseMs: 1_000, pacingMaxMs: 1_000 })
    lanes.auxiliary('a')
    lanes.pass(5)
    expect(lanes.refuse('a')).toEqual(['defer a: refused-by-provider'])
    const waiting = HashMap.getUnsafe(lanes.context.waiting, 'a')
    expect(waiting.reason).toBe('refused-by-provider')
    expect(waitReason(lanes.context, waiting).reason).toBe('pacing')
  })
})
