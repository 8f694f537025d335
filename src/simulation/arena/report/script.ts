/** The page's own script: it gives each plot's data to uPlot. Plain JavaScript of the browser. */
export const script = `
const plots = JSON.parse(document.getElementById('plots').textContent)
const ink = getComputedStyle(document.documentElement).getPropertyValue('--soft').trim()
const grid = getComputedStyle(document.documentElement).getPropertyValue('--grid').trim()
const short = (value) =>
  value >= 1e6 ? +(value / 1e6).toFixed(2) + 'M' : value >= 1e3 ? +(value / 1e3).toFixed(1) + 'k' : String(value)
const time = (value) => (value >= 120 ? +(value / 60).toFixed(1) + ' min' : value + ' s')
const show = {
  minutes: (value) => value + ' min',
  'log-seconds': (value) => (value <= 0.1 ? '0 s' : time(value)),
  tokens: short,
  calls: String,
  share: (value) => Math.round(value * 100) + ' %',
}
const decades = (values) => values.map((value) => {
  const power = Math.log10(value)
  return Math.abs(power - Math.round(power)) < 1e-9 ? show['log-seconds'](value) : ''
})
const axis = (kind, size) => ({
  stroke: ink,
  grid: { stroke: grid, width: 1 },
  ticks: { stroke: grid, width: 1 },
  size,
  values: (_, values) => (kind === 'log-seconds' ? decades(values) : values.map(show[kind])),
})
const scale = (kind) =>
  kind === 'log-seconds' ? { time: false, distr: 3 } : kind === 'share' ? { range: [0, 1.02] } : { time: false }
const draw = (place) => {
  const plot = plots[place.dataset.plot]
  const follow = (chart) => {
    chart.over.addEventListener('click', () => {
      const links = plot.links.map((column) => column[chart.cursor.idx]).filter((link) => link !== null)
      if (links.length > 0) location.hash = links[0]
    })
  }
  const options = {
    width: place.clientWidth,
    height: 240,
    scales: { x: scale(plot.x), y: scale(plot.y) },
    axes: [axis(plot.x, 34), axis(plot.y, 62)],
    legend: { live: false },
    series: [
      {},
      ...plot.series.map(({ label, colour, style }) => ({
        label,
        stroke: colour,
        width: style === 'points' ? 0 : 1.5,
        ...(style === 'area' ? { fill: colour + '55' } : {}),
        ...(style === 'points' ? { paths: () => null, points: { show: true, size: 6, fill: colour } } : { points: { show: false } }),
        spanGaps: false,
      })),
    ],
    hooks: plot.links === undefined ? {} : { ready: [follow] },
  }
  const chart = new uPlot(options, plot.data, place)
  addEventListener('resize', () => chart.setSize({ width: place.clientWidth, height: 240 }))
}
const drawAll = (within) => {
  for (const place of within.querySelectorAll('[data-plot]:empty')) if (place.checkVisibility()) draw(place)
}
const openStory = () => {
  const story = document.getElementById(location.hash.slice(1))
  if (story === null) return
  for (let node = story; node !== null; node = node.parentElement) if (node.tagName === 'DETAILS') node.open = true
  story.scrollIntoView()
}
addEventListener('hashchange', openStory)
// Plots in a closed part are drawn when it opens.
document.addEventListener('toggle', (event) => drawAll(event.target), true)
drawAll(document)
openStory()
`
