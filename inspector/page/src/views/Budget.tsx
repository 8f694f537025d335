import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { scopeStatus } from '../../../../src/host/scope-facts.ts'
import { useInspection } from '../hooks/inspection.ts'
import { useSize } from '../hooks/size.ts'
import { type Palette, usePalette } from '../hooks/theme.ts'
import { type Column, type Sample, type Series, sampleOf } from '../model/series.ts'
import { clockText, countText, shortCount } from '../model/words.ts'
import { Empty } from './parts.tsx'

interface Line {
  readonly column: Column
  readonly title: string
  readonly colour: keyof Palette
  readonly dash?: number[]
  readonly fill?: boolean
  readonly isStep?: boolean
}

const tokenLines: ReadonlyArray<Line> = [
  { column: 'recentTokens', title: 'input tokens, last minute', colour: 'primary', fill: true },
  { column: 'limitTokens', title: 'limit', colour: 'bad', isStep: true },
  { column: 'ceilingHigh', title: 'ceiling below', colour: 'warn', dash: [6, 4], isStep: true },
  { column: 'ceilingLow', title: 'ceiling at least', colour: 'good', dash: [2, 3], isStep: true },
]

const callLines: ReadonlyArray<Line> = [
  { column: 'auxiliaryWaiting', title: 'auxiliaries waiting', colour: 'auxiliary', fill: true, isStep: true },
  { column: 'primaryWaiting', title: 'primaries waiting', colour: 'primary', isStep: true },
  { column: 'inFlight', title: 'in flight', colour: 'good', isStep: true },
]

const Budget = () => {
  const { track, moment, place, index } = useInspection()
  if (track === null || moment === null || track.series.at.length === 0)
    return (
      <Empty title="Nothing was spent yet">Tokens and ceilings show here once calls are dispatched.</Empty>
    )
  // While the page follows, tokens leave the last minute also without events.
  const now = place.position === null ? sampleOf(scopeStatus(track.contextAt(index), moment)) : null
  return (
    <section className="budget" aria-label="Budget">
      <Plot
        title="Tokens"
        note="shaded: quiet windows"
        lines={tokenLines}
        series={track.series}
        moment={moment}
        now={now}
      />
      <Plot
        title="Calls"
        note="shaded: gate closed"
        lines={callLines}
        series={track.series}
        moment={moment}
        now={now}
      />
    </section>
  )
}

interface PlotProps {
  readonly title: string
  readonly note: string
  readonly lines: ReadonlyArray<Line>
  readonly series: Series
  readonly moment: number
  /** The sample of the present, after the newest event; null when the shown moment is an event's. */
  readonly now: Sample | null
}

const dataOf = ({
  lines,
  series,
  moment,
  now,
}: Pick<PlotProps, 'lines' | 'series' | 'moment' | 'now'>): uPlot.AlignedData => {
  const count = series.countUntil(moment)
  const hasNow = now !== null && moment > (series.at[count - 1] ?? 0)
  const cut = <A,>(values: ReadonlyArray<A>, value: A | undefined): A[] =>
    hasNow ? [...values.slice(0, count), value as A] : values.slice(0, count)
  return [
    cut(series.at, moment),
    ...lines.map(({ column }) => cut(series.values[column], now?.[column])),
  ] as uPlot.AlignedData
}

/** The shaded states: quiet under the tokens, a closed gate under the calls. */
const isShaded = (lines: ReadonlyArray<Line>, state: string): boolean =>
  lines === tokenLines
    ? state === 'quietRamp.quiet'
    : state === 'primaryPending' || state.startsWith('quietRamp')

const shade = (props: { readonly current: PlotProps }, palette: Palette) => (plot: uPlot) => {
  const { series, moment, lines } = props.current
  const { left, top, width, height } = plot.bbox
  const { ctx } = plot
  ctx.save()
  ctx.globalAlpha = 0.16
  ctx.fillStyle = palette[lines === tokenLines ? 'state-quiet' : 'primary']
  for (const { state, from, to } of series.bands) {
    if (from > moment || !isShaded(lines, state)) continue
    const start = Math.max(left, plot.valToPos(from, 'x', true))
    const end = Math.min(left + width, plot.valToPos(Math.min(to ?? moment, moment), 'x', true))
    if (end >= left && start <= left + width) ctx.fillRect(start, top, Math.max(1, end - start), height)
  }
  ctx.restore()
}

const withAlpha = (colour: string, alpha: number): string =>
  colour.replace(/^rgb\((.*)\)$/, (_, parts: string) => `rgb(${parts.replaceAll(',', ' ')} / ${alpha})`)

const optionsOf = (
  props: { readonly current: PlotProps },
  palette: Palette,
  size: { readonly width: number; readonly height: number },
): uPlot.Options => {
  const stepped = uPlot.paths.stepped?.({ align: 1 })
  const axis = {
    stroke: palette.muted,
    grid: { stroke: palette.line, width: 1 },
    ticks: { stroke: palette.line, width: 1 },
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
  }
  return {
    ...size,
    ms: 1,
    cursor: { sync: { key: 'budget' }, points: { size: 6 } },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.12)] } },
    axes: [
      { ...axis, space: 90, values: (_plot, values) => values.map((at) => clockText(at).slice(0, 8)) },
      { ...axis, size: 58, values: (_plot, values) => values.map(shortCount) },
    ],
    series: [
      { label: 'at', value: (_plot: uPlot, at: number | null) => (at === null ? '–' : clockText(at)) },
      ...props.current.lines.map(({ title, colour, dash, fill, isStep }) => ({
        label: title,
        stroke: palette[colour],
        width: 1.6,
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value === null ? '–' : countText(value)),
        ...(dash === undefined ? {} : { dash }),
        ...(fill === true ? { fill: withAlpha(palette[colour], 0.14) } : {}),
        ...(isStep === true && stepped !== undefined ? { paths: stepped } : {}),
      })),
    ],
    hooks: { drawClear: [shade(props, palette)] },
  }
}

const legendHeight = 34

const Plot = (props: PlotProps) => {
  const box = useRef<HTMLDivElement>(null)
  const { width, height } = useSize(box)
  const palette = usePalette()
  const plot = useRef<uPlot | null>(null)
  const latest = useRef(props)
  latest.current = props
  const isThere = width > 0 && height > legendHeight
  useEffect(() => {
    if (box.current === null || !isThere) return
    const size = { width: box.current.clientWidth, height: box.current.clientHeight - legendHeight }
    const made = new uPlot(optionsOf(latest, palette, size), dataOf(latest.current), box.current)
    plot.current = made
    return () => {
      made.destroy()
      plot.current = null
    }
  }, [isThere, palette])
  useEffect(() => {
    if (isThere) plot.current?.setSize({ width, height: height - legendHeight })
  }, [isThere, width, height])
  useEffect(() => {
    const data = dataOf(props)
    plot.current?.setData(data)
    // Shows the newest values while the pointer is elsewhere.
    if (plot.current?.cursor.idx == null) plot.current?.setLegend({ idx: data[0].length - 1 })
  })
  const { title, note, series, moment, now } = props
  const newest = series.countUntil(moment) - 1
  const spoken = props.lines
    .map(
      (line) =>
        `${line.title} ${(now === null ? series.values[line.column][newest] : now[line.column]) ?? 'unknown'}`,
    )
    .join(', ')
  return (
    <figure className="panel plot" aria-label={`${title}: ${spoken}`}>
      <figcaption>
        {title} <span className="muted">{note}</span>
      </figcaption>
      <div className="plot-box" ref={box} />
    </figure>
  )
}

export default Budget
