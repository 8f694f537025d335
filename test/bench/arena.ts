/**
 * The arena's table: scenarios at several seeds, ours beside the rivals, the oracle and the bound.
 *
 * `npm run bench:arena -- [--scenarios <files or folders, by commas>] [--seeds <count>]
 * [--only <scenario names, by commas>] [--policies <names, by commas>] [--traces <folder>] [--json]`
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parsePolicies } from '../../src/simulation/arena/arena.ts'
import { clairvoyant } from '../../src/simulation/arena/clairvoyant/clairvoyant.ts'
import type { PolicyName } from '../../src/simulation/arena/contenders.ts'
import { type Loaded, loadScenario } from '../../src/simulation/arena/load.ts'
import { TraceMissing } from '../../src/simulation/arena/trace.ts'
import { runSeeds, scenarioFiles, seedsOf } from './arena-runs.ts'
import { head, row } from './arena-table.ts'

const { values } = parseArgs({
  options: {
    scenarios: { type: 'string', multiple: true },
    seeds: { type: 'string', default: '5' },
    only: { type: 'string' },
    policies: { type: 'string' },
    traces: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const list = (text: string | undefined): ReadonlyArray<string> =>
  (text ?? '').split(',').filter((part) => part !== '')

const shipped = join(import.meta.dirname, '../../src/simulation/scenarios')
const compared: ReadonlyArray<PolicyName> = [
  'rightofway-adaptive',
  'headroom',
  'headroom-told',
  'bottleneck-reservoir',
  'oracle',
]
const policies = values.policies === undefined ? compared : parsePolicies(list(values.policies))
const seeds = Number(values.seeds)
if (!Number.isInteger(seeds) || seeds < 1) {
  throw new RangeError(`--seeds must be a whole number of at least 1, got ${values.seeds}`)
}
const only = new Set(list(values.only))

const load = (path: string): Loaded | null => {
  try {
    return loadScenario(path, values.traces ?? null)
  } catch (error) {
    if (!(error instanceof TraceMissing)) throw error
    console.error(`left out: ${error.message}`)
    return null
  }
}

if (!values.json) {
  console.log(`Mean primary wait, s: median (worst) of ${seeds} seeds / auxiliary Mtok / refusals\n`)
  console.log(head(policies))
}
for (const path of scenarioFiles(values.scenarios?.flatMap(list) ?? [shipped])) {
  const loaded = load(path)
  if (loaded === null || (only.size > 0 && !only.has(loaded.scenario.name))) continue
  const { scenario, traces } = loaded
  const results = runSeeds(loaded, policies, seeds)
  const bounds = seedsOf(scenario, seeds).map((seeded) => clairvoyant(seeded, traces))
  if (!values.json) console.log(row(scenario, results, bounds))
  else {
    for (const [policy, runs] of results) {
      console.log(JSON.stringify({ bench: 'arena', case: scenario.name, policy, runs, clairvoyant: bounds }))
    }
  }
}
