/**
 * The effects of an answer: on counters, on the budget, on the wait of the scope and on the pace of a class.
 */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import { contractPolicy, type EvidenceKind, type Outcome } from '../../../machines/index.ts'
import { encodeScope } from '../../../machines/snapshot/codec.ts'
import type { Counters } from '../../../machines/state/counts.ts'
import { blankCall, refusalOf, Story } from '../story.ts'

const running = (policy = {}): Story => {
  const story = new Story({ capacity: 4, reserve: 0, ...policy })
  story.auxiliary('a', { inputTokens: 100, outputTokens: 40 })
  story.pass(5)
  return story
}

describe('an outcome', () => {
  it.each<[Outcome, Partial<Counters>]>([
    ['completed', { completed: 1 }],
    ['failed', {}],
    ['cancelled', {}],
    ['timedOut', {}],
    ['abandoned', {}],
    ['unknown', { unknownOutcomes: 1 }],
  ])('of %s is counted', (outcome, counted) => {
    const story = running()
    story.settle('a', outcome)
    const counters = {
      completed: 0,
      unknownOutcomes: 0,
      refusedByProvider: 0,
      lateSettlements: 0,
      ...counted,
    }
    expect(story.context.counters).toMatchObject({ submitted: 1, granted: 1, ...counters })
    expect(story.context.counts.places).toBe(0)
  })

  it.each<[string, Outcome, boolean, number]>([
    ['answered', 'completed', false, 900],
    ['failed before it was accepted: nothing was charged', 'failed', false, 1_000],
    ['failed after it was accepted', 'failed', true, 900],
    ['was cancelled before it was accepted', 'cancelled', false, 1_000],
    ['was cancelled after it was accepted', 'cancelled', true, 900],
    ['ran out of time: the provider may have charged it', 'timedOut', false, 900],
    ['is unknown: the provider may have charged it', 'unknown', false, 900],
  ])('of a call that %s leaves so much of the budget', (_, outcome, accepted, level) => {
    const story = new Story({ limits: { inputTokensPerMinute: 1_000 } })
    story.auxiliary('a', { inputTokens: 100 })
    if (accepted) story.accept('a')
    story.settle('a', outcome)
    expect(story.context.budget.inputTokensPerMinute?.level).toBe(level)
  })

  it.each([
    ['more', { inputTokens: 150, outputTokens: 60 }, 850, 940],
    ['less', { inputTokens: 50, outputTokens: 10 }, 950, 990],
    ['only input', { inputTokens: 150, outputTokens: null }, 850, 960],
    ['only output', { inputTokens: null, outputTokens: 60 }, 900, 940],
    ['only output, and as much input as estimated', { inputTokens: 100, outputTokens: 60 }, 900, 940],
  ])('with a usage of %s corrects the estimate', (_, usage, input, output) => {
    const story = new Story({ limits: { inputTokensPerMinute: 1_000, outputTokensPerMinute: 1_000 } })
    story.auxiliary('a', { inputTokens: 100, outputTokens: 40 })
    story.settle('a', 'completed', usage)
    expect(story.context.budget.inputTokensPerMinute?.level).toBe(input)
    expect(story.context.budget.outputTokensPerMinute?.level).toBe(output)
  })
})

describe('a stage', () => {
  it('goes from admitted over dispatched to accepted, and never back', () => {
    const story = running()
    const stage = (): string | undefined =>
      JSON.parse(JSON.stringify(story.actor.getPersistedSnapshot())).scope.inFlight[0]?.stage
    expect(stage()).toBe('admitted')
    story.dispatch('a')
    expect(stage()).toBe('dispatched')
    story.accept('a')
    expect(stage()).toBe('accepted')
    story.dispatch('a')
    story.accept('a')
    expect(stage()).toBe('accepted')
  })

  it('of a call that nobody knows is not told', () => {
    const story = running()
    for (const tell of ['call.dispatched', 'call.accepted', 'call.withdrawn', 'call.promoted'] as const)
      expect(story.tell({ type: tell, callId: 'ghost' })).toEqual([])
    expect(story.running).toEqual(['a'])
  })
})

