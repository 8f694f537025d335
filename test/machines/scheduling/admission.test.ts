/** Who goes, as what, and what a grant changes for those who wait. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../story.ts'

const hour = 3_600_000
const story = (policy = {}): Story => new Story({ capacity: 1, reserve: 0, maxDeferralMs: hour, ...policy })

describe('a grant', () => {
  it('in the event that brings a call admits it, later it releases it', () => {
    const lanes = story()
    expect(lanes.auxiliary('a')).toEqual(['admit a: open'])
    lanes.auxiliary('b')
    expect(lanes.settle('a')).toEqual(['release b: open'])
  })

  it('in the event that refused the call releases it: it has been admitted before', () => {
    const lanes = story({ pacingBaseMs: 0, pacingMaxMs: 0 })
    lanes.auxiliary('a')
    lanes.pass(5)
    expect(lanes.refuse('a')).toEqual(['release a: open'])
  })

  it('is counted, and that of one let past the gate as such', () => {
    const lanes = story({ capacity: 4 })
    lanes.auxiliary('parent')
    expect(lanes.context.counters).toMatchObject({ granted: 1, dependencyGrants: 0 })
    lanes.auxiliary('child', { parentId: 'parent' })
    expect(lanes.context.counters).toMatchObject({ granted: 2, dependencyGrants: 1 })
    lanes.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    lanes.auxiliary('tool', { turnId: 't' })
    expect(lanes.context.counters).toMatchObject({ granted: 3, dependencyGrants: 2 })
  })

  it('leaves the reason of who waits as it was told', () => {
    const lanes = story()
    lanes.auxiliary('a')
    expect(lanes.auxiliary('w')).toEqual(['defer w: capacity-full'])
    expect(HashMap.getUnsafe(lanes.context.waiting, 'w').reason).toBe('capacity-full')
  })
})

describe('an urgent auxiliary', () => {
  it('counts against the quota of its principal, and leaves it when it ends', () => {
    const lanes = story({ capacity: 4, principalQuota: 1 })
    lanes.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    lanes.auxiliary('tool', { turnId: 't' })
    lanes.auxiliary('w')
    lanes.tell({ type: 'turn.ended', turnId: 't' })
    expect(lanes.reasonOf('w')).toBe('quota')
    expect(lanes.settle('tool')).toEqual(['release w: drain'])
  })

  it('that left and came again without urgency stands in its queue', () => {
    const lanes = story({ capacity: 2 })
    for (const id of ['p', 'q']) lanes.primary(id)
    lanes.auxiliary('a')
    lanes.tell({ type: 'call.promoted', callId: 'a' })
    lanes.withdraw('a')
    lanes.auxiliary('a')
    expect(lanes.settle('p')).toEqual([])
    expect(lanes.settle('q')).toEqual(['release a: drain'])
  })

  it('is not in the way of a primary: nobody waits for it', () => {
    const lanes = story({ capacity: 3 })
    lanes.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    lanes.auxiliary('tool', { turnId: 't' })
    expect(lanes.context.counts).toMatchObject({ auxiliaryInFlight: 1, auxiliaryInTheWay: 0 })
    expect(lanes.primary('p', { turnId: 't' })).toEqual(['admit p: primary'])
  })
})

describe('a call inside another', () => {
  it('that is a primary does not have its parent cancelled: nobody waits for its place', () => {
    const lanes = story({ inFlight: 'cancel' })
    lanes.auxiliary('parent')
    expect(lanes.primary('child', { parentId: 'parent' })).toEqual(['admit child: nested'])
    expect(lanes.context.counts).toMatchObject({ places: 1, auxiliaryInTheWay: 1, primaryInFlight: 1 })
    expect(lanes.state).toBe('quietRamp.admitting')
  })

  it('of the auxiliary lane is not in the way of a primary', () => {
    const lanes = story({ capacity: 2, toleratedInFlight: 1 })
    lanes.auxiliary('parent')
    lanes.auxiliary('child', { parentId: 'parent' })
    expect(lanes.primary('p')).toEqual(['admit p: primary'])
  })

  it('leaves nothing behind when it ends before its parent', () => {
    const lanes = story()
    lanes.auxiliary('parent')
    for (const id of ['one', 'two']) lanes.auxiliary(id, { parentId: 'parent' })
    expect(HashMap.size(lanes.context.nested)).toBe(1)
    lanes.settle('one')
    expect(lanes.running).toEqual(['parent', 'two'])
    lanes.settle('two')
    expect(HashMap.size(lanes.context.nested)).toBe(0)
    expect(lanes.context.counts.places).toBe(1)
  })
})

describe('quanta', () => {
  it('go to who has waited longest, each after a primary, as soon as that has ended', () => {
    const lanes = story({ maxDeferralMs: 10_000, quantumTokens: 1_000 })
    lanes.primary('p0')
    for (const id of ['a0', 'a1', 'b0']) lanes.auxiliary(id, { principal: id.charAt(0), inputTokens: 10 })
    for (const id of ['p1', 'p2']) lanes.primary(id)
    lanes.pass(10_000)
    expect(lanes.settle('p0')).toEqual(['release a0: fairness'])
    expect(lanes.settle('a0')).toEqual(['release p1: primary'])
    lanes.pass(5_000)
    expect(lanes.settle('p1')).toEqual(['release b0: fairness'])
    expect(lanes.settle('b0')).toEqual(['release p2: primary'])
    lanes.pass(5_000)
    lanes.primary('p3')
    expect(lanes.settle('p2')).toEqual(['release a1: fairness'])
    expect(lanes.settle('a1')).toEqual(['release p3: primary'])
    expect(lanes.context.counters.fairnessQuanta).toBe(3)
  })

  it('are one quantum long each, though others are overdue as well', () => {
    const lanes = story({ maxDeferralMs: 10_000, quantumTokens: 10 })
    lanes.primary('p0')
    for (const id of ['a', 'b']) lanes.auxiliary(id, { principal: id, inputTokens: 10 })
    for (const id of ['p1', 'p2']) lanes.primary(id)
    lanes.pass(10_000)
    expect(lanes.settle('p0')).toEqual(['release a: fairness'])
    expect(lanes.settle('a')).toEqual(['release p1: primary'])
    expect(lanes.settle('p1')).toEqual(['release b: fairness'])
    expect(lanes.settle('b')).toEqual(['release p2: primary'])
  })

  it('in which nothing could be served are none', () => {
    const lanes = story()
    lanes.primary('p')
    lanes.auxiliary('a')
    lanes.tell({
      type: 'provider.evidence',
      evidence: refusalOf('requests-per-minute', { retryAfterMs: 60_000 }),
    })
    lanes.settle('p')
    expect(lanes.state).toBe('auxiliaryDraining')
    lanes.primary('q')
    expect(lanes.context.counters.fairnessQuanta).toBe(0)
  })

  it('cannot be served where the provider asked to wait: the primary is not kept for that', () => {
    const lanes = story({ capacity: 2, maxDeferralMs: 10_000 })
    lanes.primary('p')
    lanes.auxiliary('a')
    lanes.pass(9_000)
    lanes.tell({
      type: 'provider.evidence',
      evidence: refusalOf('requests-per-minute', { retryAfterMs: 3_000 }),
    })
    lanes.pass(1_500)
    lanes.primary('q')
    expect(lanes.reasonOf('q')).toBe('provider-wait')
    // The provider held it for those seconds, not the primaries: it is owed nothing for them.
    expect(lanes.pass(1_500)).toEqual(['release q: primary'])
    lanes.pass(1_000)
    expect(lanes.settle('q')).toEqual(['release a: fairness'])
  })

  it('that do not fit the budget do not keep a primary that does', () => {
    const lanes = story({ maxDeferralMs: 10_000, limits: { inputTokensPerMinute: 600 } })
    lanes.primary('p', { inputTokens: 500 })
    lanes.auxiliary('a', { inputTokens: 600 })
    lanes.primary('q', { inputTokens: 1 })
    lanes.pass(11_000)
    expect(lanes.settle('p')).toEqual(['release q: primary'])
  })
})

describe('foreground work', () => {
  it('lets the first call of each go when it has waited long enough, one at a time', () => {
    const lanes = story({ capacity: 8, maxDeferralMs: 10_000 })
    lanes.tell({ type: 'foreground.changed', active: true })
    for (const id of ['a0', 'a1', 'b0']) lanes.auxiliary(id, { principal: id.charAt(0), inputTokens: 1 })
    expect(lanes.pass(9_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['release a0: open', 'release b0: open'])
    expect(lanes.pass(9_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['release a1: open'])
  })
})

describe('the metered drain', () => {
  it('releases one quantum per interval, and the last call of one may overdraw it', () => {
    const lanes = story({ capacity: 8, quantumTokens: 100, drainIntervalMs: 2_000 })
    lanes.primary('p')
    for (let index = 0; index < 5; index += 1) lanes.auxiliary(`a${index}`, { inputTokens: 60 })
    expect(lanes.settle('p')).toEqual(['release a0: drain', 'release a1: drain'])
    expect(lanes.pass(1_999)).toEqual([])
    expect(lanes.pass(1)).toEqual(['release a2: drain', 'release a3: drain'])
    expect(lanes.pass(2_000)).toEqual(['release a4: drain'])
  })

  it('is not metered by what went before it', () => {
    const lanes = story({ capacity: 8, quantumTokens: 100, drainIntervalMs: 2_000 })
    for (let index = 0; index < 3; index += 1) lanes.auxiliary(`o${index}`, { inputTokens: 90 })
    for (let index = 0; index < 3; index += 1) lanes.settle(`o${index}`)
    lanes.primary('p')
    lanes.auxiliary('a', { inputTokens: 60 })
    expect(lanes.settle('p')).toEqual(['release a: drain'])
  })
})

describe('a head that does not fit', () => {
  it('is passed over anew when another has its turn', () => {
    const lanes = story({ capacity: 16, quantumTokens: 1_000, limits: { inputTokensPerMinute: 600 } })
    lanes.auxiliary('first', { principal: 'x', inputTokens: 500 })
    lanes.auxiliary('large', { principal: 'a', inputTokens: 400 })
    lanes.auxiliary('s1', { principal: 'b', inputTokens: 10 })
    expect(lanes.running).toContain('s1')
    expect(lanes.context.bypass).toEqual({ callId: 'large', count: 1 })
    lanes.pass(60_000)
    expect(lanes.running).toContain('large')
    expect(lanes.context.bypass).toBeNull()
  })
})

describe('patience and grace of no length', () => {
  it.each([
    [
      'grace',
      { inFlight: 'cancel', graceMs: 0 },
      ['cancel a: preempted', 'expire a: abandoned', 'admit p: primary'],
    ],
    [
      'patience, then cancel',
      { inFlight: 'settle', afterPatience: 'cancel', patienceMs: 0, graceMs: 5_000 },
      ['cancel a: preempted', 'defer p: auxiliaries-in-flight'],
    ],
  ])('end at once: %s', (_, policy, decided) => {
    const lanes = story({ capacity: 2, ...policy })
    lanes.auxiliary('a')
    expect(lanes.primary('p')).toEqual(decided)
  })
})

describe('an acceptance in a class that backs off', () => {
  it('ends the pause for its primaries at once', () => {
    const lanes = story({ capacity: 2, pacingBaseMs: 60_000, pacingMaxMs: 60_000 })
    lanes.primary('parent')
    lanes.primary('p')
    lanes.pass(5)
    lanes.refuse('p', refusalOf('overloaded'))
    lanes.pass(5)
    expect(lanes.primary('child', { parentId: 'parent' })).toEqual(['admit child: nested'])
    expect(lanes.running).not.toContain('p')
    expect(lanes.accept('child')).toEqual(['release p: primary'])
  })
})
