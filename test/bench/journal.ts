/**
 * `npm run bench:journal`: what durability costs, beside the raw floor in the same run. `--json`
 * prints one line per case; `--only <case>` runs one; `--small` runs all of them tiny.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cases, fullSizes, missingForBullMq, type Sizes } from './journal-cases.ts'
import type { Measured } from './journal-measure.ts'

const { values } = parseArgs({
  options: { json: { type: 'boolean' }, only: { type: 'string' }, small: { type: 'boolean' } },
})
const smallSizes: Sizes = { calls: 400, deep: 500, events: 3_000 }

const shown = (us: number): string =>
  us >= 1e6 ? `${(us / 1e6).toFixed(2)} s` : us >= 1e3 ? `${(us / 1e3).toFixed(2)} ms` : `${us.toFixed(1)} us`

const line = ({ case: name, us, baseline, ratio, bound }: Measured): string => {
  const beside =
    baseline === null || ratio === null ? '' : `  beside ${shown(baseline)}: ${ratio.toFixed(2)}x`
  return `${name.padEnd(64)} ${shown(us).padStart(10)}${beside}${bound === null ? '' : `  (${bound.text}: ${bound.held ? 'yes' : 'NO'})`}`
}

const folder = mkdtempSync(join(tmpdir(), 'rightofway-bench-'))
let held = true
try {
  for (const [name, run] of Object.entries(cases)) {
    if (values.only !== undefined && values.only !== name) continue
    for (const one of await run(folder, values.small === true ? smallSizes : fullSizes)) {
      held &&= one.bound?.held ?? true
      const { case: of, us, baseline, ratio } = one
      console.log(
        values.json === true
          ? JSON.stringify({ bench: 'journal', case: of, us, baseline, ratio })
          : line(one),
      )
    }
  }
  const missing = missingForBullMq()
  if (values.json !== true && missing !== null) console.log(`BullMQ was not measured: ${missing} is missing`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (!held && values.small !== true) process.exitCode = 1