describe('a refusal', () => {
  it('is counted, by what the provider named', () => {
    const story = running({ pacingBaseMs: 0, pacingMaxMs: 0 })
    for (const kind of ['overloaded', 'overloaded', 'requests-per-minute'] as const) {
      story.refuse('a', refusalOf(kind))
      story.pass(10)
    }
    story.tell({ type: 'call.settled', callId: 'a', outcome: 'throttled' })
    expect(story.context.refusalsByKind).toEqual({
      overloaded: 2,
      'requests-per-minute': 1,
      'unknown-rate-limit': 1,
    })
    expect(story.context.counters.refusedByProvider).toBe(4)
    expect(story.waiting.concat(story.running)).toEqual(['a'])
  })

  it.each([
    ['before the last one', 5, 1],
    ['in the very moment of the last one', 0, 0],
  ])('of a call that left %s (%i ms) is late %i times', (_, ms, late) => {
    const story = new Story({ capacity: 4, reserve: 0 })
    for (const id of ['a', 'b']) story.auxiliary(id)
    story.pass(ms)
    story.refuse('a')
    expect(story.context.counters.lateEvidence).toBe(0)
    story.refuse('b')
    expect(story.context.counters.lateEvidence).toBe(late)
  })

  it.each<[string, Parameters<typeof refusalOf>, number | null]>([
    ['that states a wait holds the scope for it', ['requests-per-minute', { retryAfterMs: 9_000 }], 9_000],
    ['that states none holds the class alone', ['requests-per-minute', {}], null],
    ['that states a wait of nothing holds nobody', ['requests-per-minute', { retryAfterMs: 0 }], null],
    [
      'of a quota of the credential holds the scope as long as the policy says',
      ['quota-exhausted', { retryable: false, scope: 'credential' }],
      contractPolicy.quotaHoldMs,
    ],
    [
      'of a quota that states when it ends holds the scope until then',
      ['quota-exhausted', { retryable: false, scope: 'credential', retryAfterMs: 7_000 }],
      7_000,
    ],
    [
      'of a quota of the model alone holds nobody',
      ['quota-exhausted', { retryable: false, scope: 'model' }],
      null,
    ],
    [
      'that waiting does not mend holds nobody, whatever it states',
      ['not-capacity', { retryable: false, scope: 'credential', retryAfterMs: 7_000 }],
      null,
    ],
  ])('%s', (_, evidence, waitMs) => {
    const story = running()
    story.refuse('a', refusalOf(...evidence))
    const { wait } = story.context
    expect(wait === null ? null : wait.untilMs - story.at).toBe(waitMs)
    if (wait !== null) expect(wait.kind).toBe(evidence[0])
  })

  it('a longer wait takes the place of a shorter, a shorter or equal one of none', () => {
    const story = running()
    const told = (kind: EvidenceKind, retryAfterMs: number) =>
      story.tell({ type: 'provider.evidence', evidence: refusalOf(kind, { retryAfterMs }) })
    told('tokens-per-minute', 5_000)
    told('tokens-per-day', 9_000)
    told('overloaded', 9_000)
    told('concurrency', 2_000)
    expect(story.context.wait).toMatchObject({ untilMs: story.at + 9_000, kind: 'tokens-per-day' })
  })

  it('for concurrency that lowers the capacity pauses nobody; one that cannot lower it does', () => {
    const story = new Story({ capacity: 3, capacityFloor: 2, reserve: 0 })
    for (const id of ['a', 'b', 'c']) story.auxiliary(id)
    story.pass(5)
    story.refuse('c', refusalOf('concurrency'))
    expect(story.context.pacing).toEqual({})
    story.refuse('b', refusalOf('concurrency'))
    expect(story.context.pacing.background_ingestion?.refusals).toBe(1)
  })

  it('for overload that lowers the capacity pauses its class all the same', () => {
    const story = new Story({ capacity: 5, capacityFloor: 2, reserve: 0 })
    story.auxiliary('a')
    story.pass(5)
    story.refuse('a', refusalOf('overloaded'))
    expect(story.context.learned.places).toBe(4)
    expect(story.context.pacing.background_ingestion?.refusals).toBe(1)
  })

  it.each([
    ['of a primary for its tokens is believed: nobody is paced', 'primary', 'acceleration', true, false],
    ['of a primary for something else paces its class', 'primary', 'overloaded', false, true],
    ['of an auxiliary for its tokens is believed too', 'auxiliary', 'acceleration', true, false],
  ] as const)('%s', (_, lane, kind, believed, paced) => {
    const story = new Story({ capacity: 2, reserve: 0 })
    story.submit({ id: 'c', lane, inputTokens: 50_000 })
    story.pass(5)
    story.refuse('c', refusalOf(kind))
    expect(story.context.belief.refusal !== null).toBe(believed)
    expect(story.context.pacing.background_ingestion !== undefined).toBe(paced)
  })

  it('jitters by its place and its row: two calls and two refusals pause differently', () => {
    const pauses = new Set<number>()
    for (const before of [0, 1, 2]) {
      const story = new Story({ pacingBaseMs: 8_000, pacingMaxMs: 8_000 })
      for (let index = 0; index < before; index += 1) story.auxiliary(`x${index}`)
      story.auxiliary('a')
      story.pass(5)
      story.refuse('a')
      pauses.add(story.context.pacing.background_ingestion!.pausedUntilMs - story.at)
    }
    expect(pauses.size).toBe(3)
  })
})

