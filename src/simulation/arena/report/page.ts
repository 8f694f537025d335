/** The report: one self-contained HTML file. It includes uPlot, which draws its plots. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { ArenaOutcome } from '../arena.ts'
import type { PolicyName } from '../contenders.ts'
import { bestRival, inOrder, ours } from '../rank.ts'
import type { Run } from '../run.ts'
import type { Scenario } from '../scenario.ts'
import type { Stories } from '../stories.ts'
import { colourOf, lanesPlot, type PlotData, storyId, tokensPlot, waitsOverTime, waitsPlot } from './plots.ts'
import { script } from './script.ts'
import { primarySpans } from './series.ts'
import { style } from './style.ts'
import { columns } from './table.ts'
import { duration, escapeText, tokens } from './words.ts'

const require = createRequire(import.meta.url)
const library = (file: string): string => readFileSync(require.resolve(`uplot/dist/${file}`), 'utf8')

/** The places for plots, and their data in the same order. */
class Plots {
  readonly data: PlotData[] = []

  figure(data: PlotData, caption = ''): string {
    this.data.push(data)
    const words = [data.title, caption].filter((text) => text !== '').join('. ')
    return `<figure><figcaption>${escapeText(words)}</figcaption><div role="img" aria-label="${escapeText(data.title)}" data-plot="${this.data.length - 1}"></div></figure>`
  }
}

const metricsTable = ({ result }: ArenaOutcome, policies: ReadonlyArray<PolicyName>): string => {
  const head = columns.map(
    ({ name, meaning }) =>
      `<th scope="col" title="${escapeText(meaning)}">${escapeText(name).replace('/', '/<wbr>')}</th>`,
  )
  const rows = policies.map((policy) => {
    const cells = columns.map(({ show }) => `<td>${escapeText(show(result.policies[policy]!))}</td>`)
    const own = ours.includes(policy) ? ' class="ours"' : ''
    return `<tr${own}><th scope="row"><i class="key" style="background:${colourOf(policy)}"></i>${escapeText(policy)}</th>${cells.join('')}</tr>`
  })
  return `<div class="wide"><table><thead><tr><th scope="col">policy</th>${head.join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

const providerText = ({ provider }: Scenario): string => {
  const rules = provider.rules.map((rule) =>
    Object.entries(rule)
      .map(([key, value]) => {
        if (key === 'rule') return String(value)
        const text = typeof value === 'object' ? JSON.stringify(value) : value.toLocaleString('en')
        return `${key} ${text}`
      })
      .join(', '),
  )
  const calls = provider.concurrency === null ? [] : [`at most ${provider.concurrency} calls at once`]
  return rules.concat(calls).join('; ')
}

const boundText = ({ result }: ArenaOutcome): string => {
  const { meanPrimaryWaitMs, primariesUnserved, auxiliaryTokens } = result.clairvoyant
  const most = Number.isFinite(auxiliaryTokens)
    ? `, nor more than ${tokens(auxiliaryTokens)} auxiliary tokens`
    : ''
  const least = primariesUnserved === 0 ? '' : `, fewer than ${primariesUnserved} primaries unserved`
  return `No schedule, with every arrival known, has a mean primary wait below ${duration(meanPrimaryWaitMs)}${least}${most} where all primaries are served.`
}

/** The most stories that are shown: those of the primaries that waited longest. */
const mostStories = 200

const storiesSection = (policy: string, run: Run, stories: Stories): string => {
  const waits = primarySpans(run, run.scenario.durationMs)
    .map((span) => ({ ...span, waitMs: (span.acceptedAtMs ?? span.endedAtMs) - span.submittedAtMs }))
    .sort((one, other) => other.waitMs - one.waitMs)
    .slice(0, mostStories)
  const items = waits.map(({ id, waitMs, inputTokens, submittedAtMs, acceptedAtMs, refusals }) => {
    const fate =
      acceptedAtMs === null ? `not accepted after ${duration(waitMs)}` : `waited ${duration(waitMs)}`
    const words = `${fate}: ${tokens(inputTokens)} tokens, came at ${duration(submittedAtMs)}, ${refusals} refusals`
    const lines = (stories.get(id) ?? []).map(escapeText).join('\n')
    return `<details class="story" id="${escapeText(storyId(policy, id))}"><summary>${escapeText(words)}</summary><pre>${lines}</pre></details>`
  })
  return `<section><h2>Why primaries waited under ${escapeText(policy)}, the longest first</h2>${items.join('\n')}</section>`
}

const policyPlots = (plots: Plots, policy: string, run: Run): string =>
  `<div class="pair">${plots.figure(tokensPlot(run, policy))}${plots.figure(lanesPlot(run, policy))}</div>`

const page = (scenario: Scenario, body: string, plots: Plots): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(scenario.name)} · rightofway arena</title><style>${library('uPlot.min.css')}${style}</style></head><body><main>
${body}
</main><script type="application/json" id="plots">${JSON.stringify(plots.data).replaceAll('<', '\\u003c')}</script>
<script>${library('uPlot.iife.min.js')}</script><script>${script}</script></body></html>
`

/**
 * The whole page for one scenario: ours and the best rival first, then the story of each wait, then all
 * policies.
 */
export const reportPage = (scenario: Scenario, outcome: ArenaOutcome): string => {
  const { runs, result } = outcome
  const plots = new Plots()
  const policies = inOrder(result)
  const rival = bestRival(result)
  const own = policies.find((name) => ours.includes(name))
  const front = policies.filter((name) => name === own || name === rival || name === 'oracle')
  const told = own ?? front[0] ?? policies[0]!
  const pairs = (names: ReadonlyArray<PolicyName>) => names.map((name) => [name, runs.get(name)!] as const)
  const rest = policies.filter((name) => !front.includes(name))
  const others = rest.map(
    (name) =>
      `<details><summary>${escapeText(name)}</summary>${policyPlots(plots, name, runs.get(name)!)}</details>`,
  )
  const minutes = Math.round(scenario.durationMs / 6_000) / 10
  const body = `<h1>${escapeText(scenario.name)}</h1>
<p>${escapeText(scenario.description)}</p>
<p class="facts">${minutes} minutes, seed ${scenario.seed}. Provider: ${escapeText(providerText(scenario))}.</p>
<p class="facts">${escapeText(boundText(outcome))}</p>
<section><h2>${rival === null || own === undefined ? 'Compared' : `Ours against the best rival, ${escapeText(rival)}`}</h2>
${metricsTable(outcome, front)}
<div class="pair">${plots.figure(waitsOverTime(pairs(front), told))}${plots.figure(waitsPlot(pairs(front), 'primary'), 'One that was never accepted counts to the end')}</div>
${front.map((name) => policyPlots(plots, name, runs.get(name)!)).join('\n')}</section>
${storiesSection(told, runs.get(told)!, outcome.stories.get(told)!)}
<section><h2>Everybody</h2>${metricsTable(outcome, policies)}
<div class="pair">${plots.figure(waitsPlot(pairs(policies), 'primary'))}${plots.figure(waitsPlot(pairs(policies), 'auxiliary'))}</div>
${others.join('\n')}</section>`
  return page(scenario, body, plots)
}
