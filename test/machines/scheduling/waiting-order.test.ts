/** The first of the waiting calls, in scopes that shed and in scopes that do not. */
import { describe, expect, it } from 'vitest'
import { toArray } from '../../../machines/collections/queue.ts'
import type { PolicyInput, PriorityClass } from '../../../machines/index.ts'
import { poolPolicy } from '../../../machines/model/presets.ts'
import { refusalOf, Story } from '../story.ts'
import { ask, ingest, server } from './shedding.ts'

describe('the order in which calls that wait go', () => {
  /** The provider asked everybody to wait; answers the order in which they went. */
  const planned = (calls: ReadonlyArray<readonly [string, PriorityClass, number | null]>, story: Story) => {
    story.tell({
      type: 'provider.evidence',
      evidence: { kind: 'overloaded', scope: 'model', retryAfterMs: 1_000, retryable: true, facts: {} },
    })
    for (const [id, priorityClass, deadlineMs] of calls)
      ask(story, id, priorityClass, id, { deadlineAt: deadlineMs === null ? null : story.at + deadlineMs })
    expect(story.running).toEqual([])
    const went: string[] = []
    for (let step = 0; went.length < calls.length && step < 50; step += 1) {
      for (const line of story.pass(1_000)) if (line.startsWith('release')) went.push(line.split(/[ :]+/)[1]!)
      for (const id of story.running) {
        for (const line of story.settle(id))
          if (line.startsWith('release')) went.push(line.split(/[ :]+/)[1]!)
      }
    }
    return went
  }

  const batch = [
    ['ingest', ingest, 90_000],
    ['hydration', 'hydration', 20_000],
    ['late', 'orchestration', 60_000],
    ['never', 'orchestration', null],
    ['soon', 'orchestration', 30_000],
    ['never-2', 'orchestration', null],
    ['soon-2', 'orchestration', 30_000],
    ['person', 'interactive', null],
  ] as const

  it('is by class, then by deadline, none last, then by arrival', () => {
    const order = ['person', 'soon', 'soon-2', 'late', 'never', 'never-2', 'hydration', 'ingest']
    expect(planned(batch, server(32))).toEqual(order)
  })

  it('is that of ranks and arrival where nothing is shed', () => {
    const order = ['person', 'hydration', 'late', 'never', 'soon', 'never-2', 'soon-2', 'ingest']
    expect(planned(batch, new Story({ ...poolPolicy, capacity: 32, reserve: 0 }))).toEqual(order)
  })

  it('is the same after a restart, with a newer deadline, and after the policy has changed', () => {
    const held = (policy: PolicyInput): Story => {
      const story = new Story({ ...poolPolicy, capacity: 32, reserve: 0, ...policy } as PolicyInput)
      story.tell({
        type: 'provider.evidence',
        evidence: { kind: 'overloaded', scope: 'model', retryAfterMs: 1_000, retryable: true, facts: {} },
      })
      for (const [id, deadlineMs] of [
        ['one', null],
        ['two', 90_000],
        ['three', 60_000],
      ] as const)
        ask(story, id, 'orchestration', id, {
          deadlineAt: deadlineMs === null ? null : story.at + deadlineMs,
        })
      return story
    }
    const order = (story: Story) => story.pass(1_000).map((line) => line.split(/[ :]+/)[1])
    expect(order(held({ qos: {} }))).toEqual(['three', 'two', 'one'])
    expect(order(held({ qos: {} }).restarted())).toEqual(['three', 'two', 'one'])
    const sooner = held({ qos: {} })
    ask(sooner, 'one', 'orchestration', 'one', { deadlineAt: sooner.at + 10_000 })
    expect(order(sooner.restarted())).toEqual(['one', 'three', 'two'])
    expect(order(sooner)).toEqual(['one', 'three', 'two'])
    const begun = held({})
    begun.change({ qos: {} })
    expect(order(begun)).toEqual(['three', 'two', 'one'])
    const ended = held({ qos: {} })
    ended.change({ qos: null })
    expect(order(ended)).toEqual(['one', 'two', 'three'])
  })

  /** Room for everybody, once the provider lets them go. */
  const heldBack = (qos: object | null): Story => {
    const story = new Story({ ...poolPolicy, capacity: 64, reserve: 0, qos } as PolicyInput)
    return story
  }
  const hold = (story: Story) =>
    story.tell({ type: 'provider.evidence', evidence: refusalOf('overloaded', { retryAfterMs: 1_000 }) })
  const released = (story: Story) => story.pass(1_000).map((line) => line.split(/[ :]+/)[1])

  it.each([
    ['shed', {}],
    ['not shed', null],
  ])(
    'is that of arrival among equals, where calls are %s, before and after a change of the policy',
    (_, qos) => {
      const ids = Array.from({ length: 12 }, (__, index) => `call-${(index * 7) % 12}`)
      for (const changed of [undefined, {}, null]) {
        for (const deadlineMs of [null, 60_000]) {
          const story = heldBack(qos)
          hold(story)
          const deadlineAt = deadlineMs === null ? null : story.at + deadlineMs
          for (const id of ids) ask(story, id, 'orchestration', id, { deadlineAt })
          if (changed !== undefined) story.change({ qos: changed })
          expect(released(story)).toEqual(ids)
        }
      }
    },
  )

  it.each([
    ['at its arrival, where calls are not shed', null, ['first', 'second', 'third']],
    ['by its deadline, where they are', {}, ['second', 'third', 'first']],
  ])('puts a call that others have kept %s', (_, qos, order) => {
    const story = heldBack(qos)
    ask(story, 'before', ingest)
    hold(story)
    ask(story, 'first', 'orchestration', 'first', { dependsOn: ['before'] })
    for (const [id, deadlineMs] of [
      ['second', 50_000],
      ['third', 60_000],
    ] as const)
      ask(story, id, 'orchestration', id, { deadlineAt: story.at + deadlineMs })
    story.settle('before')
    expect(released(story)).toEqual(order)
  })

  it('keeps background work behind all others, whatever the policy becomes', () => {
    for (const changed of [{}, null]) {
      const story = heldBack({})
      hold(story)
      ask(story, 'work', ingest)
      ask(story, 'person', 'interactive')
      ask(story, 'kept', 'orchestration', 'kept', { dependsOn: ['person'] })
      story.change({ qos: changed, principalQuota: 7 })
      const queued = story.context.primaries.flatMap((queue) => toArray(queue).map(({ id }) => id))
      expect(queued).toEqual(['person'])
      expect(released(story)).toEqual(['person'])
      expect(story.settle('person')).toContain('release kept: primary')
    }
  })

  it('has no place for a call that went away, and one for a call that came again', () => {
    const story = heldBack({})
    hold(story)
    const at = (id: string, deadlineMs: number) =>
      ask(story, id, 'orchestration', id, { deadlineAt: story.at + deadlineMs })
    at('gone', 20_000)
    at('again', 30_000)
    at('stays', 60_000)
    story.withdraw('gone')
    story.withdraw('again')
    at('again', 90_000)
    at('last', 70_000)
    expect(released(story)).toEqual(['stays', 'last', 'again'])
  })
})
