/** A primary of 181k under each rule family: cold and warm, with and without stated ceilings, beside an oracle that knows the rule. */
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, defaultPolicy, type PolicyInput } from '../../src/index.ts'
import { contenders, rightofway } from '../../src/simulation/arena/contenders.ts'
import { measure } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { parseScenario, type Scenario } from '../../src/simulation/arena/scenario.ts'

const minuteMs = 60_000

const families = {
  'token-bucket': { inputTokensPerMinute: 210_000 },
  'use-growth': { floorTokensPerMinute: 130_000, growthPerMinute: 1.35, tierTokensPerMinute: 400_000 },
  'time-step': {
    floorTokensPerMinute: 64_000,
    stepTokensPerMinute: 17_000,
    tierTokensPerMinute: 400_000,
    idleResetMinutes: 6,
  },
  'slow-down': { steadyTokensPerMinute: 150_000, growth: 1.5, windowMs: 300_000 },
} as const

const starts = { cold: 1_000, warm: 20 * minuteMs } as const

const scenarioOf = (
  rule: keyof typeof families,
  start: keyof typeof starts,
  states: 'none' | 'ceiling',
): Scenario =>
  parseScenario({
    name: `${rule} ${start} ${states}`,
    seed: 7,
    durationMs: 50 * minuteMs,
    provider: { rule, ...families[rule], states, latency: { firstTokenMs: 1_500, perOutputTokenMs: 20 } },
    traffic: [
      {
        lane: 'auxiliary',
        principal: 'residence-1',
        arrival: { kind: 'closed-loop', workers: 9 },
        inputTokens: { uniform: [41_000, 77_000] },
        outputTokens: 300,
      },
      {
        lane: 'primary',
        principal: 'residence-1',
        arrival: { kind: 'at', atMs: [starts[start]] },
        inputTokens: 181_000,
        outputTokens: 400,
      },
    ],
  })

const waitOf = (scenario: Scenario, contender: Parameters<typeof runPolicy>[1]) => {
  const run = runPolicy(scenario, contender)
  const { primaryWaitMs, primariesUnserved } = measure(run)
  return { waitMs: primaryWaitMs.max!, isServed: primariesUnserved === 0, run }
}

const cases = (Object.keys(families) as Array<keyof typeof families>).flatMap((rule) =>
  (Object.keys(starts) as Array<keyof typeof starts>).flatMap((start) =>
    (['none', 'ceiling'] as const).map((states) => [rule, start, states] as const),
  ),
)

/** What not knowing the rule may cost beside an oracle that does: a quiet window and one plan of two minutes. */
const patienceMs = 3 * minuteMs

describe('a primary of 181k', () => {
  it.each(cases)(
    'is admitted under %s, %s, stating %s, within a bounded time of the oracle',
    (rule, start, states) => {
      const scenario = scenarioOf(rule, start, states)
      const oracle = waitOf(scenario, contenders.oracle)
      const own = waitOf(scenario, rightofway(adaptivePolicy))
      const seconds = (ms: number) => `${Math.round(ms / 1000)} s`
      console.info(`${rule}, ${start}, ${states}: ${seconds(own.waitMs)}, oracle ${seconds(oracle.waitMs)}`)
      expect(oracle.isServed).toBe(true)
      expect(own.isServed).toBe(true)
      expect(own.waitMs).toBeLessThanOrEqual(oracle.waitMs + patienceMs)
    },
  )

  it.each([
    ['use-growth', 'expire', 'pending-timeout'],
    ['time-step', 'reject', 'attempts-exhausted'],
  ] as const)(
    'ends in a named decision where quiet cannot help (%s under `quiet`): %s, %s',
    (rule, verdict, reason) => {
      const ends: string[] = []
      const policy: PolicyInput = {
        ...defaultPolicy,
        strategy: 'quiet',
        // Held for good, so that only quiet is left.
        maxDeferralMs: 24 * 60 * minuteMs,
        ...(verdict === 'reject'
          ? { maxAttempts: 8 }
          : { maxAttempts: 1_000, primaryPendingTimeoutMs: 20 * minuteMs }),
      }
      const observed = rightofway(policy, (_, decisions) => {
        for (const one of decisions)
          if (one.callId.startsWith('1/')) ends.push(`${one.verdict} ${one.reason}`)
      })
      const { isServed } = waitOf(scenarioOf(rule, 'cold', 'none'), observed)
      expect(isServed).toBe(false)
      expect(ends.at(-1)).toBe(`${verdict} ${reason}`)
    },
  )
})
