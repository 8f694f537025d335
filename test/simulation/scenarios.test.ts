import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parsePolicy } from '../../machines/index.ts'
import { runArena } from '../../src/simulation/arena/arena.ts'
import { policyNames, rightofway } from '../../src/simulation/arena/contenders.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import type { Scenario } from '../../src/simulation/arena/scenario.ts'
import { Witness } from '../../src/simulation/witness.ts'

const dir = fileURLToPath(new URL('../../src/simulation/scenarios/', import.meta.url))
const files = readdirSync(dir).filter((file) => file.endsWith('.json') && file !== 'scenario.schema.json')
/** Scenarios whose trace is not part of the project are run by whoever has it. */
const hasTraces = (file: string): boolean => {
  const { traffic } = JSON.parse(readFileSync(dir + file, 'utf8')) as {
    readonly traffic: ReadonlyArray<{ readonly arrival: { readonly file?: string } }>
  }
  return traffic.every(({ arrival }) => arrival.file === undefined || existsSync(dir + arrival.file))
}
const complete = files.filter(hasTraces)

describe('the scenarios of the project', () => {
  test('are named as their files, at least twelve, and cover every rule', () => {
    const scenarios = complete.map((file) => loadScenario(dir + file).scenario)
    expect(complete.length).toBeGreaterThanOrEqual(12)
    expect(scenarios.map(({ name }) => `${name}.json`)).toEqual(complete)
    const rules = new Set(scenarios.flatMap(({ provider }) => provider.rules.map(({ rule }) => rule)))
    expect(rules.size).toBe(10)
    expect(new Set(scenarios.map(({ seed }) => seed)).size).toBe(complete.length)
  })

  test.each(complete)('%s', (file) => {
    const { scenario, traces } = loadScenario(dir + file)
    const { result, runs } = runArena(scenario, { traces })
    expect(Object.keys(result.policies)).toEqual(policyNames)
    expect([...runs.keys()]).toEqual(policyNames)
    const { oracle } = result.policies
    expect(oracle).toMatchObject({ primaryWaitVsOracle: 1, auxiliaryTokensVsOracle: 1 })
    for (const metrics of Object.values(result.policies)) {
      expect(metrics.jain).toBeGreaterThan(0)
      expect(metrics.jain).toBeLessThanOrEqual(1 + 1e-9)
      expect(metrics.utilization ?? 0).toBeLessThanOrEqual(1)
      // The bound is one: nobody serves a primary that the oracle does not.
      expect(metrics.primariesUnserved).toBeGreaterThanOrEqual(oracle!.primariesUnserved)
    }
  })
})

/** Long enough for episodes and ramps, short enough for a witness that looks at everything. */
const shortened = (scenario: Scenario): Scenario => ({
  ...scenario,
  durationMs: Math.min(scenario.durationMs, 5 * 60_000),
})

describe('our policies keep their invariants', () => {
  test.each(complete)('in %s', (file) => {
    const { scenario, traces } = loadScenario(dir + file)
    const { concurrency } = scenario.provider
    const witness = new Witness(parsePolicy(concurrency === null ? {} : { capacity: concurrency }))
    const observed = rightofway({ strategy: 'adaptive' }, (event, decisions, after) =>
      witness.observe(event, decisions, after),
    )
    const { records } = runPolicy(shortened(scenario), observed, { traces })
    expect(records.length).toBeGreaterThan(0)
  })
})
