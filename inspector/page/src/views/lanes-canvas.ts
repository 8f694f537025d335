/**
 * Draws calls as bars and finds the bar under a point. It uses a canvas, because there may be tens of
 * thousands.
 */
import type { Lane } from '../../../../machines/index.ts'
import type { Palette } from '../hooks/theme.ts'
import type { CallBar, CallEnd, Phase } from '../model/calls.ts'
import type { Track } from '../model/track.ts'
import { clockText, stateTokens } from '../model/words.ts'

/** The visible part of the history. */
export interface View {
  /** Epoch milliseconds at the left and the right edge. */
  readonly from: number
  readonly to: number
  /** Pixels that the rows are scrolled up by. */
  readonly top: number
}

export interface Scene {
  readonly track: Track
  readonly view: View
  /** End of the history, epoch milliseconds. */
  readonly moment: number
  readonly palette: Palette
  readonly width: number
  readonly height: number
  readonly chosen: string | null
  readonly font: string
}

const axisHeight = 24
const bandHeight = 9
const laneHead = 22
const laneGap = 10
const lanes: ReadonlyArray<Lane> = ['primary', 'auxiliary']
export const rowsTop = axisHeight + bandHeight + 6

/** The row height that fills the space, within readable limits. */
const rowHeightOf = (track: Track, height: number): number => {
  const rows = track.calls.rows('primary') + track.calls.rows('auxiliary')
  const room = height - rowsTop - 2 * laneHead - laneGap
  return Math.max(4, Math.min(16, Math.floor(room / Math.max(1, rows))))
}

/** Height of all rows together, pixels. */
export const contentHeight = (track: Track, height: number): number =>
  rowsTop +
  2 * laneHead +
  laneGap +
  (track.calls.rows('primary') + track.calls.rows('auxiliary')) * rowHeightOf(track, height)

const laneTops = (track: Track, rowHeight: number, top: number): Readonly<Record<Lane, number>> => {
  const primary = rowsTop + laneHead - top
  return { primary, auxiliary: primary + track.calls.rows('primary') * rowHeight + laneGap + laneHead }
}

export const phaseAlpha: Readonly<Record<Phase, number>> = { waiting: 0.26, admitted: 0.6, streaming: 1 }

export const endTone = (end: CallEnd): 'good' | 'bad' | 'warn' | 'off' => {
  switch (end) {
    case 'completed':
      return 'good'
    case 'failed':
    case 'timedOut':
    case 'expired':
    case 'rejected':
      return 'bad'
    case 'throttled':
      return 'warn'
    default:
      return 'off'
  }
}

/** Narrower bars have no cap: it would hide the bar. */
const minCappedWidth = 9

/** Rectangles of one colour: x, y, width, height, and so on. */
type Bucket = number[]

interface Sorted {
  readonly spans: Map<string, Bucket>
  readonly ends: Map<string, Bucket>
  readonly chosen: Bucket
}

const into = (buckets: Map<string, Bucket>, key: string, ...rectangle: number[]): void => {
  const bucket = buckets.get(key)
  if (bucket === undefined) buckets.set(key, rectangle)
  else bucket.push(...rectangle)
}

const sortBars = ({ track, view, moment, width, height, chosen }: Scene): Sorted => {
  const rowHeight = rowHeightOf(track, height)
  const tops = laneTops(track, rowHeight, view.top)
  const scale = width / (view.to - view.from)
  const x = (at: number) => (at - view.from) * scale
  const sorted: Sorted = { spans: new Map(), ends: new Map(), chosen: [] }
  // How far each row is painted: later bars on the same pixels are skipped.
  const painted = { primary: [] as number[], auxiliary: [] as number[] }
  const thickness = Math.max(2, rowHeight - (rowHeight > 7 ? 3 : 1))
  for (const bar of track.calls.bars) {
    if (bar.submittedAt > moment || bar.submittedAt > view.to) break
    const last = bar.endedAt === null || bar.endedAt > moment ? moment : bar.endedAt
    const { lane } = bar.call
    const y = tops[lane] + bar.row * rowHeight
    if (last < view.from || y > height || y + rowHeight < rowsTop) continue
    const isChosen = bar.call.id === chosen
    const right = x(last)
    if (!isChosen && right <= (painted[lane][bar.row] ?? -1)) continue
    for (const { phase, from, to } of bar.spans) {
      if (from > moment || from > view.to) break
      const left = Math.max(0, x(from))
      const end = Math.min(width, x(Math.min(to ?? moment, moment)))
      if (end >= 0) into(sorted.spans, `${lane} ${phase}`, left, y, Math.max(1, end - left), thickness)
    }
    const hasRoom = right - x(bar.submittedAt) >= minCappedWidth
    if (hasRoom && bar.end !== null && bar.endedAt !== null && bar.endedAt <= moment && right <= width)
      into(sorted.ends, endTone(bar.end), right - 2.5, y, 2.5, thickness)
    if (isChosen) {
      const left = x(bar.submittedAt)
      sorted.chosen.push(left - 2, y - 2, Math.max(4, right - left + 4), thickness + 4)
    }
    painted[lane][bar.row] = Math.ceil(right)
  }
  return sorted
}

