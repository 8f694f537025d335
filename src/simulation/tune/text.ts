/** A tuning as a table, and as a page. */

import { parsePolicy, policyDifferences } from '../../../machines/index.ts'
import type { BelievedLimit } from '../../../machines/limits/belief/projection.ts'
import { style } from '../arena/report/style.ts'
import { duration, escapeText, tokens } from '../arena/report/words.ts'
import type { Played, Tuning } from './tune.ts'

/** The recommended policy as a program or a configuration states it. */
export const recommendedPolicy = ({ recommended: { policy } }: Tuning): object =>
  policyDifferences(parsePolicy(policy))

const columns: ReadonlyArray<readonly [string, (played: Played) => string]> = [
  ['mean primary wait', ({ result }) => duration(result.meanPrimaryWaitMs)],
  ['longest', ({ result }) => duration(result.primaryWaitMs.max ?? 0)],
  ['unserved', ({ result }) => String(result.primariesUnserved)],
  ['background tokens', ({ result }) => tokens(result.auxiliaryTokensServed)],
  ['longest deferral', ({ result }) => duration(result.auxiliaryMaxDeferralMs)],
  ['refusals', ({ result }) => String(result.refusals.primary + result.refusals.auxiliary)],
]

const limitText = ({ layer, family, tokensPerMinute, burstTokens, confidence }: BelievedLimit): string => {
  const { low, high } = tokensPerMinute
  const size = high === null ? `at least ${tokens(low)}` : `${tokens(low)} to ${tokens(high)}`
  const burst = burstTokens === null ? '' : `, ${tokens(burstTokens)} at once`
  return `${layer}: ${family}, ${size} input tokens a minute${burst} (${Math.round(confidence * 100)} %)`
}

const beliefText = ({ limits }: Tuning): string =>
  limits.length === 0 ? 'nothing was refused: the recording shows no limit' : limits.map(limitText).join('; ')

const factsText = ({ recording }: Tuning): string =>
  `${recording.scope}: ${recording.calls} calls in ${duration(recording.durationMs)}, ${recording.primaries} primaries, ${recording.refusals} refusals`

const surenessText = ({ confidence }: Tuning): string => `${Math.round(confidence * 100)} %`

export const tuningText = (tuning: Tuning): string => {
  const rows = [
    ['policy', ...columns.map(([name]) => name)],
    ...tuning.played.map((played) => [
      `${played === tuning.recommended ? '> ' : '  '}${played.name}`,
      ...columns.map(([, show]) => show(played)),
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  '),
  )
  return [
    factsText(tuning),
    `believed: ${beliefText(tuning)}`,
    '',
    ...lines,
    '',
    `recommended (${surenessText(tuning)} sure): ${JSON.stringify(recommendedPolicy(tuning))}`,
  ].join('\n')
}

const section = (tuning: Tuning): string => {
  const head = columns.map(([name]) => `<th scope="col">${escapeText(name)}</th>`).join('')
  const rows = tuning.played.map((played) => {
    const own = played === tuning.recommended ? ' class="ours"' : ''
    const cells = columns.map(([, show]) => `<td>${escapeText(show(played))}</td>`).join('')
    return `<tr${own}><th scope="row">${escapeText(played.name)}</th>${cells}</tr>`
  })
  return `<section><h2>${escapeText(factsText(tuning))}</h2><p class="facts">Believed: ${escapeText(beliefText(tuning))}.</p>
<div class="wide"><table><thead><tr><th scope="col">policy</th>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>
<p>Recommended, ${surenessText(tuning)} sure:</p><pre>${escapeText(JSON.stringify(recommendedPolicy(tuning), null, 2))}</pre></section>`
}

export const tuningPage = (tunings: ReadonlyArray<Tuning>): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>rightofway tune</title><style>${style}</style></head><body><main><h1>Policies over your own traffic</h1>
${tunings.map(section).join('\n')}
</main></body></html>
`
