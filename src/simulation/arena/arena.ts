/** All policies over one scenario: the same provider, clients and arrivals, from the same seed. */
import { InvalidInput } from '../../../machines/index.ts'
import { type Bound, clairvoyant } from './clairvoyant/clairvoyant.ts'
import { contenders, type PolicyName, policyNames, watched } from './contenders.ts'
import { compare, type Measured, type Metrics, measure, type Ratios } from './metrics.ts'
import { type Run, runPolicy } from './run.ts'
import type { Scenario } from './scenario.ts'
import { type Stories, StoryTeller, storiesOfLog } from './stories.ts'
import type { Traces } from './trace.ts'

export type PolicyResult = Metrics & Ratios & Pick<Measured, 'meanPrimaryWaitMs'>

export interface ArenaResult {
  readonly scenario: string
  readonly seed: number
  readonly durationMs: number
  /** The bound that no schedule beats. */
  readonly clairvoyant: Bound
  readonly policies: Readonly<Partial<Record<PolicyName, PolicyResult>>>
}

export interface ArenaOptions {
  /** Default: all. The oracle and naive retries run in any case: the ratios need them. */
  readonly policies?: ReadonlyArray<PolicyName>
  readonly traces?: Traces
  /** Receives the running policy, and the finished share of all the work, in [0, 1]. */
  readonly progress?: (policy: PolicyName, share: number) => void
}

/** Names of policies, checked. Throws `InvalidInput`. */
export const parsePolicies = (names: ReadonlyArray<string>): ReadonlyArray<PolicyName> =>
  names.map((name) => {
    const known = policyNames.find((one) => one === name)
    if (known !== undefined) return known
    throw new InvalidInput([
      { field: 'policies', expected: `some of ${policyNames.join(', ')}`, got: JSON.stringify(name) },
    ])
  })

export interface ArenaOutcome {
  readonly result: ArenaResult
  /** For the report; only of the policies asked for. */
  readonly runs: ReadonlyMap<PolicyName, Run>
  /** The stories of each run's primaries. */
  readonly stories: ReadonlyMap<PolicyName, Stories>
}

/** Runs the policies one after the other. */
export const runArena = (scenario: Scenario, options: ArenaOptions = {}): ArenaOutcome => {
  const { policies = policyNames, traces = new Map(), progress = () => {} } = options
  const needed = policyNames.filter(
    (name) => policies.includes(name) || name === 'oracle' || name === 'naive-retry',
  )
  const runs = new Map<PolicyName, Run>()
  const stories = new Map<PolicyName, Stories>()
  const measured = new Map<PolicyName, Measured>()
  for (const [index, name] of needed.entries()) {
    const teller = new StoryTeller()
    const contender = watched[name]?.(teller.observe) ?? contenders[name]
    const run = runPolicy(scenario, contender, {
      traces,
      progress: (share) => progress(name, (index + share) / needed.length),
    })
    measured.set(name, measure(run))
    if (!policies.includes(name)) continue
    runs.set(name, run)
    stories.set(name, watched[name] === undefined ? storiesOfLog(run.log) : teller.stories)
  }
  const bound = clairvoyant(scenario, traces)
  const yardsticks = {
    oracle: measured.get('oracle')!,
    naive: measured.get('naive-retry')!,
    clairvoyant: bound,
  }
  const results = [...runs.keys()].map((name) => {
    const own = measured.get(name)!
    const { acceptedTokens: _, ...metrics } = own
    return [name, { ...metrics, ...compare(own, yardsticks) }] as const
  })
  return {
    result: {
      scenario: scenario.name,
      seed: scenario.seed,
      durationMs: scenario.durationMs,
      clairvoyant: bound,
      policies: Object.fromEntries(results),
    },
    runs,
    stories,
  }
}
