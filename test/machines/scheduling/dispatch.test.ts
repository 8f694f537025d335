/** An owner that sends as soon as it holds the permit: its grant is its dispatch, in one entry of the journal. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import { blankCall, Story } from '../story.ts'

const ask = (story: Story, id: string, dispatchAtOnce = true) =>
  story.tell({ type: 'call.submitted', call: { ...blankCall, id }, dispatchAtOnce })

const stageOf = (story: Story, id: string) => HashMap.getUnsafe(story.context.inFlight, id).stage

const restarted = (story: Story): Story => {
  const next = story.restarted()
  next.tell({ type: 'host.recovered' })
  return next
}

describe('a call whose owner sends at once', () => {
  it('counts as dispatched by its grant, and the decision says so', () => {
    const story = new Story({ capacity: 2, reserve: 0 })
    ask(story, 'sends')
    expect(story.context.decisions).toMatchObject([{ callId: 'sends', verdict: 'admit', dispatched: true }])
    story.auxiliary('says')
    expect(story.context.decisions).not.toMatchObject([{ dispatched: true }])
    expect([stageOf(story, 'sends'), stageOf(story, 'says')]).toEqual(['dispatched', 'admitted'])
  })

  it('counts so too when it waited before', () => {
    const story = new Story({ capacity: 1, reserve: 0 })
    ask(story, 'first')
    ask(story, 'second')
    story.settle('first')
    expect(story.context.decisions).toMatchObject([
      { callId: 'second', verdict: 'release', dispatched: true },
    ])
  })

  it('is unknown after a restart that finds it granted', () => {
    const story = new Story({ capacity: 1, reserve: 0 })
    ask(story, 'sends')
    expect(restarted(story).decided).toEqual(['reject sends: outcome-unknown'])
  })

  it("that waits through a restart is sent by the owner that asks for it then, in that owner's way", () => {
    const story = new Story({ capacity: 1, reserve: 0 })
    ask(story, 'running')
    ask(story, 'waiting')
    const next = restarted(story)
    ask(next, 'waiting', false)
    expect(stageOf(next, 'waiting')).toBe('admitted')
  })

  it('that a primary preempted has to ask again before its grant means a dispatch', () => {
    const story = new Story({ capacity: 2, reserve: 1, inFlight: 'cancel', quietWindowMs: 0 })
    ask(story, 'preempted')
    story.primary('p')
    story.settle('preempted', 'cancelled')
    story.settle('p')
    expect(stageOf(story, 'preempted')).toBe('admitted')
    story.settle('preempted', 'cancelled')

    ask(story, 'again')
    story.primary('q')
    story.settle('again', 'cancelled')
    ask(story, 'again')
    story.settle('q')
    expect(stageOf(story, 'again')).toBe('dispatched')
  })
})
