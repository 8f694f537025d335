/**
 * The Edict's gate does not wake when a quiet window ends; ours states the time at which it must be woken.
 */
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../machines/story.ts'

describe('a window of quiet after a refusal', () => {
  const refused = (strategy: 'quiet' | 'adaptive'): Story => {
    const story = new Story({ strategy, quietWindowMs: 60_000 })
    story.auxiliary('a', { inputTokens: 100_000 })
    story.settle('a')
    story.primary('p', { inputTokens: 180_000 })
    story.pass(1_000)
    story.refuse('p', refusalOf('acceleration'))
    return story
  }

  it.each(['quiet', 'adaptive'] as const)(
    '(%s) wakes who waits when it ends, to the millisecond',
    (strategy) => {
      const story = refused(strategy)
      expect(story.running).toEqual([])
      expect(story.reasonOf('p')).toBe('quiet-window')
      const ms = story.wakesInMs as number
      expect(ms).toBeLessThanOrEqual(60_000)
      expect(story.pass(ms - 1)).toEqual([])
      expect(story.pass(1)).toEqual(['release p: probe'])
    },
  )

  it('holds background back meanwhile, and lets it go after the primary', () => {
    const story = refused('quiet')
    expect(story.auxiliary('b', { inputTokens: 10 })).toEqual(['defer b: primary-pending'])
    story.pass(story.wakesInMs as number)
    // Tokens that were sent a minute ago have surely left the window by then.
    story.pass(1_000)
    expect(story.settle('p')).toEqual(['release b: drain'])
  })
})
