/** Turns: a primary that makes several calls says whether background work may use the time between them. */
import { describe, expect, it } from 'vitest'
import type { PolicyInput } from '../../../machines/index.ts'
import { Story } from '../story.ts'

const minuteMs = 60_000

const turn = (betweenRounds: 'hold' | 'yield', policy = {}): Story => {
  const story = new Story({ capacity: 4, reserve: 0, ...policy })
  story.tell({ type: 'turn.began', turnId: 't', betweenRounds })
  story.primary('round-1', { turnId: 't' })
  story.settle('round-1')
  return story
}

describe('between the rounds of a turn', () => {
  it('that holds, no auxiliary is admitted; the next round goes at once', () => {
    const story = turn('hold')
    expect(story.auxiliary('a')).toEqual(['defer a: turn-held'])
    expect(story.primary('round-2', { turnId: 't' })).toEqual(['admit round-2: primary'])
    story.settle('round-2')
    expect(story.waiting).toEqual(['a'])
  })

  it('that yields, auxiliaries are admitted', () => {
    expect(turn('yield').auxiliary('a')).toEqual(['admit a: open'])
  })

  it('that holds, an auxiliary of the same turn is let through: it is what the turn waits for', () => {
    const story = turn('hold')
    expect(story.auxiliary('tool', { turnId: 't' })).toEqual(['admit tool: dependency'])
    expect(story.auxiliary('other', { turnId: 'u' })).toEqual(['defer other: turn-held'])
    expect(story.context.counters.dependencyGrants).toBe(1)
  })

  it('that holds, an auxiliary that was promoted by hand is let through', () => {
    const story = turn('hold')
    story.auxiliary('a')
    expect(story.tell({ type: 'call.promoted', callId: 'a' })).toEqual(['release a: dependency'])
  })

  it('that holds, others still get their quantum when it is due', () => {
    const story = turn('hold', { maxDeferralMs: 10_000 })
    story.auxiliary('a')
    expect(story.pass(9_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release a: fairness'])
  })
})

describe('a turn', () => {
  it('closes the gate before its first call is submitted, where it holds', () => {
    const story = new Story()
    story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    expect(story.auxiliary('a')).toEqual(['defer a: turn-held'])
    expect(story.state).not.toBe('idle')
  })

  it('that ends opens the gate', () => {
    const story = turn('hold')
    story.auxiliary('a')
    expect(story.tell({ type: 'turn.ended', turnId: 't' })).toEqual(['release a: drain'])
  })

  it('that ends while its call runs holds the gate for as long as the policy holds it for the call', () => {
    const story = turn('hold', { hold: 'untilSettled' })
    story.primary('round-2', { turnId: 't' })
    story.auxiliary('a')
    story.tell({ type: 'turn.ended', turnId: 't' })
    expect(story.reasonOf('a')).toBe('primary-active')
    expect(story.settle('round-2')).toContain('release a: drain')
  })

  it('that nobody ends is over after turnTimeoutMs', () => {
    const story = turn('hold', { turnTimeoutMs: 5 * minuteMs, maxDeferralMs: 60 * minuteMs })
    story.auxiliary('a')
    story.pass(5 * minuteMs - 1)
    expect(story.waiting).toEqual(['a'])
    story.pass(1)
    expect(story.running).toEqual(['a'])
  })

  it.each([
    ['declared again changes between hold and yield', ['hold', 'yield'] as const, true],
    ['declared twice is ended once', ['hold', 'hold'] as const, false],
  ])('%s', (_, kinds, admitted) => {
    const story = new Story()
    for (const betweenRounds of kinds) story.tell({ type: 'turn.began', turnId: 't', betweenRounds })
    story.auxiliary('a')
    expect(story.running.includes('a')).toBe(admitted)
    story.tell({ type: 'turn.ended', turnId: 't' })
    expect(story.running).toEqual(['a'])
    expect(story.context.heldTurns).toBe(0)
  })

  it('that nobody began is ended without consequence', () => {
    const story = new Story()
    story.tell({ type: 'turn.ended', turnId: 'nobody' })
    expect(story.context.heldTurns).toBe(0)
    expect(story.state).toBe('idle')
  })

  it('among several that hold: the gate opens with the last', () => {
    const story = new Story()
    for (const turnId of ['t', 'u']) story.tell({ type: 'turn.began', turnId, betweenRounds: 'hold' })
    story.auxiliary('a')
    story.tell({ type: 'turn.ended', turnId: 't' })
    expect(story.running).toEqual([])
    story.tell({ type: 'turn.ended', turnId: 'u' })
    expect(story.running).toEqual(['a'])
  })

  it('survives a restart', () => {
    const story = turn('hold').restarted()
    expect(story.auxiliary('a')).toEqual(['defer a: turn-held'])
    expect(story.auxiliary('tool', { turnId: 't' })).toEqual(['admit tool: dependency'])
    expect(story.tell({ type: 'turn.ended', turnId: 't' })).toEqual(['release a: drain'])
  })
})

describe('a turn that is declared before its first call', () => {
  const declared = (policy: PolicyInput): Story => {
    const story = new Story({ capacity: 2, reserve: 0, ...policy })
    story.auxiliary('a')
    story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    return story
  }

  it('has auxiliaries in flight cancelled, as the policy says', () => {
    const story = declared({ inFlight: 'cancel' })
    expect(story.decided).toEqual(['cancel a: preempted'])
    expect(story.primary('p', { turnId: 't' })).toEqual(['defer p: auxiliaries-in-flight'])
    expect(story.settle('a', 'cancelled')).toEqual(['release p: primary', 'defer a: preempted'])
  })

  it('waits for auxiliaries in flight at most patienceMs, counted from the turn', () => {
    const story = declared({ inFlight: 'settle', patienceMs: 10_000 })
    story.pass(4_000)
    expect(story.primary('p', { turnId: 't' })).toEqual(['defer p: auxiliaries-in-flight'])
    expect(story.pass(5_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release p: primary'])
  })

  it('has its first call go at once when they have settled meanwhile', () => {
    const story = declared({ inFlight: 'settle' })
    story.settle('a')
    expect(story.primary('p', { turnId: 't' })).toEqual(['admit p: primary'])
  })
})
