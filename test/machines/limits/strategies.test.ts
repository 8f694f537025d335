/** Each strategy's handling of a primary that was refused for its size. */
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, type Policy } from '../../../src/index.ts'
import { refusalOf, Story } from '../story.ts'
import { minuteMs } from './ground.ts'

type Strategy = Policy['strategy']

/** A minute in which 100k were accepted, ten seconds of silence, and a primary of 181k that is refused. Five calls of 30k wait. */
const refused = (strategy: Strategy, silentMs: number, facts = {}): Story => {
  const story = new Story({
    ...adaptivePolicy,
    strategy,
    maxDeferralMs: 24 * 60 * minuteMs,
    capacityFloor: null,
  })
  story.at = 1_000_020_000
  for (const id of ['b0', 'b1']) {
    story.auxiliary(id, { inputTokens: 50_000, principal: id })
    story.accept(id)
    story.settle(id)
  }
  story.pass(silentMs)
  story.primary('p', { inputTokens: 181_000 })
  for (const id of ['a0', 'a1', 'a2', 'a3', 'a4']) story.auxiliary(id, { inputTokens: 30_000, principal: id })
  story.refuse('p', refusalOf('acceleration', { facts }))
  return story
}

const stated = { currentLimit: 150_000, nextLimit: 170_000 }

describe('after a refusal', () => {
  it.each<[Strategy, string, number, object, string, ReadonlyArray<string>]>([
    ['quiet', 'with traffic', 10_000, {}, 'quiet', []],
    ['quiet', 'in silence', 90_000, {}, 'quiet', []],
    ['backfill', 'in silence', 90_000, {}, 'backfill', ['a0', 'a1', 'a2', 'a3', 'a4']],
    // 100k were accepted in a minute: three calls of 30k are within that, a fourth would raise it.
    ['holdSteady', 'in silence', 90_000, {}, 'hold', ['a0', 'a1', 'a2']],
    // The level is already full: next comes the silence that the primary needs.
    ['holdSteady', 'with traffic', 10_000, {}, 'hush', []],
    // 1.3 times 100k are hoped for: four calls.
    ['stepUp', 'in silence', 70_000, {}, 'build', ['a0', 'a1', 'a2', 'a3']],
    ['adaptive', 'with traffic', 10_000, {}, 'quiet', []],
    ['adaptive', 'in silence', 70_000, {}, 'build', ['a0', 'a1', 'a2', 'a3']],
    ['adaptive', 'with steps stated', 90_000, stated, 'backfill', ['a0', 'a1', 'a2', 'a3', 'a4']],
  ])('`%s`, %s, lets go who may go', (strategy, _, silentMs, facts, kind, running) => {
    const story = refused(strategy, silentMs, facts)
    expect(story.context.ramp.plan?.kind).toBe(kind)
    expect(story.running).toEqual(running)
  })

  it('`stepUp` goes on above what it hopes for, one call at a time, and learns where the ceiling is', () => {
    const story = refused('stepUp', 70_000)
    for (const id of ['a0', 'a1', 'a2']) story.accept(id)
    expect(story.running).toHaveLength(4)
    expect(story.accept('a3')).toEqual(['release a4: warm-up'])
    story.refuse('a4', refusalOf('acceleration'))
    expect(story.context.ramp.refusedUse?.tokens).toBe(150_000)
    expect(story.running).toHaveLength(4)
  })

  it('`holdSteady` keeps silent for one minute once the level was held, then tries the primary', () => {
    const story = refused('holdSteady', 90_000)
    for (const id of ['a0', 'a1', 'a2']) story.accept(id)
    // 90k of 100k: nothing more fits under the level; the next minute boundary but one is the try.
    expect(story.context.ramp.plan?.kind).toBe('hold')
    story.auxiliary('a5', { inputTokens: 10_000, principal: 'a5' })
    story.accept('a5')
    expect(story.context.ramp.plan?.kind).toBe('hush')
    expect(story.pass(59_000)).toEqual([])
    expect(story.pass(3_000)).toEqual(['release p: primary'])
  })
})
