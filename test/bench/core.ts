/**
 * `npm run bench:core`: the cost of admitting and settling a call, at any backlog, beside other libraries.
 */
import { parseArgs } from 'node:util'
import { type Measured, measure } from './core-measure.ts'
import { bytesPerWaitingCall } from './heap-use.ts'

const shownUs = (us: number): string => (us < 100 ? us.toFixed(2) : us.toFixed(0)).padStart(10)

const table = (measured: ReadonlyArray<Measured>, bytes: number): string => {
  const lines = measured.map(({ name, backlog, us, ratio }) =>
    [name.padEnd(26), String(backlog).padStart(8), shownUs(us), `${ratio.toFixed(2)}x`.padStart(9)].join(
      '  ',
    ),
  )
  const head = [
    'scheduler'.padEnd(26),
    'backlog'.padStart(8),
    'CPU us/job'.padStart(10),
    'of bare'.padStart(9),
  ].join('  ')
  return [head, ...lines, '', `memory per waiting call: ${Math.round(bytes)} bytes`].join('\n')
}

/** One line per case; `baseline` is the bare actor of the same run, processor microseconds per job. */
const lines = (measured: ReadonlyArray<Measured>, bytes: number): string =>
  [
    ...measured.map(({ name, backlog, us, baselineUs, ratio }) => ({
      bench: 'core',
      case: `${name}, backlog ${backlog}`,
      us,
      baseline: baselineUs,
      ratio,
    })),
    { bench: 'core', case: 'bytes per waiting call', us: null, baseline: 1_024, ratio: bytes / 1_024 },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n')

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const bytes = bytesPerWaitingCall(100_000)
const measured = await measure({ backlogs: [10, 1_000, 100_000], rounds: 5, scale: 1 })
console.log((values.json ? lines : table)(measured, bytes))
