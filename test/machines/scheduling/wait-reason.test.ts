/** Why a call waits, and until when time alone may change it. */
import { describe, expect, it } from 'vitest'
import { type PolicyInput, waitReason } from '../../../machines/index.ts'
import { lookup } from '../../../machines/state/context.ts'
import { refusalOf, Story } from '../story.ts'

/** The reason, and the milliseconds until time may change it; null when only an event can. */
const why = (story: Story, id: string): readonly [string, number | null] => {
  const waiting = lookup(story.context.waiting, id)
  if (waiting === undefined) throw new Error(`${id} does not wait`)
  const { reason, wakeAt } = waitReason(story.context, waiting)
  return [reason, wakeAt === null ? null : wakeAt - story.at]
}

const hold = (story: Story): unknown =>
  story.tell({
    type: 'provider.evidence',
    evidence: refusalOf('requests-per-minute', { retryAfterMs: 12_000 }),
  })

type Case = readonly [string, PolicyInput, (story: Story) => void, readonly [string, number | null]]

/** In each of these stories the call `w` waits. */
const primaries: ReadonlyArray<Case> = [
  [
    'for a call that it depends on',
    {},
    (story) => [story.auxiliary('a'), story.primary('w', { dependsOn: ['a'] })],
    ['dependencies', null],
  ],
  [
    'for auxiliaries to settle, at most patienceMs',
    { patienceMs: 10_000 },
    (story) => [story.auxiliary('a'), story.primary('w')],
    ['auxiliaries-in-flight', 10_000],
  ],
  [
    'for auxiliaries to answer their abort, at most graceMs',
    { inFlight: 'cancel', graceMs: 3_000 },
    (story) => [story.auxiliary('a'), story.primary('w')],
    ['auxiliaries-in-flight', 3_000],
  ],
  [
    'for the wait that the provider asked for',
    {},
    (story) => [hold(story), story.primary('w')],
    ['provider-wait', 12_000],
  ],
  [
    'for the budget',
    { limits: { inputTokensPerMinute: 600 } },
    (story) => [story.primary('p', { inputTokens: 600 }), story.primary('w', { inputTokens: 100 })],
    ['budget', 10_000],
  ],
  [
    'behind another that waits for the budget',
    { limits: { inputTokensPerMinute: 600 } },
    (story) => {
      story.primary('p', { inputTokens: 600 })
      story.primary('q', { inputTokens: 100 })
      story.primary('w', { inputTokens: 1 })
    },
    ['behind-others', null],
  ],
  [
    'for a place',
    { capacity: 1 },
    (story) => [story.primary('p'), story.primary('w')],
    ['capacity-full', null],
  ],
  [
    'for the place that a quantum has taken',
    { capacity: 1, maxDeferralMs: 10_000, quantumTokens: 100 },
    (story) => {
      story.primary('p')
      for (const id of ['a', 'b']) story.auxiliary(id, { principal: id, inputTokens: 10 })
      story.primary('w')
      story.pass(10_000)
      story.settle('p')
      expect(story.running).toEqual(['a'])
    },
    ['auxiliaries-in-flight', 30_000],
  ],
]

