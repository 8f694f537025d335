/** Runs policies over scenarios at several seeds and collects the results. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { contenders, type PolicyName } from '../../src/simulation/arena/contenders.ts'
import type { Loaded } from '../../src/simulation/arena/load.ts'
import { type Measured, measure } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import type { Scenario } from '../../src/simulation/arena/scenario.ts'

/** Scenario files: those named, and those in the folders named. */
export const scenarioFiles = (places: ReadonlyArray<string>): ReadonlyArray<string> =>
  places.flatMap((place) =>
    statSync(place).isDirectory()
      ? readdirSync(place)
          .filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
          .sort()
          .map((name) => join(place, name))
      : [place],
  )

/** One policy's results, one per seed. */
export type Series = ReadonlyArray<Measured>

/** The scenario at its own seed and at those that follow it. */
export const seedsOf = (scenario: Scenario, seeds: number): ReadonlyArray<Scenario> =>
  Array.from({ length: seeds }, (_, index) => ({ ...scenario, seed: scenario.seed + index }))

/** Runs the policies over the scenario's own seed and those that follow it. */
export const runSeeds = (
  { scenario, traces }: Loaded,
  policies: ReadonlyArray<PolicyName>,
  seeds: number,
): ReadonlyMap<PolicyName, Series> =>
  new Map(
    policies.map((name) => [
      name,
      seedsOf(scenario, seeds).map((seeded) => measure(runPolicy(seeded, contenders[name], { traces }))),
    ]),
  )

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
