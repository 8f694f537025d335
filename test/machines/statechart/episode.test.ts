/** The summary of an episode: from the first primary until the scope has settled. */
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../story.ts'

describe('the summary of an episode', () => {
  it('tells who was admitted, deferred, cancelled and released, and how long a primary waited', () => {
    const story = new Story({ capacity: 2, reserve: 0, inFlight: 'cancel', lingerMs: 0 })
    for (const id of ['a', 'b', 'c']) story.auxiliary(id)
    const startedAt = story.at
    story.primary('p')
    story.pass(2_000)
    for (const id of ['a', 'b']) story.settle(id, 'cancelled')
    story.primary('q')
    story.pass(1_000)
    for (const id of ['p', 'q']) story.settle(id)
    for (const id of ['a', 'b', 'c']) story.settle(id)
    expect(story.episodes).toEqual([
      {
        startedAt,
        endedAt: startedAt + 3_000,
        primariesAdmitted: 2,
        primaryWaitMaxMs: 2_000,
        // c waited before it began; a and b came back.
        auxiliariesDeferred: 3,
        auxiliariesReleased: 3,
        auxiliariesCancelled: 2,
        refusals: 0,
        fairnessQuanta: 0,
      },
    ])
  })

  it('counts refusals, and every admission of a call that was refused', () => {
    const story = new Story({ lingerMs: 0, pacingBaseMs: 100, pacingMaxMs: 100 })
    const startedAt = story.at
    story.primary('p')
    story.pass(500)
    story.refuse('p', refusalOf('overloaded'))
    story.pass(500)
    story.settle('p')
    expect(story.episodes).toMatchObject([
      { startedAt, endedAt: startedAt + 1_000, primariesAdmitted: 2, refusals: 1, auxiliariesDeferred: 0 },
    ])
    expect(story.episodes[0]?.primaryWaitMaxMs).toBeGreaterThan(500)
  })

  it('counts quanta, and the auxiliaries that came while primaries held them', () => {
    const story = new Story({ capacity: 1, lingerMs: 0, quantumTokens: 1, maxDeferralMs: 10_000 })
    story.primary('p')
    story.auxiliary('a')
    story.auxiliary('b')
    story.primary('q')
    story.pass(10_000)
    story.settle('p')
    story.settle('a')
    expect(story.running).toEqual(['q'])
    story.settle('q')
    story.pass(5_000)
    story.settle('b')
    expect(story.episodes).toMatchObject([
      {
        primariesAdmitted: 2,
        primaryWaitMaxMs: 10_000,
        auxiliariesDeferred: 2,
        auxiliariesReleased: 2,
        fairnessQuanta: 1,
      },
    ])
  })

  it('begins anew with the next primary, and not with an auxiliary', () => {
    const story = new Story({ lingerMs: 0 })
    story.auxiliary('a')
    expect(story.context.episode).toBeNull()
    story.settle('a')
    for (const id of ['p', 'q']) {
      story.pass(1_000)
      story.primary(id)
      story.settle(id)
    }
    expect(story.episodes.map(({ startedAt }) => startedAt)).toEqual([1_001_000, 1_002_000])
  })

  it('is there once: the next event says nothing of it', () => {
    const story = new Story({ lingerMs: 0 })
    story.primary('p')
    story.settle('p')
    story.auxiliary('a')
    expect(story.context.summary).toBeNull()
    expect(story.episodes).toHaveLength(1)
  })

  it('without an episode, a refusal, a turn and a preemption are counted by nobody', () => {
    const story = new Story({ capacity: 2, reserve: 0, inFlight: 'cancel', lingerMs: 0 })
    story.auxiliary('a')
    story.auxiliary('b')
    story.refuse('b', refusalOf('overloaded'))
    story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    expect(story.decided).toEqual(['cancel a: preempted'])
    story.settle('a', 'cancelled')
    story.tell({ type: 'turn.ended', turnId: 't' })
    expect(story.context.episode).toBeNull()
    expect(story.episodes).toEqual([])
  })
})

describe('a host', () => {
  it('hears of every event that decided something or ended an episode, once, and of no other', () => {
    const story = new Story({ capacity: 1, lingerMs: 0 })
    const heard: Array<ReadonlyArray<string>> = []
    story.actor.on('decided', ({ decisions }) => heard.push(decisions.map(({ callId }) => callId)))
    story.primary('p')
    story.dispatch('p')
    story.accept('p')
    story.auxiliary('a')
    story.settle('p')
    story.settle('a')
    story.tell({ type: 'clock.woke' })
    story.primary('q')
    story.settle('q')
    expect(heard).toEqual([['p'], ['a'], ['a'], ['q'], []])
  })
})
