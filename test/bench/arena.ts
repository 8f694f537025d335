/**
 * The arena's table: scenarios at several seeds, ours beside the rivals and the oracle.
 *
 * `npm run bench:arena -- [--scenarios <files or folders, by commas>] [--seeds <count>]
 * [--only <scenario names, by commas>] [--policies <names, by commas>] [--traces <folder>] [--json]`
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parsePolicies } from '../../src/simulation/arena/arena.ts'
import type { PolicyName } from '../../src/simulation/arena/contenders.ts'
import { type Loaded, loadScenario } from '../../src/simulation/arena/load.ts'
import { TraceMissing } from '../../src/simulation/arena/trace.ts'
import { median, runSeeds, type Series, scenarioFiles } from './arena-runs.ts'

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

const seconds = (ms: number): string => (ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)

/** Mean wait of primaries (worst seed) / auxiliary Mtok / refusals; then what is amiss. */
const cell = (series: Series): string => {
  const of = (value: (run: Series[number]) => number) => series.map(value)
  const waits = of(({ meanPrimaryWaitMs }) => meanPrimaryWaitMs)
  const worst = series.length === 1 ? '' : ` (${seconds(Math.max(...waits))})`
  const served = median(of(({ auxiliaryTokensServed }) => auxiliaryTokensServed)) / 1_000_000
  const refused = median(of(({ refusals }) => refusals.primary + refusals.auxiliary))
  const unserved = Math.max(...of(({ primariesUnserved }) => primariesUnserved))
  const jain = Math.min(...of((run) => run.jain))
  const amiss = [
    ...(unserved === 0 ? [] : [`${unserved} unserved`]),
    ...(jain >= 0.97 ? [] : [`Jain ${jain.toFixed(2)}`]),
  ]
  return [`${seconds(median(waits))}${worst} / ${served.toFixed(1)} / ${Math.round(refused)}`, ...amiss].join(
    ', ',
  )
}

if (!values.json) {
  console.log(`Mean primary wait, s: median (worst) of ${seeds} seeds / auxiliary Mtok / refusals\n`)
  console.log(`| scenario | ${policies.join(' | ')} |\n| --- |${' --- |'.repeat(policies.length)}`)
}
for (const path of scenarioFiles(values.scenarios?.flatMap(list) ?? [shipped])) {
  const loaded = load(path)
  if (loaded === null || (only.size > 0 && !only.has(loaded.scenario.name))) continue
  const results = runSeeds(loaded, policies, seeds)
  const { name } = loaded.scenario
  if (values.json) {
    for (const [policy, runs] of results)
      console.log(JSON.stringify({ bench: 'arena', case: name, policy, runs }))
  } else console.log(`| ${name} | ${[...results.values()].map(cell).join(' | ')} |`)
}
