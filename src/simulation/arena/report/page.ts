/** The report: one HTML file that needs nothing else. */
import type { ArenaOutcome } from '../arena.ts'
import type { Run } from '../run.ts'
import type { Scenario } from '../scenario.ts'
import { lanesChart, mostTokensOf, tokensChart, waitsChart } from './charts.ts'
import { style } from './style.ts'
import { escapeText } from './svg.ts'
import { columns } from './table.ts'

const metricsTable = ({ result }: ArenaOutcome): string => {
  const head = columns.map(
    ({ name, meaning }) => `<th scope="col" title="${escapeText(meaning)}">${escapeText(name)}</th>`,
  )
  const rows = Object.entries(result.policies).map(([policy, metrics], index) => {
    const cells = columns.map(({ show }) => `<td>${escapeText(show(metrics))}</td>`)
    return `<tr><th scope="row"><i class="key policy-${index}"></i>${escapeText(policy)}</th>${cells.join('')}</tr>`
  })
  return `<div class="wide"><table><thead><tr><th scope="col">policy</th>${head.join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

const providerText = ({ provider }: Scenario): string => {
  const rules = provider.rules.map((rule) =>
    Object.entries(rule)
      .map(([key, value]) =>
        key === 'rule'
          ? String(value)
          : `${key} ${typeof value === 'number' ? value.toLocaleString('en') : value}`,
      )
      .join(', '),
  )
  const calls = provider.concurrency === null ? [] : [`at most ${provider.concurrency} calls at once`]
  return rules.concat(calls).join('; ')
}

const legend = (policies: ReadonlyArray<string>): string =>
  `<p class="legend">${keys(...policies.map((policy, index) => [`policy-${index}`, policy] as const))}</p>`

const keys = (...entries: ReadonlyArray<readonly [string, string]>): string =>
  entries.map(([kind, text]) => `<span><i class="key ${kind}"></i>${escapeText(text)}</span>`).join(' ')

const tokenKeys = keys(
  ['used', 'input tokens accepted in a minute'],
  ['ceiling', 'what that minute could have held'],
)
const laneKeys = keys(
  ['waiting', 'primary waits'],
  ['primary', 'primary runs'],
  ['lost', 'primary never accepted'],
  ['waits', 'auxiliaries waiting'],
  ['flying', 'auxiliaries running'],
)

const policySection = (policy: string, run: Run, mostTokens: number): string =>
  `<section><h2>${escapeText(policy)}</h2>
<figure>${tokensChart(run, policy, mostTokens)}<figcaption>${tokenKeys}</figcaption></figure>
<figure>${lanesChart(run, policy)}<figcaption>${laneKeys}</figcaption></figure></section>`

/** The whole page for one scenario. */
export const reportPage = (scenario: Scenario, outcome: ArenaOutcome): string => {
  const { runs } = outcome
  const mostTokens = mostTokensOf([...runs.values()])
  const policies = [...runs.keys()]
  const sections = [...runs].map(([policy, run]) => policySection(policy, run, mostTokens))
  const minutes = Math.round(scenario.durationMs / 6_000) / 10
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(scenario.name)} · rightofway arena</title><style>${style}</style></head><body><main>
<h1>${escapeText(scenario.name)}</h1>
<p>${escapeText(scenario.description)}</p>
<p class="facts">${minutes} minutes, seed ${scenario.seed}. Provider: ${escapeText(providerText(scenario))}.</p>
${metricsTable(outcome)}
<section><h2>How long calls waited</h2>
<figure>${waitsChart(runs, 'primary')}<figcaption>Primaries: share accepted within a time. A primary that was never accepted counts as waiting to the end.</figcaption></figure>
<figure>${waitsChart(runs, 'auxiliary')}<figcaption>Auxiliaries: share accepted within a time.</figcaption></figure>
${legend(policies)}</section>
${sections.join('\n')}
</main></body></html>
`
}
