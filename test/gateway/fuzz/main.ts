/** `npm run fuzz:gateway -- --minutes N --seed S`: ends with 1 when something was left, or memory grew. */
import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
  },
})
const minutes = Number(values.minutes)
const seed = Number(values.seed)
if (!(minutes > 0) || !Number.isSafeInteger(seed))
  throw new RangeError('--minutes must be above 0, --seed a whole number')

/** What may be kept of minutes of work, bytes: the journal in memory keeps its newest 100,000 entries. */
const mostGrownBytes = 96 * 1024 * 1024

console.log(`seed ${seed}, ${minutes} min`)
const { requests, counters, faults, left, grownBytes } = await fuzz(seed, minutes * 60_000)
console.log({ sent: requests, ...counters, faults, left, grownMiB: Math.round(grownBytes / 1024 / 1024) })
const isClean =
  faults === 0 && grownBytes < mostGrownBytes && Object.values(left).every((count) => count === 0)
process.exit(isClean ? 0 : 1)