describe('evidence from beside', () => {
  it('holds the scope by the wait that it states, and teaches limits', () => {
    const story = running()
    story.tell({
      type: 'provider.evidence',
      limits: [{ dimension: 'requests-per-minute', limit: 10, remaining: 3, resetAtMs: null }],
    })
    expect(story.context.wait).toBeNull()
    expect(story.context.budget.requestsPerMinute?.level).toBe(3)
    story.tell({ type: 'provider.evidence', evidence: refusalOf('overloaded', { retryAfterMs: 4_000 }) })
    expect(story.context.wait).toMatchObject({ untilMs: story.at + 4_000, kind: 'overloaded' })
    expect(story.context.budget.requestsPerMinute?.level).toBe(3)
  })

  it('that waiting does not mend, or that states no wait, holds nobody', () => {
    const story = running()
    for (const over of [{ retryable: false, retryAfterMs: 4_000 }, { retryAfterMs: null }])
      story.tell({ type: 'provider.evidence', evidence: refusalOf('overloaded', over) })
    expect(story.context.wait).toBeNull()
  })

  it('an operator’s release ends wait and pauses', () => {
    const story = running()
    story.refuse('a', refusalOf('overloaded', { retryAfterMs: 60_000 }))
    expect(story.tell({ type: 'wait.released' })).toEqual(['release a: open'])
    expect(story.context).toMatchObject({ wait: null, pacing: {} })
  })
})

describe('an acceptance', () => {
  it('widens the window of a class that comes back, and each call leaves it once', () => {
    const story = new Story({ capacity: 8, reserve: 0, pacingBaseMs: 100, pacingMaxMs: 100 })
    for (let index = 0; index < 6; index += 1) story.auxiliary(`c${index}`)
    story.pass(5)
    for (let index = 0; index < 6; index += 1) story.refuse(`c${index}`)
    story.pass(100)
    const pace = () => story.context.pacing.background_ingestion
    expect(pace()).toMatchObject({ window: 1, out: 1 })
    story.accept('c0')
    expect(pace()).toMatchObject({ window: 2, out: 2, refusals: 0 })
    story.settle('c0')
    expect(pace()).toMatchObject({ window: 2, out: 2 })
    story.settle('c1', 'failed')
    expect(pace()).toMatchObject({ window: 2, out: 2 })
    story.settle('c2')
    expect(pace()).toMatchObject({ window: 3 })
    expect(pace()?.out).toBe(story.running.length)
  })

  it('of a call that left outside any window takes nothing from it', () => {
    const story = new Story({ capacity: 8, reserve: 0, pacingBaseMs: 100, pacingMaxMs: 100 })
    for (const id of ['a', 'b', 'c']) story.auxiliary(id)
    story.pass(5)
    story.refuse('a')
    story.pass(100)
    expect(story.context.pacing.background_ingestion?.out).toBe(1)
    story.accept('b')
    story.settle('c', 'failed')
    expect(story.context.pacing.background_ingestion?.out).toBe(1)
  })
})

