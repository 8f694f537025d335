/** A primary of 181k under each rule family: cold and warm, with all that a refusal may state, beside an oracle that knows the rule. */
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, contractPolicy, type PolicyInput } from '../../../src/index.ts'
import { contenders } from '../../../src/simulation/arena/contenders.ts'
import { groundOf, minuteMs, runUnder, starts, waitUnder } from './ground.ts'

const families = {
  'token-bucket': { rule: 'token-bucket', inputTokensPerMinute: 210_000 },
  'use-growth': {
    rule: 'use-growth',
    floorTokensPerMinute: 130_000,
    growthPerMinute: 1.35,
    tierTokensPerMinute: 400_000,
  },
  'time-step': {
    rule: 'time-step',
    floorTokensPerMinute: 64_000,
    stepTokensPerMinute: 17_000,
    tierTokensPerMinute: 400_000,
    idleResetMinutes: 6,
  },
  'slow-down': { rule: 'slow-down', steadyTokensPerMinute: 150_000, growth: 1.5, windowMs: 300_000 },
  'requests-per-minute': { rule: 'requests-per-minute', requestsPerMinute: 12 },
  'output-tokens-per-minute': { rule: 'output-tokens-per-minute', outputTokensPerMinute: 2_000 },
  concurrency: { rule: 'concurrency', maxConcurrent: 4 },
  overload: { rule: 'overload', probability: 0.4 },
  'daily-quota': { rule: 'daily-quota', inputTokensPerDay: 1_000_000_000 },
} as const

type Family = keyof typeof families
const names = Object.keys(families) as Array<Family>
const startNames = Object.keys(starts) as Array<keyof typeof starts>
const cases = names.flatMap((rule) =>
  startNames.flatMap((start) =>
    (['none', 'ceiling', 'retry-after'] as const).map((states) => [rule, start, states] as const),
  ),
)

/** What not knowing the rule may cost beside an oracle that does: a quiet window and one plan of two minutes. */
const patienceMs = 3 * minuteMs
/** A limit that moves once in five minutes tells nothing in between: not knowing it may cost one such window. */
const patienceByFamily: Partial<Record<Family, number>> = { 'slow-down': 5 * minuteMs }
/** So little that nobody has to know anything. */
const promptMs = 15_000
const prompt: ReadonlySet<Family> = new Set(['requests-per-minute', 'concurrency', 'overload', 'daily-quota'])

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

describe('a primary of 181k', () => {
  it.each(cases)(
    'is admitted under %s, %s, stating %s, within a bounded time of the oracle',
    (family, start, states) => {
      const scenario = groundOf({ rule: families[family], start, states })
      const oracle = waitUnder(scenario, contenders.oracle)
      const own = runUnder(scenario, adaptivePolicy)
      console.info(`${family}, ${start}, ${states}: ${seconds(own.waitMs)}, oracle ${seconds(oracle.waitMs)}`)
      expect(oracle.isServed).toBe(true)
      expect(own.isServed).toBe(true)
      const allowedMs = prompt.has(family) ? promptMs : (patienceByFamily[family] ?? patienceMs)
      expect(own.waitMs).toBeLessThanOrEqual(oracle.waitMs + allowedMs)
    },
  )

  it.each(['none', 'ceiling', 'retry-after'] as const)(
    'after a daily quota is spent ends with a name, as no policy could serve it (stating %s)',
    (states) => {
      const rule = { rule: 'daily-quota', inputTokensPerDay: 1_000_000 }
      const scenario = groundOf({ rule, start: 'warm', states })
      expect(waitUnder(scenario, contenders.oracle).isServed).toBe(false)
      const { decided } = runUnder(scenario, { ...adaptivePolicy, primaryPendingTimeoutMs: 20 * minuteMs })
      expect(['expire pending-timeout', 'reject attempts-exhausted']).toContain(decided.at(-1))
    },
  )
})

describe('under `quiet` alone', () => {
  /** Held for good, so that only quiet is left. */
  const quiet: PolicyInput = { ...contractPolicy, strategy: 'quiet', maxDeferralMs: 24 * 60 * minuteMs }

  it.each([
    ['use-growth', { primaryPendingTimeoutMs: 20 * minuteMs, maxAttempts: 1_000 }, 'expire pending-timeout'],
    ['time-step', { maxAttempts: 3 }, 'reject attempts-exhausted'],
  ] as const)('%s, which quiet cannot help, ends in a named decision', (family, bounds, last) => {
    const { isServed, decided } = runUnder(
      groundOf({ rule: families[family], start: 'cold', states: 'none' }),
      { ...quiet, ...bounds },
    )
    expect(isServed).toBe(false)
    expect(decided.at(-1)).toBe(last)
  })

  it.each(cases.filter(([, start]) => start === 'cold'))(
    '%s, %s, stating %s is served or ends in a named decision, and is never silent',
    (family, start, states) => {
      const { isServed, decided } = runUnder(groundOf({ rule: families[family], start, states }), {
        ...quiet,
        primaryPendingTimeoutMs: 15 * minuteMs,
      })
      const last = decided.at(-1)
      if (isServed) expect(last).toMatch(/^(admit|release) (primary|probe)$/)
      else expect(['expire pending-timeout', 'reject attempts-exhausted']).toContain(last)
    },
  )
})
