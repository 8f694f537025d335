/** The five states as a host sees them: how long each lasts, and which event ends it. */
import { describe, expect, it } from 'vitest'
import type { PolicyInput, ScopeState } from '../../../machines/index.ts'
import { refusalOf, Story } from '../story.ts'

const day = 24 * 3_600_000
const base: PolicyInput = { capacity: 2, reserve: 0, lingerMs: 5_000, maxDeferralMs: day }

const after = (policy: PolicyInput, tell: (story: Story) => void): Story => {
  const story = new Story({ ...base, ...policy })
  tell(story)
  return story
}

describe('the state is', () => {
  it.each<[ScopeState, string, PolicyInput, (story: Story) => unknown]>([
    ['idle', 'while only auxiliaries come', {}, (story) => story.auxiliary('a')],
    [
      'primaryPending',
      'while auxiliaries in flight are in the way',
      {},
      (story) => [story.auxiliary('a'), story.primary('p')],
    ],
    [
      'primaryPending',
      'while a turn has its primary still to come, and auxiliaries run',
      {},
      (story) => [
        story.auxiliary('a'),
        story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' }),
      ],
    ],
    [
      'quietRamp.admitting',
      'when the auxiliaries in flight are tolerated',
      { inFlight: 'tolerate' },
      (story) => [story.auxiliary('a'), story.auxiliary('b'), story.primary('p')],
    ],
    ['quietRamp.admitting', 'until a primary is accepted', {}, (story) => story.primary('p')],
    ['quietRamp.active', 'once every primary is', {}, (story) => [story.primary('p'), story.accept('p')]],
    [
      'quietRamp.admitting',
      'when another comes',
      {},
      (story) => [story.primary('p'), story.accept('p'), story.primary('q')],
    ],
    [
      'quietRamp.active',
      'when that one is accepted as well',
      {},
      (story) => [story.primary('p'), story.accept('p'), story.primary('q'), story.accept('q')],
    ],
    [
      'quietRamp.admitting',
      'while one waits for a place beside an accepted one',
      { capacity: 1 },
      (story) => [story.primary('p'), story.accept('p'), story.primary('q')],
    ],
    [
      'quietRamp.quiet',
      'while the head may not be tried',
      {},
      (story) => {
        story.tell({
          type: 'provider.evidence',
          evidence: refusalOf('requests-per-minute', { retryAfterMs: 12_000 }),
        })
        story.primary('p')
      },
    ],
    [
      'auxiliaryDraining',
      'while a backlog is released',
      { quantumTokens: 1 },
      (story) => {
        story.primary('p')
        for (const id of ['a', 'b']) story.auxiliary(id, { inputTokens: 1 })
        story.settle('p')
      },
    ],
    ['settled', 'after the last primary', {}, (story) => [story.primary('p'), story.settle('p')]],
    [
      'settled',
      'until the linger has passed',
      {},
      (story) => [story.primary('p'), story.settle('p'), story.pass(4_999)],
    ],
    ['idle', 'when it has', {}, (story) => [story.primary('p'), story.settle('p'), story.pass(5_000)]],
    [
      'settled',
      'after that, while calls run',
      {},
      (story) => [story.primary('p'), story.settle('p'), story.auxiliary('a'), story.pass(9_000)],
    ],
    [
      'idle',
      'when these have settled',
      {},
      (story) => [
        story.primary('p'),
        story.settle('p'),
        story.auxiliary('a'),
        story.pass(9_000),
        story.settle('a'),
      ],
    ],
    [
      'idle',
      'at once, without a linger',
      { lingerMs: 0 },
      (story) => [story.primary('p'), story.settle('p')],
    ],
    [
      'quietRamp.admitting',
      'when a primary comes while it lingers',
      {},
      (story) => [story.primary('p'), story.settle('p'), story.primary('q')],
    ],
    [
      'settled',
      'once a primary is accepted, where the gate is held no longer',
      { hold: 'untilAccepted' },
      (story) => [story.primary('p'), story.accept('p')],
    ],
    [
      'settled',
      'once a primary has its permit, where the gate is held no longer',
      { hold: 'whileWaiting' },
      (story) => story.primary('p'),
    ],
  ])('%s %s', (state, _, policy, tell) => {
    const story = after(policy, tell)
    expect(story.state).toBe(state)
    expect(story.restarted().state).toBe(state)
  })
})

describe('the gate', () => {
  it.each<['whileWaiting' | 'untilAccepted' | 'untilSettled', ReadonlyArray<boolean>]>([
    ['whileWaiting', [true, true, true]],
    ['untilAccepted', [false, true, true]],
    ['untilSettled', [false, false, true]],
  ])('held %s is open after the permit, the acceptance, the answer: %j', (hold, open) => {
    const story = after({ hold, capacity: 8 }, (one) => one.primary('p'))
    const opens: boolean[] = []
    const probe = (id: string): void => {
      story.auxiliary(id)
      opens.push(story.running.includes(id))
      if (story.running.includes(id)) story.settle(id)
      else story.withdraw(id)
    }
    probe('a')
    story.accept('p')
    probe('b')
    story.settle('p')
    probe('c')
    expect(opens).toEqual(open)
  })

  it('held until acceptance closes for each primary that is not accepted yet', () => {
    const story = after({ hold: 'untilAccepted', capacity: 4 }, (one) => one.primary('p'))
    story.accept('p')
    story.accept('p')
    story.primary('q')
    expect(story.context.counts.primaryUnaccepted).toBe(1)
    story.settle('p')
    expect(story.auxiliary('a')).toEqual(['defer a: primary-active'])
    expect(story.settle('q')).toContain('release a: drain')
    expect(story.context.counts.primaryUnaccepted).toBe(0)
  })
})
