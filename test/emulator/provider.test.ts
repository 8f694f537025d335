import { describe, expect, test } from 'vitest'
import { decodeRules, makeProvider, type Provider, type ProviderOptions } from '../../src/emulator/index.ts'

const make = (rules: unknown, options: Partial<ProviderOptions> = {}): Provider =>
  makeProvider({
    rules: decodeRules(rules),
    latency: { firstTokenMs: 400, perOutputTokenMs: 20 },
    seed: 1,
    ...options,
  })

const call = (callId: string, atMs: number, inputTokens = 10) => ({
  callId,
  atMs,
  inputTokens,
  outputTokens: 5,
})

describe('the provider core', () => {
  test('says when the first token comes and when the answer ends', () => {
    expect(make([]).begin(call('a', 1_000))).toEqual({
      accepted: true,
      dispatch: 1,
      requestId: 'req_emulator_1',
      atMs: 1_000,
      firstTokenAtMs: 1_400,
      endsAtMs: 1_500,
    })
  })

  test('its log is the judge: what was accepted, refused, completed and aborted, by call id', () => {
    const provider = make([{ rule: 'concurrency', maxConcurrent: 1 }])
    const first = provider.begin({ ...call('a', 0), lane: 'primary' })
    provider.begin(call('b', 1))
    if (first.accepted) provider.finish({ dispatch: first.dispatch, atMs: 500 })
    const second = provider.begin(call('b', 501))
    if (second.accepted) provider.cancel({ dispatch: second.dispatch, atMs: 600, outputTokens: 2 })
    expect(provider.log()).toEqual([
      { at: 0, callId: 'a', kind: 'accepted', inputTokens: 10, lane: 'primary' },
      {
        at: 1,
        callId: 'b',
        kind: 'refused',
        inputTokens: 10,
        rule: 'concurrency',
        refusalKind: 'concurrency',
      },
      { at: 500, callId: 'a', kind: 'completed', inputTokens: 10, lane: 'primary', outputTokens: 5 },
      { at: 501, callId: 'b', kind: 'accepted', inputTokens: 10 },
      { at: 600, callId: 'b', kind: 'aborted', inputTokens: 10, outputTokens: 2 },
    ])
    expect(provider.totals()).toEqual({
      accepted: 2,
      refused: 1,
      completed: 1,
      aborted: 1,
      acceptedInputTokens: 20,
    })
    expect(provider.inFlight()).toBe(0)
  })

  test('a dispatch ends once: a second ending is refused and frees nothing', () => {
    const provider = make([{ rule: 'concurrency', maxConcurrent: 2 }])
    const first = provider.begin(call('a', 0))
    provider.begin(call('b', 0))
    if (!first.accepted) throw new Error('the first call must be accepted')
    expect(provider.cancel({ dispatch: first.dispatch, atMs: 1 })).toBe(true)
    expect(provider.cancel({ dispatch: first.dispatch, atMs: 1 })).toBe(false)
    expect(provider.finish({ dispatch: first.dispatch, atMs: 1 })).toBe(false)
    expect(provider.begin(call('c', 2)).accepted).toBe(true)
    expect(provider.begin(call('d', 2)).accepted).toBe(false)
  })

  test('an aborted call keeps its input charged and costs the output that existed', () => {
    const provider = make([
      { rule: 'token-bucket', inputTokensPerMinute: 60_000 },
      { rule: 'output-tokens-per-minute', outputTokensPerMinute: 60_000 },
    ])
    const answer = provider.begin(call('a', 0, 60_000))
    if (answer.accepted) provider.cancel({ dispatch: answer.dispatch, atMs: 0, outputTokens: 3 })
    expect(provider.ceiling(0)).toBe(0)
    expect(provider.headers(0).map(({ remaining }) => remaining)).toEqual([0, 59_997])
  })

  test('time that goes back counts as the latest time seen', () => {
    const provider = make([{ rule: 'token-bucket', inputTokensPerMinute: 60_000 }])
    provider.begin(call('a', 100_000, 60_000))
    provider.begin(call('b', 40_000, 1))
    expect(provider.log().map(({ at, kind }) => [at, kind])).toEqual([
      [100_000, 'accepted'],
      [100_000, 'refused'],
    ])
  })

  test('fractions of a millisecond are dropped, so that every stated time is exact', () => {
    const rule = { rule: 'use-growth', floorTokensPerMinute: 10, growthPerMinute: 2, tierTokensPerMinute: 20 }
    const provider = make([rule])
    provider.begin(call('a', 0.3, 10))
    expect(provider.acceptsAtMs(call('b', 59_999.9, 20))).toBe(60_000)
    expect(provider.begin(call('b', 59_999.9, 1)).accepted).toBe(false)
    expect(provider.begin(call('b', 60_000.1, 20)).accepted).toBe(true)
  })

  test.each([
    ['atMs', () => make([]).begin(call('a', Number.NaN)), /atMs must be a finite number, got NaN/],
    ['inputTokens', () => make([]).begin(call('a', 0, -1)), /inputTokens must be a whole number .*, got -1/],
    ['seed', () => make([], { seed: 0.5 }), /seed must be a whole number, got 0.5/],
    [
      'latency',
      () => make([], { latency: { firstTokenMs: -1, perOutputTokenMs: 0 } }),
      /latency.firstTokenMs must be a number in \[0, 86400000\], got -1/,
    ],
    ['rules', () => make([{ rule: 'token-bucket', inputTokensPerMinute: 0 }]), /got 0/],
  ])('an impossible %s fails at the door with its value', (_name, act, message) => {
    expect(act).toThrow(message)
  })

  test('the log keeps the newest entries, the totals keep count', () => {
    const provider = make([], { logLimit: 3 })
    for (let index = 0; index < 5; index++) provider.begin(call(`${index}`, index))
    expect(provider.log().map(({ callId }) => callId)).toEqual(['2', '3', '4'])
    expect(provider.totals().accepted).toBe(5)
  })

  test('states at the provider is the default of rules that do not say', () => {
    const growth = {
      rule: 'use-growth',
      floorTokensPerMinute: 10,
      growthPerMinute: 2,
      tierTokensPerMinute: 100,
    }
    const refusalOf = (provider: Provider) => {
      const answer = provider.begin(call('a', 0, 11))
      return answer.accepted ? null : answer.refusal.currentLimit
    }
    expect(refusalOf(make([growth]))).toBeUndefined()
    expect(refusalOf(make([growth], { states: 'ceiling' }))).toBe(10)
    expect(refusalOf(make([{ ...growth, states: 'none' }], { states: 'ceiling' }))).toBeUndefined()
  })

  test('a refusal on purpose is logged and charges nothing', () => {
    const provider = make([{ rule: 'requests-per-minute', requestsPerMinute: 1 }])
    expect(provider.refuse(call('a', 0), 'overloaded').refusal.kind).toBe('overloaded')
    expect(provider.refuse(call('a', 0), 'spend-cap').refusal.permanent).toBe(true)
    expect(provider.begin(call('a', 0)).accepted).toBe(true)
  })

  test('the oracle names the first time at which a call fits', () => {
    const provider = make([{ rule: 'token-bucket', inputTokensPerMinute: 60_000 }])
    provider.begin(call('a', 0, 60_000))
    expect(provider.acceptsAtMs(call('b', 0, 30_000))).toBe(30_000)
    expect(provider.acceptsAtMs(call('b', 0, 60_001))).toBe(null)
  })

  test('the ramp: a large call behind a use-growth ceiling fits after a climb, never after silence', () => {
    const rules = [
      {
        rule: 'use-growth',
        floorTokensPerMinute: 90_000,
        growthPerMinute: 1.35,
        tierTokensPerMinute: 400_000,
      },
    ]
    const silent = make(rules)
    silent.begin(call('warm', 0, 90_000))
    expect(silent.acceptsAtMs(call('primary', 0, 176_000))).toBe(null)
    const climbing = make(rules)
    for (const minute of [0, 1, 2]) {
      climbing.begin(call('auxiliary', minute * 60_000, climbing.ceiling(minute * 60_000)))
    }
    expect(climbing.acceptsAtMs(call('primary', 120_000, 176_000))).toBe(180_000)
  })

  test('the ramp: idling under time-step puts a large call out of reach, a trickle keeps it in reach', () => {
    const rules = [
      {
        rule: 'time-step',
        floorTokensPerMinute: 58_000,
        stepTokensPerMinute: 10_000,
        tierTokensPerMinute: 400_000,
        idleResetMinutes: 6,
      },
    ]
    const idle = make(rules)
    idle.begin(call('warm', 0, 1))
    expect(idle.acceptsAtMs(call('primary', 1, 176_000))).toBe(null)
    const trickle = make(rules)
    trickle.begin(call('warm', 0, 1))
    trickle.begin(call('auxiliary', 6 * 60_000, 1))
    expect(trickle.acceptsAtMs(call('primary', 6 * 60_000, 176_000))).toBe(12 * 60_000)
  })

  test('the same seed and the same calls give the same log', () => {
    const run = () => {
      const provider = make(
        [
          { rule: 'overload', probability: 0.3 },
          { rule: 'slow-down', steadyTokensPerMinute: 500, growth: 1.5, windowMs: 120_000 },
        ],
        { seed: 42 },
      )
      for (let index = 0; index < 500; index++) provider.begin(call(`${index}`, index * 700, index % 97))
      return JSON.stringify(provider.log())
    }
    expect(run()).toBe(run())
  })
})
