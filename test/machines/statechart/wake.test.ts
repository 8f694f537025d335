/** When a scope asks to be told the time: exactly when time alone changes something, and not before. */
import { describe, expect, it } from 'vitest'
import type { PolicyInput } from '../../../machines/index.ts'
import { refusalOf, Story } from '../story.ts'

const month = 30 * 24 * 3_600_000

/** Nothing times out within the month, so that each story shows its own reason to wake. */
const patient: PolicyInput = {
  capacity: 2,
  reserve: 0,
  primaryPendingTimeoutMs: month,
  primaryActiveTimeoutMs: month,
  auxiliaryPendingTimeoutMs: month,
  auxiliaryActiveTimeoutMs: month,
  turnTimeoutMs: month,
  maxDeferralMs: month,
  unclaimedExpiryMs: month,
  lingerMs: 5_000,
  patienceMs: 30_000,
  graceMs: 4_000,
  pacingBaseMs: 1_000,
  pacingMaxMs: 1_000,
}

const holdsFor = (retryAfterMs: number) => ({
  type: 'provider.evidence' as const,
  evidence: refusalOf('requests-per-minute', { retryAfterMs }),
})

const full = (story: Story): void => {
  for (const id of ['r1', 'r2']) story.auxiliary(id, { principal: id })
}

const cases: ReadonlyArray<readonly [string, PolicyInput, (story: Story) => void, number | null]> = [
  ['nobody lives', {}, () => {}, null],
  ['one runs: its timeout', { auxiliaryActiveTimeoutMs: 70_000 }, (story) => story.auxiliary('a'), 70_000],
  [
    'one waits: its timeout',
    { auxiliaryPendingTimeoutMs: 50_000 },
    (story) => [full(story), story.auxiliary('w')],
    50_000,
  ],
  ['one has a deadline', {}, (story) => story.auxiliary('a', { deadlineAt: story.at + 9_000 }), 9_000],
  [
    'a turn is declared',
    { turnTimeoutMs: 60_000 },
    (story) => story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'yield' }),
    60_000,
  ],
  ['a full house waits for answers', {}, (story) => [full(story), story.auxiliary('w')], month],
  ['a primary waits for auxiliaries: patience', {}, (story) => [full(story), story.primary('p')], 30_000],
  [
    'a primary asked for the places of auxiliaries: grace',
    { inFlight: 'cancel' },
    (story) => [full(story), story.primary('p')],
    4_000,
  ],
  ['primaries are done: the linger', {}, (story) => [story.primary('p'), story.settle('p')], 5_000],
  [
    'a backlog drains: the next quantum',
    { capacity: 1, quantumTokens: 100, drainIntervalMs: 2_000 },
    (story) => {
      story.primary('p')
      for (const id of ['a', 'b', 'c']) story.auxiliary(id, { inputTokens: 60 })
      for (const id of ['p', 'a', 'b']) story.settle(id)
    },
    2_000,
  ],
  [
    'a primary holds an auxiliary: its deferral',
    { maxDeferralMs: 40_000 },
    (story) => [story.primary('p'), story.auxiliary('a')],
    40_000,
  ],
  [
    'foreground work holds an auxiliary: its deferral',
    { maxDeferralMs: 40_000 },
    (story) => [story.tell({ type: 'foreground.changed', active: true }), story.auxiliary('a')],
    40_000,
  ],
  [
    'a full house holds an auxiliary: no deferral ends that',
    { maxDeferralMs: 40_000 },
    (story) => [full(story), story.auxiliary('a')],
    month,
  ],
  [
    'the places are halved after a primary',
    { squeezeMs: 20_000 },
    (story) => {
      story.primary('p')
      story.settle('p')
      story.auxiliary('a')
      story.pass(6_000)
      story.auxiliary('b')
    },
    14_000,
  ],
  [
    'the provider asked to wait, and an auxiliary does',
    {},
    (story) => [story.tell(holdsFor(12_000)), story.auxiliary('a')],
    12_000,
  ],
  [
    'the provider asked to wait, and a primary does',
    {},
    (story) => [story.tell(holdsFor(12_000)), story.primary('p')],
    12_000,
  ],
  [
    'the provider asked to wait, and one that a primary needs does',
    {},
    (story) => {
      story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
      story.tell(holdsFor(12_000))
      story.auxiliary('tool', { turnId: 't' })
    },
    12_000,
  ],
  ['the provider asked to wait, and nobody does', {}, (story) => story.tell(holdsFor(12_000)), null],
  [
    'the budget is spent',
    { limits: { inputTokensPerMinute: 600 } },
    (story) => [story.auxiliary('a', { inputTokens: 600 }), story.auxiliary('b', { inputTokens: 100 })],
    10_000,
  ],
  [
    'the budget is spent, and a primary waits for it',
    { limits: { inputTokensPerMinute: 600 } },
    (story) => [story.primary('p', { inputTokens: 600 }), story.primary('q', { inputTokens: 100 })],
    10_000,
  ],
]

describe('a scope wakes when', () => {
  it.each(cases)('%s', (_, policy, tell, ms) => {
    const story = new Story({ ...patient, ...policy })
    tell(story)
    expect(story.wakesInMs).toBe(ms)
  })

  it.each(cases)('(after a restart) %s', (_, policy, tell, ms) => {
    const story = new Story({ ...patient, ...policy })
    tell(story)
    expect(story.restarted().wakesInMs).toBe(ms)
  })

  it('a class that backs off may go again, wherever it stands in the ring', () => {
    const story = new Story({ ...patient, reserve: 0 })
    story.auxiliary('a')
    story.pass(5)
    story.refuse('a', refusalOf('overloaded'))
    const { pausedUntilMs } = story.context.pacing.background_ingestion!
    expect(story.wakesInMs).toBe(pausedUntilMs - story.at)
  })

  it('the quantum after the next primary is due, counted from the last', () => {
    const story = new Story({ ...patient, capacity: 1, quantumTokens: 1, maxDeferralMs: 10_000 })
    story.primary('p0')
    for (const [id, principal] of [
      ['a', 'a'],
      ['b', 'b'],
    ] as const)
      story.auxiliary(id, { principal })
    story.primary('p1')
    story.pass(10_000)
    expect(story.settle('p0')).toEqual(['release a: fairness'])
    expect(story.settle('a')).toEqual(['release p1: primary'])
    story.pass(4_000)
    story.settle('p1')
    expect(story.running).toEqual(['b'])
  })

  it('a budget lets the next call of a drain go, not at every interval of the drain', () => {
    const limits = { inputTokensPerMinute: 600 }
    const story = new Story({ ...patient, capacity: 8, quantumTokens: 1_000, drainIntervalMs: 1, limits })
    story.primary('p', { inputTokens: 600 })
    for (const id of ['a', 'b', 'c']) story.auxiliary(id, { inputTokens: 100 })
    story.settle('p')
    expect(story.context.state).toBe('auxiliaryDraining')
    const begunMs = story.at
    let wakes = 0
    while (story.waiting.length > 0) {
      expect(story.reasonOf(story.waiting[0]!)).toBe('budget')
      story.pass(story.wakesInMs as number)
      wakes += 1
    }
    // A hundred tokens come back every ten seconds: one wake for each call.
    expect([wakes, story.at - begunMs]).toEqual([3, 30_000])
  })
})
