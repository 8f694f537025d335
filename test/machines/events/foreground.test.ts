/** Foreground work elsewhere on the machine: background yields to it, for as long as the policy says at most. */
import { describe, expect, it } from 'vitest'
import { poolPolicy } from '../../../machines/index.ts'
import { Story } from '../story.ts'

const foreground = (over = {}): Story => {
  const story = new Story({ ...poolPolicy, capacity: 4, reserve: 0, maxDeferralMs: 10_000, ...over })
  story.tell({ type: 'foreground.changed', active: true })
  return story
}

describe('while foreground work runs elsewhere', () => {
  it('auxiliaries wait, and say why', () => {
    expect(foreground().auxiliary('a')).toEqual(['defer a: foreground-active'])
  })

  it.each(['interactive', 'orchestration', 'hydration'] as const)('%s goes on', (priorityClass) => {
    expect(foreground().primary('p', { priorityClass })).toEqual(['admit p: primary'])
  })

  it('a running call goes on', () => {
    const story = new Story({ ...poolPolicy, capacity: 4, reserve: 0 })
    story.auxiliary('a')
    expect(story.tell({ type: 'foreground.changed', active: true })).toEqual([])
    expect(story.running).toEqual(['a'])
  })

  it('a promoted call goes on: a primary waits for it', () => {
    const story = foreground()
    story.auxiliary('a')
    expect(story.tell({ type: 'call.promoted', callId: 'a' })).toEqual(['release a: dependency'])
  })

  it('a call inside a call goes on', () => {
    const story = new Story({ ...poolPolicy, capacity: 4, reserve: 0 })
    story.auxiliary('parent')
    story.tell({ type: 'foreground.changed', active: true })
    expect(story.auxiliary('child', { parentId: 'parent' })).toEqual(['admit child: nested'])
  })
})

describe('background', () => {
  it('goes on by itself in the moment that the foreground ends', () => {
    const story = foreground()
    story.auxiliary('a')
    story.auxiliary('b')
    expect(story.tell({ type: 'foreground.changed', active: false })).toEqual([
      'release a: open',
      'release b: open',
    ])
  })

  it('waits no longer than maxDeferralMs: the wait is bounded', () => {
    const story = foreground()
    story.auxiliary('a')
    expect(story.wakesInMs).toBe(10_000)
    expect(story.pass(9_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release a: open'])
  })

  it('of two principals: each gets its turn within the bound, not both at once', () => {
    const story = foreground()
    for (const id of ['a1', 'a2']) story.auxiliary(id, { principal: 'a' })
    story.auxiliary('b1', { principal: 'b' })
    story.pass(10_000)
    expect(story.running).toEqual(['a1', 'b1'])
    story.pass(10_000)
    expect(story.running).toEqual(['a1', 'a2', 'b1'])
  })

  it('still waits after a restart', () => {
    const story = foreground().restarted()
    expect(story.auxiliary('a')).toEqual(['defer a: foreground-active'])
  })
})
