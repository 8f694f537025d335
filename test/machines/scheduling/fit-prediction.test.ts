/** When a refused primary is expected to fit, in `fitOf`, `status` and `explain`. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, fitOf, type Growth } from '../../../machines/index.ts'
import { emptyRamp, type Ramp, type RampPlan } from '../../../machines/limits/ramp.ts'
import { explainState } from '../../../src/host/explain.ts'
import { scopeStatus } from '../../../src/host/scope-facts.ts'
import { refusalOf, Story } from '../story.ts'

/** 14:30:00 of a day. */
const atMs = Date.UTC(2026, 0, 31, 14, 30)
const second = atMs / 1000

const unknown: Growth = { kind: 'unknown', factor: null, tokensPerMinute: null }
const none: Growth = { ...unknown, kind: 'none' }
const withUse: Growth = { ...unknown, kind: 'withUse', factor: 1.35 }
const withTime: Growth = { ...unknown, kind: 'withTime', tokensPerMinute: 10_000 }

const planOf = (kind: RampPlan['kind'], over: Partial<RampPlan> = {}): RampPlan => ({
  kind,
  tokens: 181_000,
  tryAtMs: atMs + 60_000,
  refusals: 2,
  targetTokens: 0,
  quietUntilMs: 0,
  ...over,
})

/** A primary of 181k that waits under `ramp`; 120k were accepted in the minute before, and a call at 150k was refused. */
const waiting = (over: Partial<Ramp>) => {
  const story = new Story({ ...adaptivePolicy, limits: {} })
  story.at = atMs
  story.primary('p', { inputTokens: 181_000 })
  story.refuse('p', refusalOf('acceleration'))
  const bounds = {
    minute: atMs / 60_000 - 1,
    acceptedTokens: 120_000,
    acceptedBeforeTokens: 100_000,
    refusedTokens: 150_000,
    refusedBeforeTokens: 100_000,
    statedTokens: null,
  }
  const used = [{ second: second - 70, tokens: 120_000 }]
  const ramp: Ramp = {
    ...emptyRamp,
    slots: used,
    accepted: used,
    minutes: [bounds],
    closedMinute: bounds.minute,
    refusal: story.context.ramp.refusal,
    ...over,
  }
  return { ...story.context, ramp }
}

const fitUnder = (over: Partial<Ramp>) => {
  const context = waiting(over)
  return fitOf(context, HashMap.getUnsafe(context.waiting, 'p'))
}

