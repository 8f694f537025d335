/**
 * `npm run bench:journal`: what durability costs, beside the raw floor in the same run. `--json`
 * prints one line per case; `--only <case>` runs one; `--small` runs all of them tiny.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'
import { cases, fullSizes, type Sizes } from './journal-cases.ts'
import type { Measured } from './journal-measure.ts'

const { values } = parseArgs({
  options: { json: { type: 'boolean' }, only: { type: 'string' }, small: { type: 'boolean' } },
})
const smallSizes: Sizes = { calls: 400, deep: 500, events: 3_000 }

/** What a comparison with BullMQ would need and this machine does not have. */
const missing = (): ReadonlyArray<string> => {
  const paths = (process.env['PATH'] ?? '').split(delimiter)
  const hasRedis = paths.some((path) => existsSync(join(path, 'redis-server')))
  let hasBull = true
  try {
    createRequire(import.meta.url).resolve('bullmq')
  } catch {
    hasBull = false
  }
  return [...(hasRedis ? [] : ['redis-server']), ...(hasBull ? [] : ['bullmq'])]
}

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
  const without = missing()
  if (values.json !== true && without.length > 0) {
    console.log(`BullMQ was not measured: ${without.join(' and ')} missing`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (!held && values.small !== true) process.exitCode = 1