const fillAll = (pen: CanvasRenderingContext2D, bucket: Bucket): void => {
  for (let index = 0; index < bucket.length; index += 4) {
    pen.fillRect(
      bucket[index] as number,
      bucket[index + 1] as number,
      bucket[index + 2] as number,
      bucket[index + 3] as number,
    )
  }
}

const niceSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
  [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  [1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  [1, 2, 4, 6, 12, 24].map((hours) => hours * 3_600_000),
)

const drawAxis = (pen: CanvasRenderingContext2D, { view, width, height, palette, font }: Scene): void => {
  const spanMs = view.to - view.from
  const step = niceSteps.find((one) => (one / spanMs) * width >= 96) ?? 24 * 3_600_000
  pen.font = `11px ${font}`
  pen.textBaseline = 'middle'
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round(((at - view.from) / spanMs) * width) + 0.5
    pen.fillStyle = palette.line
    pen.fillRect(x, axisHeight - 6, 1, height)
    pen.fillStyle = palette.muted
    pen.fillText(step < 1_000 ? clockText(at).slice(3) : clockText(at).slice(0, 8), x + 4, axisHeight / 2)
  }
}

const drawBands = (pen: CanvasRenderingContext2D, { track, view, moment, palette, width }: Scene): void => {
  const scale = width / (view.to - view.from)
  for (const { state, from, to } of track.series.bands) {
    if (from > moment || from > view.to) break
    const left = Math.max(0, (from - view.from) * scale)
    const right = Math.min(width, (Math.min(to ?? moment, moment) - view.from) * scale)
    if (right < 0) continue
    pen.fillStyle = palette[stateTokens[state]]
    pen.fillRect(left, axisHeight, Math.max(0.5, right - left), bandHeight)
  }
}

const drawHeads = (pen: CanvasRenderingContext2D, scene: Scene): void => {
  const { track, view, palette, height, width, font } = scene
  const tops = laneTops(track, rowHeightOf(track, height), view.top)
  pen.font = `600 11px ${font}`
  pen.textBaseline = 'middle'
  for (const lane of lanes) {
    const y = tops[lane] - laneHead
    pen.fillStyle = palette.line
    pen.fillRect(0, y, width, 1)
    pen.fillStyle = palette[lane]
    pen.fillText(lane, 8, y + laneHead / 2 + 1)
  }
}

export const drawLanes = (pen: CanvasRenderingContext2D, scene: Scene): void => {
  const { width, height, palette, view, moment } = scene
  pen.clearRect(0, 0, width, height)
  drawAxis(pen, scene)
  pen.save()
  pen.beginPath()
  pen.rect(0, rowsTop, width, height - rowsTop)
  pen.clip()
  drawHeads(pen, scene)
  const { spans, ends, chosen } = sortBars(scene)
  for (const [key, bucket] of spans) {
    const [lane, phase] = key.split(' ') as [Lane, Phase]
    pen.globalAlpha = phaseAlpha[phase]
    pen.fillStyle = palette[lane]
    fillAll(pen, bucket)
  }
  pen.globalAlpha = 1
  for (const [tone, bucket] of ends) {
    pen.fillStyle = palette[tone as 'good']
    fillAll(pen, bucket)
  }
  const [x, y, w, h] = chosen
  if (x !== undefined && y !== undefined && w !== undefined && h !== undefined) {
    pen.strokeStyle = palette.text
    pen.lineWidth = 1.5
    pen.strokeRect(x, y, w, h)
  }
  pen.restore()
  drawBands(pen, scene)
  const now = ((moment - view.from) / (view.to - view.from)) * width
  if (now >= 0 && now <= width) {
    pen.fillStyle = palette.text
    pen.fillRect(Math.round(now), axisHeight, 1, height)
  }
}

/** The call whose bar is at a point, or null. */
export const barAt = (scene: Scene, x: number, y: number): CallBar | null => {
  const { track, view, width, height, moment } = scene
  if (y < rowsTop) return null
  const rowHeight = rowHeightOf(track, height)
  const tops = laneTops(track, rowHeight, view.top)
  const msPerPixel = (view.to - view.from) / width
  const at = view.from + x * msPerPixel
  const slackMs = 3 * msPerPixel
  return (
    track.calls.bars.findLast(({ call, row, submittedAt, endedAt }) => {
      const top = tops[call.lane] + row * rowHeight
      if (y < top || y >= top + rowHeight || submittedAt > moment) return false
      return submittedAt - slackMs <= at && at <= Math.min(endedAt ?? moment, moment) + slackMs
    }) ?? null
  )
}

/** Zooms by a factor around a moment that keeps its place. */
export const zoomed = (view: View, factor: number, around: number): View => {
  const spanMs = Math.max(20, Math.min(14 * 24 * 3_600_000, (view.to - view.from) * factor))
  const share = (around - view.from) / (view.to - view.from)
  const from = around - spanMs * share
  return { ...view, from, to: from + spanMs }
}
