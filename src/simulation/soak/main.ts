/**
 * `npm run simulate:soak -- --seeds 10000` simulates that many seeds and stops at the first that breaks an
 * invariant; at the end it prints what was met, and how often. `--seed 42` replays one and prints its hash; `--from 5000` begins there.
 */
import { parseArgs } from 'node:util'
import { type Coverage, coverageText, summed } from './coverage.ts'
import { replayCommand, soakSeed } from './seed.ts'

const usage = 'simulate:soak [--seeds <count>] [--from <first seed>] | --seed <seed>'

const whole = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new RangeError(`--${name} must be a whole number of at least ${least}, got ${text}; ${usage}`)
}

interface Range {
  readonly from: number
  readonly seeds: number
}

const rangeOf = (args: ReadonlyArray<string>): Range => {
  const { values } = parseArgs({
    args: [...args],
    options: { seeds: { type: 'string' }, from: { type: 'string' }, seed: { type: 'string' } },
  })
  if (values.seed !== undefined) return { from: whole('seed', values.seed, 0), seeds: 1 }
  return { from: whole('from', values.from ?? '1', 0), seeds: whole('seeds', values.seeds ?? '1000', 1) }
}

const soakAll = async ({ from, seeds }: Range): Promise<boolean> => {
  const begunMs = performance.now()
  const sums = { entries: 0, restarts: 0, dispatches: 0 }
  const coverages: Coverage[] = []
  for (let seed = from; seed < from + seeds; seed += 1) {
    try {
      const { hash, entries, restarts, dispatches, coverage } = await soakSeed(seed)
      coverages.push(coverage)
      sums.entries += entries
      sums.restarts += restarts
      sums.dispatches += dispatches
      if (seeds === 1) console.log(`seed ${seed}: hash ${hash}`)
      else if ((seed - from) % 500 === 499) console.log(`${seed - from + 1} of ${seeds} seeds hold`)
    } catch (error) {
      console.error(`seed ${seed} breaks ${error instanceof Error ? (error.stack ?? error.message) : error}`)
      console.error(`replay it: ${replayCommand(seed)}`)
      return false
    }
  }
  if (seeds === 1) return true
  console.log(coverageText(summed(coverages)))
  const seconds = ((performance.now() - begunMs) / 1_000).toFixed(1)
  const { entries, restarts, dispatches } = sums
  console.log(
    `${seeds} seeds hold (${from} to ${from + seeds - 1}): ${entries} entries, ${dispatches} dispatches, ${restarts} restarts in ${seconds} s`,
  )
  return true
}

try {
  if (!(await soakAll(rangeOf(process.argv.slice(2))))) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
