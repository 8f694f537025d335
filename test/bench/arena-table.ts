/** The arena's README table: a row per scenario, a cell per policy, the bound last, and where ours loses. */
import { adaptivePolicy, parsePolicy, worstCaseWaitMs } from '../../machines/index.ts'
import type { Bound } from '../../src/simulation/arena/clairvoyant/clairvoyant.ts'
import type { PolicyName } from '../../src/simulation/arena/contenders.ts'
import type { Scenario } from '../../src/simulation/arena/scenario.ts'
import { median, type Series } from './arena-runs.ts'

const own: PolicyName = 'rightofway-adaptive'
const seconds = (ms: number): string => (ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)
const millions = (tokens: number): string =>
  Number.isFinite(tokens) ? (tokens / 1_000_000).toFixed(1) : 'no bound'

const waitsOf = (series: Series): ReadonlyArray<number> =>
  series.map(({ meanPrimaryWaitMs }) => meanPrimaryWaitMs)
const servedOf = (series: Series): number =>
  median(series.map(({ auxiliaryTokensServed }) => auxiliaryTokensServed))
const unservedOf = (series: Series): number =>
  Math.max(...series.map(({ primariesUnserved }) => primariesUnserved))

/** Mean wait of primaries, s: median (worst) of the seeds / auxiliary Mtok / refusals; then the problems. */
export const cell = (series: Series): string => {
  const waits = waitsOf(series)
  const worst = series.length === 1 ? '' : ` (${seconds(Math.max(...waits))})`
  const refused = median(series.map(({ refusals }) => refusals.primary + refusals.auxiliary))
  const unserved = unservedOf(series)
  const jain = Math.min(...series.map((run) => run.jainOfEquals ?? 1))
  const amiss = [
    ...(unserved === 0 ? [] : [`${unserved} unserved`]),
    ...(jain >= 0.97 ? [] : [`Jain ${jain.toFixed(2)}`]),
  ]
  const figures = `${seconds(median(waits))}${worst} / ${millions(servedOf(series))} / ${Math.round(refused)}`
  return [figures, ...amiss].join(', ')
}

const boundCell = (bounds: ReadonlyArray<Bound>): string => {
  const waits = bounds.map(({ meanPrimaryWaitMs }) => meanPrimaryWaitMs)
  const worst = bounds.length === 1 ? '' : ` (${seconds(Math.max(...waits))})`
  const most = median(bounds.map(({ auxiliaryTokens }) => auxiliaryTokens))
  return `${seconds(median(waits))}${worst} / ${millions(most)}`
}

/** Rivals whose primaries wait less, by more than a tenth and 0.1 s, at no fewer than 0.97 of our tokens. */
export const losesTo = (results: ReadonlyMap<PolicyName, Series>): ReadonlyArray<PolicyName> => {
  const ours = results.get(own)
  if (ours === undefined) return []
  const [waitMs, served, unserved] = [median(waitsOf(ours)), servedOf(ours), unservedOf(ours)]
  return [...results.keys()].filter((name) => {
    const series = results.get(name)!
    if (name === own || name === 'oracle' || unservedOf(series) > unserved) return false
    const better = waitMs - median(waitsOf(series))
    return better > 100 && better > waitMs * 0.1 && servedOf(series) >= 0.97 * served
  })
}

/**
 * The longest deferral of an auxiliary of ours against the bound of the policy, as a word; an empty word when
 * workers do not bound the backlog. The bound counts only the time that primaries take.
 */
export const deferral = ({ traffic }: Scenario, ours: Series | undefined): string => {
  const auxiliaries = traffic.filter(({ lane }) => lane === 'auxiliary')
  if (ours === undefined || auxiliaries.length === 0) return ''
  const workers = auxiliaries.map(({ arrival }) =>
    arrival.kind === 'closed-loop' ? arrival.workers : Number.NaN,
  )
  const promisedMs = worstCaseWaitMs(parsePolicy(adaptivePolicy), {
    principals: new Set(auxiliaries.map(({ principal }) => principal)).size,
    callsAhead: Math.max(...workers) - 1,
  })
  if (Number.isNaN(promisedMs)) return ''
  const longestMs = Math.max(...ours.map(({ auxiliaryMaxDeferralMs }) => auxiliaryMaxDeferralMs))
  return `${seconds(longestMs)} of ${seconds(promisedMs)}`
}

export const head = (policies: ReadonlyArray<PolicyName>): string =>
  `| scenario | ${policies.join(' | ')} | clairvoyant | loses to | deferral, s |\n|${' --- |'.repeat(policies.length + 4)}`

export const row = (
  scenario: Scenario,
  results: ReadonlyMap<PolicyName, Series>,
  bounds: ReadonlyArray<Bound>,
): string => {
  const cells = [...results.values()].map(cell)
  const rest = [boundCell(bounds), losesTo(results).join(', '), deferral(scenario, results.get(own))]
  return `| ${[scenario.name, ...cells, ...rest].join(' | ')} |`
}
