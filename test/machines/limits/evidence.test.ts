/**
 * The evidence that the ramp uses and ignores: late evidence, other kinds, and facts that a snapshot must not
 * bring back.
 */
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, type EvidenceKind } from '../../../machines/index.ts'
import { acceptedUnder, emptyRamp, refusedUnder, use } from '../../../machines/limits/ramp.ts'
import { strategies } from '../../../machines/model/policy.ts'
import { decodeScope, encodeScope } from '../../../machines/snapshot/codec.ts'
import { refusalOf, Story } from '../story.ts'

const atMs = 1_700_000_040_000
const refusedAt = (dispatchedAtMs: number, kind: EvidenceKind = 'acceleration') => ({
  tokens: 50_000,
  evidence: refusalOf(kind),
  atMs: atMs + 5_000,
  dispatchedAtMs,
})

describe('a refusal', () => {
  it('of a call from before the last one is late: it changes nothing', () => {
    const ramp = refusedUnder(emptyRamp, { ...refusedAt(atMs), atMs })
    expect(refusedUnder(ramp, refusedAt(atMs - 1))).toBe(ramp)
    expect(refusedUnder(ramp, refusedAt(atMs))).not.toBe(ramp)
  })

  it('that is late neither plans again nor moves the try of the primary at the head', () => {
    const story = new Story({ ...adaptivePolicy, capacityFloor: null })
    story.auxiliary('late', { inputTokens: 60_000 })
    story.pass(2_000)
    story.primary('p', { inputTokens: 181_000 })
    story.refuse('p', refusalOf('acceleration'))
    const { ramp } = story.context
    expect(ramp.epochMs).toBe(story.at)
    story.pass(1_000)
    story.refuse('late', refusalOf('acceleration'))
    const after = story.context.ramp
    expect(after).toMatchObject({
      plan: ramp.plan,
      refusal: ramp.refusal,
      minutes: ramp.minutes,
      epochMs: ramp.epochMs,
    })
  })

  it.each<[EvidenceKind, boolean]>([
    ['acceleration', true],
    ['input-tokens-per-minute', true],
    ['tokens-per-minute', true],
    ['unknown-rate-limit', true],
    ['requests-per-minute', false],
    ['output-tokens-per-minute', false],
    ['concurrency', false],
    ['overloaded', false],
    ['tokens-per-day', false],
    ['quota-exhausted', false],
  ])('for %s says something of the ceiling: %s', (kind, says) => {
    expect(refusedUnder(emptyRamp, refusedAt(atMs, kind)) !== emptyRamp).toBe(says)
  })

  it('bounds the ceiling by use and the refused call, or by what is stated, whichever is less', () => {
    const used = use(emptyRamp, 100_000, atMs, atMs)
    expect(refusedUnder(used, refusedAt(atMs)).refusedUse?.tokens).toBe(150_000)
    const evidence = refusalOf('acceleration', { facts: { currentLimit: 130_000.7 } })
    const stated = refusedUnder(used, { ...refusedAt(atMs), evidence })
    expect(stated.refusedUse?.tokens).toBe(130_001)
    expect(stated.minutes.at(-1)).toMatchObject({ refusedTokens: 130_001, statedTokens: 130_000 })
  })
})

describe('what is kept', () => {
  it('is bounded, however long the traffic', () => {
    let ramp = emptyRamp
    for (let second = 0; second < 4_000; second += 1) {
      const now = atMs + second * 1000
      ramp = acceptedUnder(use(ramp, 100, now, now), 100, now, now)
      if (second % 7 === 0) ramp = refusedUnder(ramp, { ...refusedAt(now), atMs: now })
    }
    expect(ramp.slots.length).toBeLessThanOrEqual(300)
    expect(ramp.accepted.length).toBeLessThanOrEqual(300)
    expect(ramp.minutes.length).toBeLessThanOrEqual(12)
  })
})

describe('the ramp in a snapshot', () => {
  const encoded = () => {
    const story = new Story(adaptivePolicy)
    story.primary('p', { inputTokens: 181_000 })
    story.refuse('p', refusalOf('acceleration', { facts: { currentLimit: 90_000.5 } }))
    return encodeScope(story.context)
  }
  const withRamp = (ramp: object) => ({ ...encoded(), ramp: { ...encoded().ramp, ...ramp } })

  it('of an older version begins to learn anew: only what is in use means the same', () => {
    const { slots, accepted, refusal, plan, highestAccepted, epochMs } = encoded().ramp
    const older = { slots, accepted, refusal, plan, highestAccepted, lastUseMs: 7, epochMs }
    const { ramp } = decodeScope({ ...encoded(), ramp: older })
    expect(ramp).toEqual({ ...emptyRamp, slots })
  })

  it('of an older version has a wait without a probe', () => {
    const context = decodeScope({ ...encoded(), wait: { untilMs: 9, kind: 'overloaded' } })
    expect(context.wait).toEqual({ untilMs: 9, kind: 'overloaded', probeId: null })
  })

  it.each([
    [
      'a plan of no known kind',
      { plan: { ...encoded().ramp.plan, kind: 'rush' } },
      'snapshot.ramp.plan.kind',
    ],
    ['tokens that are no number', { highestAccepted: null }, 'snapshot.ramp.highestAccepted'],
    [
      'a growth that nobody knows',
      { growth: { kind: 'magic', factor: null, tokensPerMinute: null } },
      'snapshot.ramp.growth.kind',
    ],
    [
      'more minutes than are kept',
      { minutes: Array(13).fill(encoded().ramp.minutes[0]) },
      'snapshot.ramp.minutes',
    ],
    [
      'more slots than are kept',
      { slots: Array(1_000).fill({ second: 1, tokens: 1 }) },
      'snapshot.ramp.slots',
    ],
  ])('with %s is refused, by name', (_, fault, named) => {
    expect(() => decodeScope(withRamp(fault))).toThrow(named)
  })

  it.each(strategies)('gives the same bytes again, whatever `%s` plans', (strategy) => {
    const story = new Story({ ...adaptivePolicy, strategy })
    for (const id of ['a', 'b']) {
      story.auxiliary(id, { inputTokens: 50_000 })
      story.accept(id)
    }
    story.primary('p', { inputTokens: 181_000 })
    for (let refusal = 0; refusal < 4; refusal += 1) {
      if (story.running.includes('p')) story.refuse('p', refusalOf('acceleration'))
      const text = JSON.stringify(encodeScope(story.context))
      expect(JSON.stringify(encodeScope(decodeScope(JSON.parse(text))))).toBe(text)
      story.pass(61_000)
    }
  })

  it('that is missing is refused, by name', () => {
    expect(() => decodeScope({ ...encoded(), ramp: 7 })).toThrow('snapshot.ramp')
  })
})