const auxiliaries: ReadonlyArray<Case> = [
  [
    'for the wait that the provider asked for',
    {},
    (story) => [hold(story), story.auxiliary('w')],
    ['provider-wait', 12_000],
  ],
  [
    'for a place, though it may pass the gate',
    { capacity: 1 },
    (story) => {
      story.primary('p')
      story.auxiliary('w')
      story.tell({ type: 'call.promoted', callId: 'w' })
    },
    ['capacity-full', null],
  ],
  [
    'for a primary that waits',
    { capacity: 1 },
    (story) => [story.auxiliary('a'), story.primary('p'), story.auxiliary('w')],
    ['primary-pending', null],
  ],
  [
    'for a primary that runs',
    {},
    (story) => [story.primary('p'), story.auxiliary('w')],
    ['primary-active', null],
  ],
  [
    'for the next round of a turn',
    {},
    (story) => {
      story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
      story.auxiliary('w')
    },
    ['turn-held', null],
  ],
  [
    'for a place',
    { capacity: 1 },
    (story) => [story.auxiliary('a'), story.auxiliary('w')],
    ['capacity-full', null],
  ],
  [
    'for a place beside those that are kept',
    { capacity: 2, reserve: 1 },
    (story) => [story.auxiliary('a'), story.auxiliary('w')],
    ['reserve-kept', null],
  ],
  [
    'for foreground work',
    {},
    (story) => [story.tell({ type: 'foreground.changed', active: true }), story.auxiliary('w')],
    ['foreground-active', null],
  ],
  [
    'for the budget',
    { limits: { inputTokensPerMinute: 600 } },
    (story) => [story.auxiliary('a', { inputTokens: 600 }), story.auxiliary('w', { inputTokens: 100 })],
    ['budget', 10_000],
  ],
  [
    'for its principal to have fewer in flight',
    { principalQuota: 1 },
    (story) => [story.auxiliary('a'), story.auxiliary('w')],
    ['quota', null],
  ],
  [
    'for the next quantum of the drain, below its quota',
    { capacity: 1, quantumTokens: 100, drainIntervalMs: 2_000, principalQuota: 2 },
    (story) => {
      story.primary('p')
      for (const id of ['a', 'w']) story.auxiliary(id, { inputTokens: 100 })
      story.settle('p')
      story.settle('a')
    },
    ['drain-pace', 2_000],
  ],
  [
    'for a primary, which is next after the quantum of another',
    { capacity: 1, maxDeferralMs: 10_000, quantumTokens: 100 },
    (story) => {
      story.primary('p')
      for (const id of ['a', 'w']) story.auxiliary(id, { principal: id, inputTokens: 10 })
      story.primary('q')
      story.pass(10_000)
      story.settle('p')
    },
    ['primary-pending', null],
  ],
  [
    'for a primary, when the quantum is spent',
    { capacity: 2, reserve: 1, maxDeferralMs: 10_000, quantumTokens: 10, hold: 'untilSettled' },
    (story) => {
      story.primary('p')
      for (const id of ['a', 'w']) story.auxiliary(id, { inputTokens: 10 })
      story.pass(10_000)
    },
    ['primary-active', null],
  ],
]

describe('a primary waits', () => {
  it.each(primaries)('%s', (_, policy, tell, expected) => {
    const story = new Story({ capacity: 2, reserve: 0, ...policy })
    tell(story)
    expect(why(story, 'w')).toEqual(expected)
  })

  it('for its class, which the provider refused, until its pause ends', () => {
    const story = new Story({ pacingBaseMs: 8_000, pacingMaxMs: 8_000 })
    story.primary('w')
    story.pass(5)
    story.refuse('w', refusalOf('overloaded'))
    const { pausedUntilMs } = story.context.pacing.interactive!
    expect(why(story, 'w')).toEqual(['pacing', pausedUntilMs - story.at])
  })

  it('for quiet, when its tokens were refused, until it is tried again', () => {
    const story = new Story({ strategy: 'quiet', quietWindowMs: 60_000 })
    story.primary('w', { inputTokens: 180_000 })
    story.refuse('w', refusalOf('acceleration'))
    expect(why(story, 'w')).toEqual(['quiet-window', story.wakesInMs])
  })
})

describe('an auxiliary waits', () => {
  it.each(auxiliaries)('%s', (_, policy, tell, expected) => {
    const story = new Story({ capacity: 2, reserve: 0, ...policy })
    tell(story)
    expect(why(story, 'w')).toEqual(expected)
  })

  it('for its class, which the provider refused, until its pause ends', () => {
    const story = new Story({ pacingBaseMs: 8_000, pacingMaxMs: 8_000 })
    story.auxiliary('w')
    story.pass(5)
    story.refuse('w', refusalOf('overloaded'))
    const { pausedUntilMs } = story.context.pacing.background_ingestion!
    expect(why(story, 'w')).toEqual(['pacing', pausedUntilMs - story.at])
  })

  it('for the probe of its class to be accepted, which no time brings, once the pause is over', () => {
    const story = new Story({ capacity: 3, reserve: 0, pacingBaseMs: 8_000, pacingMaxMs: 8_000 })
    story.auxiliary('probe')
    story.auxiliary('w')
    story.pass(5)
    story.refuse('probe', refusalOf('overloaded'))
    story.refuse('w', refusalOf('overloaded'))
    story.pass(story.wakesInMs!)
    expect(story.running).toEqual(['probe'])
    expect(why(story, 'w')).toEqual(['pacing', null])
  })
})
