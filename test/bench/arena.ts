/**
 * The README's table of the arena: every scenario of the project, `rightofway-adaptive` beside the
 * oracle, naive retries and the best rival. `node test/bench/arena.ts [--traces dir] [--json]`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type PolicyResult, runArena } from '../../src/simulation/arena/arena.ts'
import { type PolicyName, policyNames } from '../../src/simulation/arena/contenders.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { TraceMissing } from '../../src/simulation/arena/trace.ts'

const { values } = parseArgs({
  options: { traces: { type: 'string' }, json: { type: 'boolean', default: false } },
})
const folder = join(import.meta.dirname, '../../src/simulation/scenarios')
const rivals = policyNames.filter((name) => !['rightofway', 'rightofway-adaptive', 'oracle'].includes(name))

/** A rival that is better on both what primaries wait and what auxiliaries get done. */
const betterRival = (
  own: PolicyResult,
  all: Readonly<Partial<Record<PolicyName, PolicyResult>>>,
): string | null =>
  rivals.find(
    (name) =>
      all[name]!.primaryWaitVsOracle < own.primaryWaitVsOracle &&
      all[name]!.auxiliaryTokensVsOracle > own.auxiliaryTokensVsOracle,
  ) ?? null

const shortfalls = (own: PolicyResult, oracle: PolicyResult, rival: string | null): string => {
  const said = [
    own.primariesUnserved > oracle.primariesUnserved ? 'unserved' : null,
    own.primaryWaitVsOracle > 2 ? 'wait' : null,
    own.auxiliaryTokensVsOracle < 0.9 ? 'auxiliary tokens' : null,
    own.refusalsVsNaive > 0.05 ? 'refusals' : null,
    own.jain < 0.95 ? 'fairness' : null,
    rival === null ? null : `${rival} is better on both`,
  ].filter((one) => one !== null)
  return said.join(', ')
}

const seconds = (ms: number | null): string => (ms === null ? '-' : (ms / 1000).toFixed(ms < 10_000 ? 1 : 0))

const rows: string[] = []
const ratios: number[] = []
for (const file of readdirSync(folder).filter(
  (name) => name.endsWith('.json') && !name.endsWith('.schema.json'),
)) {
  try {
    const { scenario, traces } = loadScenario(join(folder, file), values.traces ?? null)
    const { policies } = runArena(scenario, { traces }).result
    const own = policies['rightofway-adaptive']!
    const oracle = policies.oracle!
    const rival = betterRival(own, policies)
    ratios.push(own.primaryWaitVsOracle)
    if (values.json)
      console.log(JSON.stringify({ bench: 'arena', case: scenario.name, ...own, betterRival: rival }))
    const naive = policies['naive-retry']!
    const cells = [
      scenario.name,
      `${seconds(own.primaryWaitMs.p50)} / ${seconds(oracle.primaryWaitMs.p50)} / ${seconds(naive.primaryWaitMs.p50)}`,
      own.primaryWaitVsOracle.toFixed(2),
      `${own.primariesUnserved} / ${oracle.primariesUnserved} / ${naive.primariesUnserved}`,
      own.auxiliaryTokensVsOracle.toFixed(2),
      own.refusalsVsNaive.toFixed(3),
      own.jain.toFixed(2),
      shortfalls(own, oracle, rival),
    ]
    rows.push(`| ${cells.join(' | ')} |`)
  } catch (error) {
    if (!(error instanceof TraceMissing)) throw error
    rows.push(`| ${file.replace('.json', '')} | needs \`--traces\` | | | | | | |`)
  }
}

if (!values.json) {
  console.log(
    '| scenario | primary wait p50, s: ours / oracle / naive | wait vs oracle | unserved: ours / oracle / naive | auxiliary tokens vs oracle | refusals vs naive | Jain | falls short on |',
  )
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |')
  console.log(rows.join('\n'))
  const sorted = ratios.sort((one, other) => one - other)
  console.log(
    `\nmedian wait vs oracle ${sorted[sorted.length >> 1]!.toFixed(2)}, worst ${sorted.at(-1)!.toFixed(2)}`,
  )
}