describe('a call that goes back to its place', () => {
  const over = { capacity: 1, reserve: 0, pacingBaseMs: 100, pacingMaxMs: 100, unclaimedExpiryMs: 5_000 }
  const refuse = (story: Story, owner?: 'sends' | 'away' | 'left') =>
    story.tell({
      type: 'call.settled',
      callId: 'a',
      outcome: 'throttled',
      evidence: refusalOf('overloaded'),
      ...(owner === undefined ? {} : { owner }),
    })
  const refused = (owner?: 'sends' | 'away' | 'left'): Story => {
    const story = new Story(over)
    story.auxiliary('a')
    refuse(story, owner)
    return story
  }

  it('is dispatched by its next grant where its owner sends', () => {
    const story = refused('sends')
    story.pass(1_000)
    expect(story.running).toEqual(['a'])
    expect(HashMap.getUnsafe(story.context.inFlight, 'a').stage).toBe('dispatched')
  })

  it('is granted and not yet dispatched where nothing is said of its owner', () => {
    const story = refused()
    story.pass(1_000)
    expect(HashMap.getUnsafe(story.context.inFlight, 'a').stage).toBe('admitted')
  })

  it('is granted nothing while its owner is away, and is granted when it asks again', () => {
    const story = refused('away')
    story.pass(4_000)
    expect([story.running, story.waiting]).toEqual([[], ['a']])
    expect(story.auxiliary('a')).toEqual(['release a: open'])
  })

  it('expires when its owner stays away', () => {
    const story = refused('away')
    story.pass(6_000)
    expect([story.running, story.waiting]).toEqual([[], []])
    expect(story.context.counters.expired).toBe(1)
  })

  it('ends instead where its owner has left, refused or preempted', () => {
    expect(refused('left').waiting).toEqual([])
    const story = new Story({ capacity: 2, reserve: 1, inFlight: 'cancel' })
    story.auxiliary('a')
    story.primary('p')
    story.tell({ type: 'call.settled', callId: 'a', outcome: 'cancelled', owner: 'left' })
    expect([story.waiting, story.running]).toEqual([[], ['p']])
    expect(story.auxiliary('a')).toEqual(['reject a: already-settled'])
  })

  it('is not settled by a late word on its permit of before', () => {
    const story = refused('sends')
    story.pass(1_000)
    story.tell({ type: 'call.settled', callId: 'a', outcome: 'cancelled', late: true })
    expect(story.running).toEqual(['a'])
    expect(story.context.counters.lateSettlements).toBe(1)
  })

  it('is the same scope after a restart, owner away or sending', () => {
    for (const owner of ['sends', 'away'] as const) {
      const story = refused(owner)
      const next = story.restarted()
      expect(JSON.stringify(encodeScope(next.context))).toBe(JSON.stringify(encodeScope(story.context)))
      expect(next.waiting).toEqual(['a'])
      for (const one of [story, next]) one.pass(1_000)
      expect(next.running).toEqual(story.running)
    }
  })
})

describe('a host that closes', () => {
  it('sends nothing any more: what is granted from then on, or was not handed over, is not dispatched', () => {
    const story = new Story({ capacity: 1, reserve: 0 })
    const ask = (id: string) =>
      story.tell({ type: 'call.submitted', call: { ...blankCall, id }, dispatchAtOnce: true })
    ask('unused')
    ask('waits')
    story.tell({ type: 'host.closing', unused: ['unused', 'unknown'] })
    expect(HashMap.getUnsafe(story.context.inFlight, 'unused').stage).toBe('admitted')
    story.withdraw('unused')
    expect(HashMap.getUnsafe(story.context.inFlight, 'waits').stage).toBe('admitted')
    story.tell({ type: 'host.recovered' })
    expect([story.waiting, story.running]).toEqual([['waits'], []])
  })
})
