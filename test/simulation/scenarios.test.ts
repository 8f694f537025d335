import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parsePolicy } from '../../machines/index.ts'
import { ruleNames } from '../../src/emulator/rules/rule.ts'
import { clairvoyant } from '../../src/simulation/arena/clairvoyant/clairvoyant.ts'
import { contenders, policyNames, rightofway } from '../../src/simulation/arena/contenders.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { measure } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import type { Scenario } from '../../src/simulation/arena/scenario.ts'
import { Witness } from '../../src/simulation/witness.ts'

const dir = fileURLToPath(new URL('../../src/simulation/scenarios/', import.meta.url))
const files = readdirSync(dir).filter((file) => file.endsWith('.json') && file !== 'scenario.schema.json')
/** Scenarios whose trace is not part of the project run only where the trace is available. */
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
    expect([...rules].sort()).toEqual([...ruleNames].sort())
    expect(new Set(scenarios.map(({ seed }) => seed)).size).toBe(complete.length)
  })

  test.each(complete)('nobody beats the bound in %s', (file) => {
    const { scenario: whole, traces } = loadScenario(dir + file)
    const scenario = { ...whole, durationMs: Math.min(whole.durationMs, 10 * 60_000) }
    const bound = clairvoyant(scenario, traces)
    for (const name of policyNames) {
      const run = runPolicy(scenario, contenders[name], { traces })
      const own = measure(run)
      expect(own.meanPrimaryWaitMs, name).toBeGreaterThanOrEqual(bound.meanPrimaryWaitMs - 1e-6)
      expect(own.primariesUnserved, name).toBeGreaterThanOrEqual(bound.primariesUnserved)
      expect(own.acceptedTokens, name).toBeLessThanOrEqual(bound.acceptedTokens)
      expect(own.jain).toBeGreaterThan(0)
      expect(own.jain).toBeLessThanOrEqual(1 + 1e-9)
      expect(own.utilization ?? 0).toBeLessThanOrEqual(1)
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
