/** A primary of 181k among closed-loop auxiliaries, under one rule: the ground of the ramp's tests. */
import type { PolicyInput } from '../../../src/index.ts'
import { rightofway } from '../../../src/simulation/arena/contenders.ts'
import type { Contender } from '../../../src/simulation/arena/ground.ts'
import { measure } from '../../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../../src/simulation/arena/run.ts'
import { parseScenario, type Scenario } from '../../../src/simulation/arena/scenario.ts'

export const minuteMs = 60_000

/** When the primary comes: as the first call of all but a few, or after twenty minutes of traffic. */
export const starts = { cold: 1_000, warm: 20 * minuteMs } as const

export interface Ground {
  readonly rule: object
  readonly start: keyof typeof starts
  readonly states: 'none' | 'ceiling' | 'retry-after'
  readonly workers?: number
}

export const groundOf = ({ rule, start, states, workers = 9 }: Ground): Scenario =>
  parseScenario({
    name: `${JSON.stringify(rule)} ${start} ${states}`,
    seed: 7,
    durationMs: 50 * minuteMs,
    provider: { ...rule, states, latency: { firstTokenMs: 1_500, perOutputTokenMs: 20 } },
    traffic: [
      {
        lane: 'auxiliary',
        principal: 'residence-1',
        arrival: { kind: 'closed-loop', workers },
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

export const isPrimary = (callId: string): boolean => callId.startsWith('1/')

export const waitUnder = (scenario: Scenario, contender: Contender) => {
  const { primaryWaitMs, primariesUnserved } = measure(runPolicy(scenario, contender))
  return { waitMs: primaryWaitMs.max!, isServed: primariesUnserved === 0 }
}

/** Our scope under `policy`, with every decision about the primary, as `verdict reason`. */
export const runUnder = (scenario: Scenario, policy: PolicyInput) => {
  const decided: string[] = []
  const observed = rightofway(policy, (_, decisions) => {
    for (const { callId, verdict, reason } of decisions)
      if (isPrimary(callId)) decided.push(`${verdict} ${reason}`)
  })
  return { ...waitUnder(scenario, observed), decided }
}