describe('the time at which a primary is expected to fit', () => {
  it.each<[string, Partial<Ramp>, number | null, string | null]>([
    ['is the end of silence', { plan: planOf('quiet', { quietUntilMs: atMs + 45_000 }) }, 60, null],
    ['is the end of a hush', { plan: planOf('hush'), growth: withUse }, 60, null],
    // From the middle of 120k and 150k, 46k are missing: five boundaries.
    [
      'is counted in boundaries, where it grows with time',
      { plan: planOf('build'), growth: withTime },
      300,
      null,
    ],
    // 120k lift it to 162k, 162k to 219k: one minute more, and one of silence.
    [
      'is counted in full minutes, where it grows with use',
      { plan: planOf('build'), growth: withUse },
      120,
      null,
    ],
    ['is not named while growth is unknown', { plan: planOf('build') }, null, 'growth-unknown'],
    ['is not named where it does not grow', { plan: planOf('build'), growth: none }, null, 'does-not-grow'],
    ['nor after silence there', { plan: planOf('quiet'), growth: none }, null, 'does-not-grow'],
    [
      'nor where growth is too slow to wait for',
      { plan: planOf('build'), growth: { ...withTime, tokensPerMinute: 100 } },
      null,
      'does-not-grow',
    ],
    [
      'is not named where the policy only holds what it would have to raise',
      { plan: planOf('hold', { targetTokens: 120_000 }), growth: withUse },
      null,
      'held',
    ],
    [
      'follows the steps that the provider states, under backfill',
      {
        plan: planOf('backfill'),
        refusal: { atMs, tokens: 181_000, trailingTokens: 0, statedLimit: 150_000, statedNextLimit: 160_000 },
      },
      240,
      null,
    ],
  ])('%s', (_, ramp, seconds, reason) => {
    const fit = fitUnder(ramp)!
    expect(fit.predictedFitAtMs === null ? null : (fit.predictedFitAtMs - atMs) / 1000).toBe(seconds)
    expect(fit.reason).toBe(reason)
    expect(fit.ceiling).toEqual({ low: 120_000, high: 150_000 })
  })

  /** 120k at least, 150k not: 46k are missing from the middle. */
  const rising = (tokensPerMinute: number) => ({
    plan: planOf('build'),
    growth: { ...withTime, tokensPerMinute },
  })
  /** Taken in the last minute and in the one before, without any bound that was written down. */
  const taken = (last: number, before: number, factor: number | null = 1.35): Partial<Ramp> => {
    const used = [
      { second: second - 70, tokens: before },
      { second: second - 5, tokens: last },
    ]
    const growth = { ...withUse, factor }
    return {
      slots: used,
      accepted: used,
      minutes: [],
      closedMinute: second / 60,
      growth,
      plan: planOf('build'),
    }
  }
  const refusedAt = {
    minute: atMs / 60_000 - 1,
    acceptedTokens: 120_000,
    acceptedBeforeTokens: 100_000,
    refusedBeforeTokens: 100_000,
    statedTokens: null,
  }
  const hold = (targetTokens: number) => planOf('hold', { targetTokens })

  it.each<[string, Partial<Ramp>, number | null, string | null]>([
    ['is named up to two hours ahead', rising(46_000 / 120), 7_200, null],
    ['and no further', rising(46_000 / 120.5), null, 'does-not-grow'],
    ['is not named by a growth of no tokens', rising(0), null, 'growth-unknown'],
    [
      'comes from the middle of what is known and the call itself',
      { ...rising(10_000), minutes: [] },
      600,
      null,
    ],
    ['needs one minute of silence, where enough was used in the minute before', taken(0, 140_000), 60, null],
    ['or in the last one', taken(140_000, 0), 60, null],
    ['by exactly as much', taken(0, 181_000 / 1.35), 60, null],
    ['is not named where no use lifts it', taken(140_000, 0, 1), null, 'does-not-grow'],
    ['is named where not even that is needed', taken(181_000, 0, 1), 60, null],
    [
      'is the end of silence, where only more than the call was refused',
      {
        plan: planOf('quiet', { quietUntilMs: atMs + 75_000 }),
        growth: none,
        minutes: [{ ...refusedAt, refusedTokens: 181_001 }],
      },
      75,
      null,
    ],
    [
      'is not named, where as much as the call was refused',
      { plan: planOf('quiet'), growth: none, minutes: [{ ...refusedAt, refusedTokens: 181_000 }] },
      null,
      'does-not-grow',
    ],
    [
      'is that of no growth, whatever was seen of it in time before',
      { plan: planOf('build'), growth: { ...withTime, kind: 'unknown' } },
      null,
      'growth-unknown',
    ],
    ['starts from the fuller of the last two minutes, not from both', taken(80_000, 80_000), 180, null],
    ['is named up to 120 minutes of use ahead', taken(181_000 / 1.01 ** 119.9, 0, 1.01), 7_200, null],
    ['and no minute further', taken(181_000 / 1.01 ** 120.1, 0, 1.01), null, 'does-not-grow'],
    [
      'is that of growth where what is held lifts it far enough',
      { plan: hold(140_000), growth: withUse },
      120,
      null,
    ],
    ['or just so far', { plan: hold(181_000 / 1.35), growth: withUse }, 120, null],
    ['is that of growth with time while a level is held', { plan: hold(1), growth: withTime }, 300, null],
    [
      'is that of growth with time, where nothing is stated',
      { plan: planOf('backfill'), growth: withTime },
      300,
      null,
    ],
    [
      'is the end of silence, where no refusal says that the call is too large',
      { plan: planOf('quiet', { quietUntilMs: atMs + 45_000 }), growth: none, minutes: [] },
      60,
      null,
    ],
    [
      'is the later of the try and the end of silence',
      { plan: planOf('quiet', { quietUntilMs: atMs + 75_000 }) },
      75,
      null,
    ],
  ])('%s', (_, ramp, seconds, reason) => {
    const fit = fitUnder(ramp)!
    expect(fit.predictedFitAtMs === null ? null : (fit.predictedFitAtMs - atMs) / 1000).toBe(seconds)
    expect(fit.reason).toBe(reason)
  })

  it('is never before the provider lets anybody go', () => {
    const context = waiting({ plan: planOf('hush') })
    const wait = { untilMs: atMs + 500_000, kind: 'overloaded', probeId: null }
    const fit = fitOf({ ...context, wait }, HashMap.getUnsafe(context.waiting, 'p'))
    expect(fit?.predictedFitAtMs).toBe(atMs + 500_000)
  })

  it('is nobody’s business while nothing says that it does not fit', () => {
    expect(fitUnder({ plan: null })).toBe(null)
    expect(fitUnder({ plan: planOf('build', { tokens: 200_000 }) })).toBe(null)
  })
})

describe('explain', () => {
  it.each<[string, Partial<Ramp>, string]>([
    [
      'with time',
      { plan: planOf('build'), growth: withTime },
      '14:30:00.000 expected to fit at 14:35:00.000: ceiling between 120k and 150k, grows with time by about 10k a minute',
    ],
    [
      'with use',
      { plan: planOf('build'), growth: withUse },
      '14:30:00.000 expected to fit at 14:32:00.000: ceiling between 120k and 150k, grows with use to about 1.35 times the minute before',
    ],
    [
      'that is unknown',
      { plan: planOf('build') },
      '14:30:00.000 no time can be named yet at which it fits (growth-unknown), tried next at 14:31:00.000: ceiling between 120k and 150k, how it grows is not known yet',
    ],
    [
      'that is none',
      { plan: planOf('build'), growth: none },
      '14:30:00.000 it is not expected to fit under the present ceiling (does-not-grow), tried next at 14:31:00.000: ceiling between 120k and 150k, does not grow',
    ],
  ])('says when it is expected to fit, and why, under growth %s', (_, ramp, line) => {
    expect(explainState(waiting(ramp), 'p')?.lines).toContain(line)
  })

  it('names only what it knows of a ceiling that refused nothing lately', () => {
    const lines = explainState(waiting({ plan: planOf('build'), minutes: [], accepted: [] }), 'p')?.lines
    expect(lines?.join()).toContain('ceiling at least 0k')
  })

  it('says nothing of it for a call that nothing speaks against', () => {
    expect(explainState(waiting({ plan: null }), 'p')?.lines.join()).not.toContain('expected')
  })
})

describe('status', () => {
  it('shows the belief, the ceiling and the prediction of the primary at the head', () => {
    const status = scopeStatus(waiting({ plan: planOf('build'), growth: withTime }), atMs)
    expect(status.growth).toEqual(withTime)
    expect(status.ceiling).toEqual({ low: 120_000, high: 150_000 })
    expect(status.fit?.predictedFitAtMs).toBe(atMs + 300_000)
  })

  it('shows none without a primary', () => {
    expect(scopeStatus(new Story().context, 0).fit).toBe(null)
  })
})
