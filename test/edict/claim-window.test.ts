/** The Edict's pacer fails an attempt inside its window; ours lets it wait in its place, and asks no less of the window. */
import { describe, expect, it } from 'vitest'
import { poolPolicy, waitReason } from '../../machines/index.ts'
import { refusalOf, Story } from '../machines/story.ts'

const paced = (): Story => {
  const story = new Story({ ...poolPolicy, capacity: 16, reserve: 0, pacingMaxMs: 30_000 })
  story.auxiliary('a')
  story.refuse('a', refusalOf('overloaded'))
  return story
}

describe('inside the window of a class', () => {
  it('an attempt reaches nobody, compounds nothing, and is told when the window ends', () => {
    const story = paced()
    const before = story.context.pacing.background_ingestion!
    for (let attempt = 0; attempt < 20; attempt += 1) {
      expect(story.auxiliary(`b${attempt}`)).toEqual([`defer b${attempt}: pacing`])
      expect(story.context.decisions[0]?.wakeAt).toBe(before.pausedUntilMs)
    }
    expect(story.running).toEqual([])
    expect(story.context.pacing.background_ingestion).toEqual(before)
    const [waiting] = [...story.context.waiting].map(([, one]) => one)
    expect(waitReason(story.context, waiting!)).toEqual({ reason: 'pacing', wakeAt: before.pausedUntilMs })
  })

  it('goes on as a refusal raises the count and sets the window, and an acceptance clears both', () => {
    const story = paced()
    const windows = [story.context.pacing.background_ingestion!.pausedUntilMs - story.at]
    for (let shed = 2; shed <= 4; shed += 1) {
      story.pass(story.wakesInMs as number)
      story.refuse('a', refusalOf('overloaded'))
      const { refusals, pausedUntilMs } = story.context.pacing.background_ingestion!
      expect(refusals).toBe(shed)
      windows.push(pausedUntilMs - story.at)
    }
    expect(windows.every((ms, index) => index === 0 || ms > windows[index - 1]!)).toBe(true)
    story.pass(story.wakesInMs as number)
    story.accept('a')
    expect(story.context.pacing.background_ingestion?.refusals).toBe(0)
    expect(story.auxiliary('next')).toEqual(['admit next: open'])
  })
})
