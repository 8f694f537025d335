/** The data of the page's plots, for uPlot. */

import { policyNames } from '../contenders.ts'
import { auxiliaryWaits, primaryWaits } from '../metrics.ts'
import type { Run } from '../run.ts'
import { auxiliaryCounts, primarySpans, tokenSeries } from './series.ts'

export interface PlotSeries {
  readonly label: string
  readonly colour: string
  /** Filled below, or points alone. */
  readonly style: 'line' | 'area' | 'points'
}

export interface PlotData {
  readonly title: string
  /** The x values: minutes, or seconds on a logarithmic axis. */
  readonly x: 'minutes' | 'log-seconds'
  readonly y: 'tokens' | 'calls' | 'share' | 'log-seconds'
  readonly series: ReadonlyArray<PlotSeries>
  /** x, then each series; null where a series has no value. */
  readonly data: ReadonlyArray<ReadonlyArray<number | null>>
  /** By series and point: the fragment that a click opens. */
  readonly links?: ReadonlyArray<ReadonlyArray<string | null>>
}

const minutes = (ms: number): number => Math.round(ms / 60) / 1_000
const finite = (value: number): number | null => (Number.isFinite(value) ? Math.round(value) : null)
/** Start of logarithmic axes, s: a wait of 0 is drawn here. */
const leastSeconds = 0.1
const seconds = (ms: number): number => Math.max(leastSeconds, Math.round(ms) / 1_000)

/**
 * Colours of policies, the same in every plot (after Okabe and Ito: distinct for most eyes, on light and
 * dark).
 */
const colours = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#8a8a8a',
  '#cc79a7',
  '#8a6d00',
  '#6a3d9a',
  '#7f5539',
  '#2f9fd0',
  '#a33',
  '#3a7d44',
  '#555fa0',
  '#b0722d',
] as const
export const colourOf = (policy: string): string =>
  colours[(policyNames as ReadonlyArray<string>).indexOf(policy) % colours.length] ?? colours[0]

export const tokensPlot = (run: Run, policy: string): PlotData => {
  const points = tokenSeries(run)
  return {
    title: `${policy}: input tokens accepted in a minute against what it could have held`,
    x: 'minutes',
    y: 'tokens',
    series: [
      { label: 'accepted in a minute', colour: '#0072b2', style: 'area' },
      { label: 'what that minute could have held', colour: '#d55e00', style: 'line' },
    ],
    data: [
      points.map(({ atMs }) => minutes(atMs)),
      points.map(({ usedTokens }) => usedTokens),
      points.map(({ ceilingTokens }) => finite(ceilingTokens)),
    ],
  }
}

export const lanesPlot = (run: Run, policy: string): PlotData => {
  const counts = auxiliaryCounts(run)
  const spans = primarySpans(run, run.scenario.durationMs)
  const waiting = (atMs: number): number =>
    spans.filter(
      ({ submittedAtMs, acceptedAtMs, endedAtMs }) =>
        submittedAtMs <= atMs && (acceptedAtMs ?? endedAtMs) > atMs,
    ).length
  return {
    title: `${policy}: calls that wait and run`,
    x: 'minutes',
    y: 'calls',
    series: [
      { label: 'auxiliaries running', colour: '#6f8f3f', style: 'area' },
      { label: 'auxiliaries waiting', colour: '#b58900', style: 'line' },
      { label: 'primaries waiting', colour: '#c62828', style: 'line' },
    ],
    data: [
      counts.map(({ atMs }) => minutes(atMs)),
      counts.map(({ inFlight }) => inFlight),
      counts.map(({ waiting: many }) => many),
      counts.map(({ atMs }) => waiting(atMs)),
    ],
  }
}

/** The fragment of a primary's story. */
export const storyId = (policy: string, callId: string): string =>
  `story-${policy}-${callId.replaceAll('/', '-')}`

/** The wait of each primary by its time of arrival, under several policies. */
export const waitsOverTime = (runs: ReadonlyArray<readonly [string, Run]>, linked: string): PlotData => {
  const spans = runs.map(([policy, run]) => ({ policy, spans: primarySpans(run, run.scenario.durationMs) }))
  const times = [...new Set(spans.flatMap(({ spans: all }) => all.map(({ submittedAtMs }) => submittedAtMs)))]
  times.sort((one, other) => one - other)
  const columns = spans.map(({ policy, spans: all }) => {
    const at = new Map(all.map((span) => [span.submittedAtMs, span]))
    return {
      values: times.map((atMs) => {
        const span = at.get(atMs)
        return span === undefined ? null : seconds((span.acceptedAtMs ?? span.endedAtMs) - span.submittedAtMs)
      }),
      links: times.map((atMs) => {
        const span = at.get(atMs)
        return span === undefined || policy !== linked ? null : storyId(policy, span.id)
      }),
    }
  })
  return {
    title: 'How long each primary waited, by when it came (a point of ours leads to its story)',
    x: 'minutes',
    y: 'log-seconds',
    series: spans.map(({ policy }) => ({ label: policy, colour: colourOf(policy), style: 'points' })),
    data: [times.map(minutes), ...columns.map(({ values }) => values)],
    links: columns.map(({ links }) => links),
  }
}

/** Share of calls accepted within a time, one line per policy. */
export const waitsPlot = (
  runs: ReadonlyArray<readonly [string, Run]>,
  lane: 'primary' | 'auxiliary',
): PlotData => {
  const waits = runs.map(([, run]) => (lane === 'primary' ? primaryWaits(run) : auxiliaryWaits(run)))
  const most = Math.max(10, ...waits.map((sorted) => seconds(sorted.at(-1) ?? 0)))
  const steps = 160
  const xs = Array.from(
    { length: steps + 1 },
    (_, step) => leastSeconds * (most / leastSeconds) ** (step / steps),
  )
  return {
    title: `Share of ${lane === 'primary' ? 'primaries' : 'auxiliaries'} accepted within a time`,
    x: 'log-seconds',
    y: 'share',
    series: runs.map(([policy]) => ({ label: policy, colour: colourOf(policy), style: 'line' })),
    data: [
      xs.map((x) => Math.round(x * 1_000) / 1_000),
      ...waits.map((sorted) => {
        let within = 0
        return xs.map((x) => {
          while (within < sorted.length && seconds(sorted[within]!) <= x * 1.000_001) within += 1
          return sorted.length === 0 ? null : Math.round((within / sorted.length) * 1_000) / 1_000
        })
      }),
    ],
  }
}
