/** Nothing waits or runs for ever: every bound ends in an outcome with a name, at its millisecond. */
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../story.ts'

const policy = {
  capacity: 1,
  primaryPendingTimeoutMs: 20_000,
  primaryActiveTimeoutMs: 30_000,
  auxiliaryPendingTimeoutMs: 50_000,
  auxiliaryActiveTimeoutMs: 70_000,
  maxDeferralMs: 600_000,
} as const

const lanes = ['primary', 'auxiliary'] as const

describe('a call', () => {
  it.each(lanes)('that waits (%s) expires after its pending timeout', (lane) => {
    const story = new Story({ ...policy, primaryActiveTimeoutMs: 600_000 })
    story.primary('running')
    story.submit({ id: 'w', lane })
    const boundMs = lane === 'primary' ? 20_000 : 50_000
    expect(story.pass(boundMs - 1)).toEqual([])
    expect(story.pass(1)).toEqual(['expire w: pending-timeout'])
    expect(story.waiting).toEqual([])
  })

  it.each(lanes)('that runs (%s) expires after its active timeout, and its place is free', (lane) => {
    const story = new Story(policy)
    story.submit({ id: 'r', lane })
    story.submit({ id: 'next', lane, deadlineAt: null })
    const boundMs = lane === 'primary' ? 30_000 : 70_000
    story.change({ primaryPendingTimeoutMs: 600_000, auxiliaryPendingTimeoutMs: 600_000 })
    expect(story.pass(boundMs - 1)).toEqual([])
    expect(story.pass(1)).toContain('expire r: active-timeout')
    expect(story.running).toEqual(['next'])
  })

  it('waiting and running are bounded apart: a wait does not shorten the run', () => {
    const story = new Story(policy)
    story.primary('first')
    story.primary('second')
    story.pass(19_000)
    story.settle('first')
    expect(story.pass(29_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire second: active-timeout'])
  })

  it.each([
    ['waits', 'w'],
    ['runs', 'r'],
  ])('that %s when its own deadline passes expires then, whatever the policy', (_, id) => {
    const story = new Story(policy)
    const deadlineAt = story.at + 5_000
    story.auxiliary('r', id === 'r' ? { deadlineAt } : {})
    story.auxiliary('w', id === 'w' ? { deadlineAt } : {})
    expect(story.pass(4_999)).toEqual([])
    expect(story.pass(1)).toContain(`expire ${id}: deadline`)
  })

  it.each([
    ['later', 9_000, [4_999, 9_000]],
    ['earlier', 2_000, [1_999, 2_000]],
  ] as const)(
    'that is asked for again with a %s deadline waits until that one',
    (_, deadlineMs, [before, then]) => {
      const story = new Story(policy)
      const start = story.at
      story.auxiliary('r')
      story.auxiliary('w', { deadlineAt: start + 5_000 })
      story.auxiliary('w', { deadlineAt: start + deadlineMs })
      expect(story.pass(before)).toEqual([])
      expect(story.pass(then - before)).toContain('expire w: deadline')
    },
  )

  it('whose answer comes in the very moment of its deadline counts as answered', () => {
    const story = new Story(policy)
    story.auxiliary('r', { deadlineAt: story.at + 5_000 })
    story.at += 5_000
    expect(story.settle('r')).toEqual([])
    expect(story.context.counters).toMatchObject({ completed: 1, expired: 0 })
  })

  it('whose deadline has passed when it comes does not run', () => {
    const story = new Story(policy)
    expect(story.auxiliary('late', { deadlineAt: story.at })).toEqual(['expire late: deadline'])
    expect(story.running).toEqual([])
  })

  it('that has ended is not ended again by its deadline', () => {
    const story = new Story(policy)
    story.auxiliary('a', { deadlineAt: story.at + 5_000 })
    story.settle('a')
    expect(story.pass(100_000)).toEqual([])
    expect(story.context.counters.expired).toBe(0)
  })

  it('that expired answers too late: that is counted, and frees no place twice', () => {
    const story = new Story(policy)
    story.auxiliary('a')
    story.auxiliary('b')
    story.auxiliary('c')
    story.change({ auxiliaryPendingTimeoutMs: 600_000 })
    story.pass(70_000)
    expect(story.running).toEqual(['b'])
    expect(story.settle('a')).toEqual([])
    expect(story.running).toEqual(['b'])
    expect(story.context.counters.lateSettlements).toBe(1)
  })

  it('that expires while others wait for it lets them go', () => {
    const story = new Story(policy)
    story.auxiliary('summary')
    story.primary('p', { dependsOn: ['summary'] })
    story.change({ primaryPendingTimeoutMs: 600_000 })
    story.pass(70_000)
    expect(story.running).toEqual(['p'])
  })

  it('keeps the age of its first submission through a refusal', () => {
    const story = new Story({ ...policy, pacingBaseMs: 40_000, pacingMaxMs: 40_000 })
    story.auxiliary('a')
    story.pass(31_000)
    story.refuse('a')
    const [decided] = story.pass(19_000)
    expect(decided).toBe('expire a: pending-timeout')
  })
})

describe('patience with auxiliaries in flight', () => {
  it.each([
    [
      'settle, then proceed',
      { inFlight: 'settle', afterPatience: 'proceed' },
      10_000,
      ['release p: primary'],
    ],
    ['settle, then cancel', { inFlight: 'settle', afterPatience: 'cancel' }, 10_000, ['cancel a: preempted']],
    ['cancel at once', { inFlight: 'cancel' }, 0, []],
  ] as const)('%s', (_, over, patienceMs, decided) => {
    const story = new Story({ capacity: 2, reserve: 0, patienceMs: 10_000, ...over })
    story.auxiliary('a')
    story.primary('p')
    expect(story.pass(Math.max(0, patienceMs - 1))).toEqual([])
    expect(story.pass(1)).toEqual(decided)
  })

  it('an auxiliary that was asked back and answers keeps its place and its age', () => {
    const story = new Story({ capacity: 2, reserve: 0, inFlight: 'cancel' })
    story.auxiliary('a')
    expect(story.primary('p')).toEqual(['cancel a: preempted', 'defer p: auxiliaries-in-flight'])
    expect(story.settle('a', 'cancelled')).toEqual(['release p: primary', 'defer a: preempted'])
    expect(story.settle('p')).toEqual(['release a: drain'])
  })

  it('one that completes all the same has completed', () => {
    const story = new Story({ capacity: 2, reserve: 0, inFlight: 'cancel' })
    story.auxiliary('a')
    story.primary('p')
    expect(story.settle('a')).toEqual(['release p: primary'])
    expect(story.context.counters.completed).toBe(1)
  })

  it('one that does not answer is abandoned after graceMs, and the primary goes', () => {
    const story = new Story({ capacity: 2, reserve: 0, inFlight: 'cancel', graceMs: 5_000 })
    story.auxiliary('a')
    story.primary('p')
    expect(story.pass(4_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire a: abandoned', 'release p: primary'])
    expect(story.context.counters.abandoned).toBe(1)
  })

  it('tolerates as many as the policy says', () => {
    const story = new Story({ capacity: 4, reserve: 0, toleratedInFlight: 1, patienceMs: 600_000 })
    story.auxiliary('a')
    expect(story.primary('p')).toEqual(['admit p: primary'])
    story.settle('p')
    story.auxiliary('b')
    expect(story.primary('q')).toEqual(['defer q: auxiliaries-in-flight'])
    expect(story.settle('a')).toEqual(['release q: primary'])
  })
})

const tooLarge = refusalOf('input-tokens-per-minute')

describe('attempts', () => {
  it('end after maxAttempts refusals, with a name', () => {
    const story = new Story({ capacity: 1, maxAttempts: 3, pacingBaseMs: 1, pacingMaxMs: 1 })
    story.auxiliary('a')
    for (let attempt = 1; attempt < 3; attempt += 1) {
      expect(story.refuse('a', tooLarge)).toEqual(['defer a: refused-by-provider'])
      story.pass(10)
    }
    expect(story.refuse('a', tooLarge)).toEqual(['reject a: attempts-exhausted'])
  })

  it.each(['overloaded', 'concurrency', 'requests-per-minute'] as const)(
    'that any call would have been refused (%s) are bounded by time alone: a primary outlives a long outage',
    (kind) => {
      const story = new Story({ capacity: 2, maxAttempts: 3 })
      story.primary('p', { inputTokens: 1_000 })
      const untilMs = story.at + 25 * 60_000
      let refusals = 0
      while (story.at < untilMs) {
        if (story.running.includes('p')) {
          expect(story.refuse('p', refusalOf(kind))).toContain('defer p: refused-by-provider')
          refusals += 1
        }
        story.pass(1_000)
      }
      expect(refusals).toBeGreaterThan(60)
      story.pass(8_000)
      expect(story.running).toEqual(['p'])
    },
  )

  it('are remembered over a restart', () => {
    const story = new Story({ capacity: 1, maxAttempts: 2, pacingBaseMs: 1, pacingMaxMs: 1 })
    story.auxiliary('a')
    story.refuse('a', tooLarge)
    story.pass(10)
    const later = story.restarted()
    expect(later.running).toEqual(['a'])
    expect(later.refuse('a', tooLarge)).toEqual(['reject a: attempts-exhausted'])
  })

  it('end at once where waiting does not mend it', () => {
    const story = new Story()
    story.auxiliary('a')
    const evidence = {
      kind: 'quota-exhausted',
      scope: 'credential',
      retryAfterMs: null,
      retryable: false,
      facts: {},
    } as const
    expect(story.refuse('a', evidence)).toEqual(['reject a: not-retryable'])
  })

  it('end with a refusal after acceptance: what was streamed cannot be taken back', () => {
    const story = new Story()
    story.auxiliary('a')
    story.accept('a')
    expect(story.refuse('a')).toEqual(['reject a: attempts-exhausted'])
  })

  it('hours are waited without a timer that is hours long, and a primary expires by its own bound meanwhile', () => {
    const story = new Story({ ...policy, primaryPendingTimeoutMs: 20_000 })
    story.tell({
      type: 'provider.evidence',
      evidence: {
        kind: 'tokens-per-day',
        scope: 'credential',
        retryAfterMs: 277_403_000,
        retryable: true,
        facts: {},
      },
    })
    expect(story.primary('p')).toEqual(['defer p: provider-wait'])
    expect(story.pass(20_000)).toEqual(['expire p: pending-timeout'])
  })
})

describe('a clock that goes back', () => {
  it('does not take time back: what was due stays due, and nothing happens twice', () => {
    const story = new Story(policy)
    story.primary('running')
    story.auxiliary('w')
    story.at += 10_000
    story.withdraw('nobody')
    story.at -= 9_000
    story.withdraw('nobody')
    expect(story.context.at).toBe(1_010_000)
    story.at = 1_030_000
    expect(story.tell({ type: 'clock.woke' })).toContain('expire running: active-timeout')
    story.at = 1_000_000
    expect(story.tell({ type: 'clock.woke' })).toEqual([])
  })
})

describe('the order in which calls time out', () => {
  it.each(lanes)('holds few places of calls that are gone, however many came and went (%s)', (lane) => {
    const story = new Story({ ...policy, capacity: 2, reserve: 0, maxDeferralMs: 3_600_000 })
    story.submit({ id: 'old', lane })
    for (let index = 0; index < 1_200; index += 1) {
      story.submit({ id: `c${index}`, lane })
      story.settle(`c${index}`)
    }
    expect(story.context.grants[lane].size).toBeLessThan(1_100)
    expect(story.context.arrivals[lane].size).toBeLessThan(1_100)
    story.submit({ id: 'next', lane })
    story.submit({ id: 'waits', lane })
    for (let index = 0; index < 1_200; index += 1) {
      story.submit({ id: `d${index}`, lane })
      story.withdraw(`d${index}`)
    }
    expect(story.context.arrivals[lane].size).toBeLessThan(1_100)
    const pendingMs = lane === 'primary' ? 20_000 : 50_000
    expect(story.pass(pendingMs)).toEqual(['expire waits: pending-timeout'])
    expect(story.pass((lane === 'primary' ? 30_000 : 70_000) - pendingMs)).toEqual([
      'expire old: active-timeout',
      'expire next: active-timeout',
    ])
  })
})

describe('auxiliaries that are asked for their places', () => {
  it('are asked in the order of coming, and not those that a primary needs or that run inside others', () => {
    const story = new Story({ capacity: 8, reserve: 0, inFlight: 'cancel', graceMs: 5_000 })
    for (const id of ['z', 'm', 'b']) story.auxiliary(id)
    story.auxiliary('child', { parentId: 'm' })
    expect(story.primary('p', { dependsOn: ['b'] })).toEqual([
      'cancel z: preempted',
      'cancel m: preempted',
      'defer p: dependencies',
    ])
    expect(story.context.counters.preemptions).toBe(2)
    expect(story.pass(5_000)).toEqual(['expire z: abandoned', 'expire m: abandoned'])
  })

  it('are spared while they are the quantum of fairness, until patience ends', () => {
    const story = new Story({
      capacity: 2,
      reserve: 0,
      inFlight: 'cancel',
      patienceMs: 20_000,
      graceMs: 5_000,
      maxDeferralMs: 10_000,
      quantumTokens: 1,
    })
    for (const id of ['o', 'p', 'q']) story.primary(id)
    story.auxiliary('a')
    story.pass(10_000)
    expect(story.settle('o')).toEqual(['release a: fairness'])
    expect(story.reasonOf('q')).toBe('auxiliaries-in-flight')
    expect(story.pass(19_999)).toEqual([])
    expect(story.pass(1)).toEqual(['cancel a: preempted'])
    expect(story.pass(4_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire a: abandoned', 'release q: primary'])
  })

  it.each([
    ['tolerate', 'cancel'],
    ['settle', 'proceed'],
  ] as const)('are not asked under %s, %s', (inFlight, afterPatience) => {
    const story = new Story({ capacity: 1, inFlight, afterPatience, patienceMs: 10_000 })
    story.auxiliary('a')
    story.primary('p')
    expect(story.pass(60_000)).toEqual([])
    expect(story.context.counters.preemptions).toBe(0)
    expect(story.settle('a')).toEqual(['release p: primary'])
  })

  it('have the whole grace to answer, though patience is shorter', () => {
    const story = new Story({ capacity: 1, inFlight: 'cancel', patienceMs: 10_000, graceMs: 60_000 })
    story.auxiliary('a')
    story.primary('p')
    expect(story.pass(59_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire a: abandoned', 'release p: primary'])
  })

  it('are abandoned after the grace of their own asking, not of an earlier one', () => {
    const story = new Story({ capacity: 1, inFlight: 'cancel', graceMs: 5_000 })
    story.auxiliary('a')
    story.primary('p')
    story.pass(3_000)
    story.settle('a', 'cancelled')
    story.settle('p')
    expect(story.running).toEqual(['a'])
    story.primary('q')
    expect(story.pass(4_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire a: abandoned', 'release q: primary'])
  })
})
