/**
 * Draws the plots of docs/planner.md again: `node scripts/planner-plots.ts`. Each shows one scenario under the adaptive
 * preset: the tokens of the last minute, the provider's ceiling, and the primaries from submission to acceptance.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adaptivePolicy } from '../machines/index.ts'
import { rightofway } from '../src/simulation/arena/contenders.ts'
import { loadScenario } from '../src/simulation/arena/load.ts'
import { primarySpans, type TokenPoint, tokenSeries } from '../src/simulation/arena/report/series.ts'
import { runPolicy } from '../src/simulation/arena/run.ts'

export const plotted = ['token-bucket-silent', 'seed-incident', 'sliding-window'] as const
const root = join(import.meta.dirname, '..')
export const plotPath = (name: string): string => join(root, 'docs/planner', `${name}.svg`)

const [width, height, left, bottom] = [720, 220, 48, 24] as const
/** One point in five: a small file. */
const every = 5

const line = (points: ReadonlyArray<readonly [number, number]>): string =>
  points.map(([x, y]) => `${x.toFixed(0)},${y.toFixed(0)}`).join(' ')

export const plotOf = (name: string): string => {
  const { scenario } = loadScenario(join(root, 'src/simulation/scenarios', `${name}.json`), null)
  const run = runPolicy(scenario, rightofway(adaptivePolicy))
  const series = tokenSeries(run).filter((_, index) => index % every === 0)
  const { durationMs } = scenario
  const finite = series.flatMap(({ usedTokens, ceilingTokens }) => [usedTokens, ceilingTokens])
  const most = Math.max(...finite.filter(Number.isFinite)) * 1.1
  const x = (atMs: number): number => left + (atMs / durationMs) * (width - left - 8)
  const y = (tokens: number): number =>
    height - bottom - (Math.min(tokens, most) / most) * (height - bottom - 20)
  const drawn = (of: (point: TokenPoint) => number) =>
    line(series.map((point) => [x(point.atMs), y(of(point))] as const))
  const spans = primarySpans(run, durationMs).map(({ submittedAtMs, acceptedAtMs, inputTokens }) => {
    const [from, to] = [x(submittedAtMs), x(acceptedAtMs ?? durationMs)]
    return `<rect x="${from.toFixed(1)}" y="6" width="${Math.max(1.5, to - from).toFixed(1)}" height="8" fill="#c2410c"><title>${inputTokens} tokens</title></rect>`
  })
  const minutes = Array.from({ length: 6 }, (_, index) => (durationMs * index) / 5)
  const labels = minutes.map(
    (atMs) =>
      `<text x="${x(atMs).toFixed(0)}" y="${height - 8}" text-anchor="middle">${Math.round(atMs / 60_000)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui,sans-serif" font-size="11" fill="#59636e">
<title>${name}: input tokens of the last minute, the ceiling, and primaries that wait</title><rect width="${width}" height="${height}" fill="#fff"/>
<text x="2" y="${(y(most / 1.1) + 4).toFixed(0)}">${Math.round(most / 1_100)}k</text><text x="2" y="${height - bottom}">0</text>
<polyline fill="none" stroke="#9aa4af" points="${drawn(({ ceilingTokens }) => ceilingTokens)}"/>
<polyline fill="none" stroke="#1d6fb8" stroke-width="1.5" points="${drawn(({ usedTokens }) => usedTokens)}"/>
${spans.join('')}
${labels.join('')}
</svg>
`
}

if (process.argv[1] === import.meta.filename) {
  mkdirSync(join(root, 'docs/planner'), { recursive: true })
  for (const name of plotted) writeFileSync(plotPath(name), plotOf(name))
}
