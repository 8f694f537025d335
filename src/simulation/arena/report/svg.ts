/** Just enough SVG for plots: a frame with axes, lines and text. Colours come from the page's style. */

export const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

export interface Frame {
  readonly width: number
  readonly height: number
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

export const frame: Frame = { width: 720, height: 220, left: 64, right: 24, top: 10, bottom: 30 }

/** Maps a value onto pixels. */
export type Scale = (value: number) => number

export const linear = (from: number, to: number, start: number, end: number): Scale => {
  const span = to - from || 1
  return (value) => start + ((value - from) / span) * (end - start)
}

const round = (value: number): string => (Math.round(value * 10) / 10).toString()

export interface Point {
  readonly x: number
  readonly y: number
}

/** A path through points; steps hold a value until the next. */
export const path = (points: ReadonlyArray<Point>, steps = false): string =>
  points
    .map(({ x, y }, index) => {
      if (index === 0) return `M${round(x)} ${round(y)}`
      return steps ? `H${round(x)}V${round(y)}` : `L${round(x)} ${round(y)}`
    })
    .join('')

export const line = (points: ReadonlyArray<Point>, kind: string, steps = false): string =>
  `<path class="line ${kind}" d="${path(points, steps)}"/>`

export const area = (points: ReadonlyArray<Point>, baseY: number, kind: string): string => {
  const [first] = points
  const last = points.at(-1)
  if (first === undefined || last === undefined) return ''
  return `<path class="area ${kind}" d="${path(points)}L${round(last.x)} ${round(baseY)}L${round(first.x)} ${round(baseY)}Z"/>`
}

export const bar = (
  x: number,
  y: number,
  width: number,
  height: number,
  kind: string,
  title: string,
): string =>
  `<rect class="bar ${kind}" x="${round(x)}" y="${round(y)}" width="${round(Math.max(0.8, width))}" height="${round(height)}"><title>${escapeText(title)}</title></rect>`

export interface Tick {
  readonly at: number
  readonly text: string
}

/** At most six round numbers from 0. */
export const niceTicks = (most: number, name: (value: number) => string): ReadonlyArray<Tick> => {
  if (!(most > 0)) return [{ at: 0, text: name(0) }]
  const rough = most / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough)!
  const ticks: Tick[] = []
  for (let value = 0; value <= most * 1.001; value += step) ticks.push({ at: value, text: name(value) })
  return ticks
}

export const axes = (
  { width, height, left, right, top, bottom }: Frame,
  x: { readonly scale: Scale; readonly ticks: ReadonlyArray<Tick> },
  y: { readonly scale: Scale; readonly ticks: ReadonlyArray<Tick> },
): string => {
  const foot = height - bottom
  const horizontal = y.ticks.map(
    ({ at, text }) =>
      `<path class="grid" d="M${left} ${round(y.scale(at))}H${width - right}"/><text class="tick" x="${left - 6}" y="${round(y.scale(at) + 3.5)}" text-anchor="end">${escapeText(text)}</text>`,
  )
  const vertical = x.ticks.map(
    ({ at, text }) =>
      `<path class="grid" d="M${round(x.scale(at))} ${top}V${foot}"/><text class="tick" x="${round(x.scale(at))}" y="${foot + 16}" text-anchor="middle">${escapeText(text)}</text>`,
  )
  return horizontal.concat(vertical).join('')
}

/** A plot with a name that a screen reader says. */
export const figure = ({ width, height }: Frame, label: string, ...parts: ReadonlyArray<string>): string =>
  `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(label)}">${parts.join('')}</svg>`
