/**
 * The parts of a scenario beyond limits and arrivals: the clients' view of answers, their estimates and their
 * patience.
 */
import OpenAI from 'openai'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Answers, faithfulAnswers, HeaderView, refusalHeard } from '../../src/simulation/answers.ts'
import { contenders } from '../../src/simulation/arena/contenders.ts'
import type { Contender } from '../../src/simulation/arena/ground.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { parseScenario, type Scenario } from '../../src/simulation/arena/scenario.ts'
import { retryingClients, sdkRetries } from '../../src/simulation/schedulers.ts'
import { estimateOf, type SimulatedCall } from '../../src/simulation/world.ts'

afterEach(() => {
  vi.useRealTimers()
})

const bucket = { rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' }
const latency = { firstTokenMs: 1_000, perOutputTokenMs: 10 }
const scenarioOf = (provider: object, traffic: ReadonlyArray<object>, durationMs = 120_000): Scenario =>
  parseScenario({ name: 'x', seed: 3, durationMs, provider: { ...bucket, latency, ...provider }, traffic })
const at = (lane: string, atMs: ReadonlyArray<number>, inputTokens: number, more: object = {}) => ({
  lane,
  principal: lane,
  arrival: { kind: 'at', atMs },
  inputTokens,
  ...more,
})

describe('what is heard', () => {
  const fact = (remaining: number) =>
    [{ dimension: 'input-tokens-per-minute', limit: 600, remaining, resetAtMs: 0 }] as const

  test('headers that lag show the newest numbers that are old enough', () => {
    const view = new HeaderView({ ...faithfulAnswers, headersLagMs: 40_000 })
    const shown = [0, 10_000, 50_000, 60_000].map((atMs) => view.shown(fact(600 - atMs / 1_000), atMs))
    expect(shown.map(([one]) => one!.remaining)).toEqual([600, 600, 590, 590])
  })

  test('headers that lie are off by their factor', () => {
    const view = new HeaderView({ ...faithfulAnswers, headersFactor: 2 })
    expect(view.shown(fact(101), 0)).toEqual([{ ...fact(202)[0], limit: 1_200 }])
  })

  test('a plain 429 keeps the stated wait and nothing else', () => {
    const blind: Answers = { ...faithfulAnswers, kindBlind: true }
    const refusal = { kind: 'acceleration', retryAfterMs: 7, permanent: true, currentLimit: 9 } as const
    expect(refusalHeard(refusal, blind)).toEqual({
      kind: 'unknown-rate-limit',
      retryAfterMs: 7,
      permanent: false,
    })
    expect(refusalHeard(refusal, faithfulAnswers)).toBe(refusal)
  })

  test('a refusal travels as long as it is said to', () => {
    const heard: number[] = []
    const listener: Contender = ({ world }) => ({
      submit: (call) => {
        const refused = () => heard.push(world.timeline.now())
        world.dispatch(call, { accepted: () => {}, completed: () => {}, refused })
      },
    })
    runPolicy(scenarioOf({ answers: { refusalsLateMs: 700 } }, [at('primary', [5_000], 601)]), listener)
    expect(heard).toEqual([5_700])
  })
})

describe('strangers', () => {
  test('take their share, and never count', () => {
    const traffic = [at('primary', [1_000], 500)]
    const strangers = [at('primary', [0], 400)]
    const { records, log } = runPolicy(scenarioOf({ strangers }, traffic), contenders['naive-retry'])
    expect(records.map(({ call }) => call.inputTokens)).toEqual([500])
    expect(records[0]!.acceptedAtMs).toBe(30_000)
    expect(log.map(({ callId }) => callId)).toContain('stranger/1000000/0/0')
  })

  test('are known to the oracle when they have come', () => {
    const strangers = [at('primary', [0], 400)]
    const run = runPolicy(scenarioOf({ strangers }, [at('primary', [1_000], 500)]), contenders.oracle)
    expect(run.records[0]).toMatchObject({ acceptedAtMs: 30_000, refusals: 0 })
  })
})

describe('what clients believe and wait for', () => {
  const asked = (traffic: ReadonlyArray<object>): ReadonlyArray<SimulatedCall> =>
    runPolicy(scenarioOf({}, traffic), contenders.oracle).records.map(({ call }) => call)

  test.each([
    ['nothing is said', 'absent', 0, 0],
    ['a factor', { factor: 1.5 }, 150, 150],
    ['an error', { error: 0.4 }, 60, 140],
  ])('estimates: %s', (_name, estimate, least, most) => {
    const calls = asked([at('auxiliary', [0, 100, 200, 300], 100, { estimate })])
    for (const call of calls) {
      expect(call.inputTokens).toBe(100)
      expect(estimateOf(call)).toBeGreaterThanOrEqual(least)
      expect(estimateOf(call)).toBeLessThanOrEqual(most)
    }
  })

  test.each(['rightofway', 'headroom', 'bottleneck-priority', 'oracle'] as const)(
    'a call is given up at its deadline, and sent no more: %s',
    (name) => {
      const traffic = [at('auxiliary', [0], 600), at('primary', [1_000], 500, { deadlineMs: 20_000 })]
      const { records, log } = runPolicy(scenarioOf({}, traffic), contenders[name])
      expect(records[1]).toMatchObject({ acceptedAtMs: null, endedAtMs: 21_000, failed: true })
      expect(log.filter(({ lane, at: sentAtMs }) => lane === 'primary' && sentAtMs > 21_000)).toEqual([])
    },
  )
})

describe('arrivals', () => {
  const times = (arrival: object, more: object = {}) =>
    runPolicy(
      scenarioOf({ inputTokensPerMinute: 1_000_000 }, [
        { lane: 'primary', inputTokens: 10, ...more, arrival },
      ]),
      contenders.oracle,
    ).records.map(({ submittedAtMs, call }) => ({ submittedAtMs, inputTokens: call.inputTokens }))

  test('on and off: only while it is on', () => {
    const came = times({ kind: 'on-off', perMinute: 60, onMs: 10_000, offMs: 20_000, startMs: 5_000 })
    expect(came.length).toBeGreaterThan(20)
    for (const { submittedAtMs } of came) expect((submittedAtMs - 5_000) % 30_000).toBeLessThanOrEqual(10_000)
  })

  test('turns: each round follows the answer and the tool, and is larger', () => {
    const turn = { kind: 'turns', perMinute: 1, rounds: [3, 3], toolMs: [2_000, 2_000], growthTokens: 5 }
    const came = times(turn, { outputTokens: 100 }).slice(0, 3)
    // A call takes 1 s to its first token and 1 s for the rest.
    expect(came.map(({ submittedAtMs }) => submittedAtMs - came[0]!.submittedAtMs)).toEqual([0, 4_000, 8_000])
    expect(came.map(({ inputTokens }) => inputTokens)).toEqual([10, 15, 20])
  })
})

describe('the naive client is the SDK as shipped', () => {
  const attemptsOfSdk = async (retryAfter: string | null): Promise<ReadonlyArray<number>> => {
    vi.useFakeTimers({ now: 0 })
    const sentAt: number[] = []
    const refuse = async (): Promise<Response> => {
      sentAt.push(Date.now())
      const headers = retryAfter === null ? {} : { 'retry-after': retryAfter }
      return new Response('{}', { status: 429, headers })
    }
    const client = new OpenAI({ apiKey: 'none', fetch: refuse })
    const call = client.models.list().then(
      () => null,
      (error: unknown) => error,
    )
    await vi.advanceTimersByTimeAsync(10 * 60_000)
    expect(await call).toBeInstanceOf(OpenAI.RateLimitError)
    vi.useRealTimers()
    return sentAt
  }
  const attemptsOfOurs = (retryAfterMs: number | null): ReadonlyArray<number> => {
    const sentAt: number[] = []
    const contender: Contender = ({ world, random }) => {
      const { timeline } = world
      const refusing = Object.assign(Object.create(world) as typeof world, {
        dispatch: (_call: SimulatedCall, hooks: Parameters<typeof world.dispatch>[1]) => {
          sentAt.push(timeline.now())
          hooks.refused({ kind: 'overloaded', retryAfterMs, permanent: false })
          return () => {}
        },
        end: () => {},
      })
      return retryingClients(refusing, sdkRetries, random)
    }
    runPolicy(scenarioOf({}, [at('primary', [0], 1)], 600_000), contender)
    return sentAt
  }

  test.each([
    ['nothing stated', null],
    ['a stated wait', 7],
    ['a minute', 60],
    ['more than a minute', 61],
  ])('%s', async (_name, seconds) => {
    const [sdk, ours] = [
      await attemptsOfSdk(seconds === null ? null : String(seconds)),
      attemptsOfOurs(seconds === null ? null : seconds * 1_000),
    ]
    expect(ours).toHaveLength(sdk.length)
    for (const [index, sentAt] of sdk.entries()) {
      // Backoffs are jittered by a quarter.
      expect(Math.abs(ours[index]! - sentAt)).toBeLessThanOrEqual(index * 250)
    }
  })
})
