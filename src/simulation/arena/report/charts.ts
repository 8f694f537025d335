/** The three plots of a report. */

import { auxiliaryWaits, primaryWaits } from '../metrics.ts'
import type { Run } from '../run.ts'
import { auxiliaryCounts, primarySpans, tokenSeries } from './series.ts'
import {
  area,
  axes,
  bar,
  type Frame,
  figure,
  frame,
  line,
  linear,
  niceTicks,
  type Scale,
  type Tick,
} from './svg.ts'
import { duration, tokens } from './words.ts'

const minuteMs = 60_000

const timeAxis = (durationMs: number, { left, right, width }: Frame) => {
  const minutes = durationMs / minuteMs
  const unit = minutes < 2 ? 's' : 'min'
  const unitMs = minutes < 2 ? 1_000 : minuteMs
  const ticks = niceTicks(durationMs / unitMs, (value) => `${value} ${unit}`)
  return {
    scale: linear(0, durationMs, left, width - right),
    ticks: ticks.map(({ at, text }) => ({ at: at * unitMs, text })),
  }
}

const highest = (values: ReadonlyArray<number>): number =>
  values.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, value) : most), 0)

/** Input tokens accepted in the trailing minute, and what that minute could have held. */
export const tokensChart = (run: Run, policy: string, mostTokens: number): string => {
  const points = tokenSeries(run)
  const x = timeAxis(run.scenario.durationMs, frame)
  const y = linear(0, mostTokens, frame.height - frame.bottom, frame.top)
  const used = points.map(({ atMs, usedTokens }) => ({ x: x.scale(atMs), y: y(usedTokens) }))
  const bounded = points.filter(({ ceilingTokens }) => Number.isFinite(ceilingTokens))
  const ceiling = bounded.map(({ atMs, ceilingTokens }) => ({
    x: x.scale(atMs),
    y: y(Math.min(ceilingTokens, mostTokens)),
  }))
  return figure(
    frame,
    `${policy}: input tokens per minute against the ceiling`,
    axes(frame, x, { scale: y, ticks: niceTicks(mostTokens, tokens) }),
    area(used, frame.height - frame.bottom, 'used'),
    line(ceiling, 'ceiling'),
  )
}

/** The scale that the token plots of all policies share. */
export const mostTokensOf = (runs: ReadonlyArray<Run>): number =>
  Math.max(
    1_000,
    ...runs.map((run) =>
      highest(tokenSeries(run).flatMap(({ usedTokens, ceilingTokens }) => [usedTokens, ceilingTokens])),
    ),
  )

/** Rows that are drawn one by one; more primaries share rows in turn. */
const mostRows = 24

/** Primaries as bars (waiting, then running), auxiliaries as counts (waiting, running). */
export const lanesChart = (run: Run, policy: string): string => {
  const { durationMs } = run.scenario
  const x = timeAxis(durationMs, frame)
  const spans = primarySpans(run, durationMs)
  const rows = Math.max(1, Math.min(spans.length, mostRows))
  const split = frame.top + 90
  const rowHeight = 84 / rows
  const bars = spans.map(
    ({ id, inputTokens, submittedAtMs, acceptedAtMs, endedAtMs, refusals, failed }, index) => {
      const y = frame.top + (index % rows) * rowHeight
      const height = Math.max(1, rowHeight * 0.8)
      const waitedUntil = acceptedAtMs ?? endedAtMs
      const [from, to, end] = [x.scale(submittedAtMs), x.scale(waitedUntil), x.scale(endedAtMs)]
      const about = `${id}: ${tokens(inputTokens)} tokens, submitted at ${duration(submittedAtMs)}, ${refusals} refusals`
      const waited = duration(waitedUntil - submittedAtMs)
      if (acceptedAtMs === null) {
        const fate = failed ? 'given up' : 'still waiting'
        return bar(from, y, to - from, height, 'lost', `${about}, ${fate} after ${waited}`)
      }
      return (
        bar(from, y, to - from, height, 'waiting', `${about}, waited ${waited}`) +
        bar(to, y, end - to, height, 'primary', `${about}, accepted after ${waited}`)
      )
    },
  )
  const counts = auxiliaryCounts(run)
  const most = Math.max(1, highest(counts.flatMap(({ waiting, inFlight }) => [waiting, inFlight])))
  const foot = frame.height - frame.bottom
  const y = linear(0, most, foot, split + 6)
  const ticks: ReadonlyArray<Tick> = [
    { at: 0, text: '0' },
    { at: most, text: String(most) },
  ]
  return figure(
    frame,
    `${policy}: lanes over time`,
    axes(frame, x, { scale: y, ticks }),
    `<text class="tick" x="${frame.left - 6}" y="${frame.top + 44}" text-anchor="end">primaries</text>`,
    ...bars,
    line(
      counts.map(({ atMs, waiting }) => ({ x: x.scale(atMs), y: y(waiting) })),
      'waits',
    ),
    area(
      counts.map(({ atMs, inFlight }) => ({ x: x.scale(atMs), y: y(inFlight) })),
      foot,
      'flying',
    ),
  )
}

const waitTicks: ReadonlyArray<Tick> = [
  { at: 0, text: '0' },
  ...[1, 10, 60, 600, 3_600].map((seconds) => ({
    at: seconds * 1_000,
    text: seconds < 60 ? `${seconds} s` : `${seconds / 60} min`,
  })),
]

/** Logarithmic above a second, so that nothing and hours stand on one axis. */
const waitScale = (mostMs: number, { left, right, width }: Frame): Scale => {
  const linearised = (ms: number): number => Math.log10(1 + ms / 1_000)
  const scale = linear(0, linearised(mostMs), left, width - right)
  return (ms) => scale(linearised(ms))
}

/** Share of calls that waited at most so long, one line per policy. */
export const waitsChart = (runs: ReadonlyMap<string, Run>, lane: 'primary' | 'auxiliary'): string => {
  const waits = [...runs].map(([policy, run]) => ({
    policy,
    sorted: lane === 'primary' ? primaryWaits(run) : auxiliaryWaits(run),
  }))
  const most = Math.max(10_000, ...waits.map(({ sorted }) => sorted.at(-1) ?? 0))
  const scale = waitScale(most, frame)
  const y = linear(0, 1, frame.height - frame.bottom, frame.top)
  const ticks = waitTicks.filter(({ at }) => at <= most)
  const lines = waits.map(({ sorted }, index) => {
    const every = Math.max(1, Math.floor(sorted.length / 400))
    const kept = sorted
      .map((wait, rank) => ({ x: scale(wait), y: y((rank + 1) / sorted.length) }))
      .filter((_, rank) => rank % every === 0 || rank === sorted.length - 1)
    const start = { x: scale(0), y: y(0) }
    return kept.length === 0
      ? ''
      : line([start, ...kept, { x: scale(most), y: y(1) }], `policy-${index}`, true)
  })
  const shares = [0, 0.25, 0.5, 0.75, 1].map((at) => ({ at, text: `${at * 100} %` }))
  return figure(
    frame,
    `Share of ${lane} calls accepted within a time, by policy`,
    axes(frame, { scale, ticks }, { scale: y, ticks: shares }),
    ...lines,
  )
}
