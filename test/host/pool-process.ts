/** A host of its own process, with calls that hold permits and calls that wait, until its parent lets go of it. */
import { openHost } from '../../src/index.ts'

const [journal] = process.argv.slice(2) as [string]
const host = await openHost({ journal })
const scope = host.scope('pool', { capacity: 3, reserve: 1, inFlight: 'tolerate', maxDeferralMs: 600_000 })
const until: Promise<void> = new Promise(() => {})
for (let count = 0; count < 4; count += 1) void scope.run({ lane: 'auxiliary' }, () => until)
void scope.run({ lane: 'primary' }, () => until)
void scope.run({ lane: 'primary' }, () => until)
const look = setInterval(() => {
  const { primary, auxiliary } = scope.status
  if (primary.inFlight !== 1 || auxiliary.inFlight !== 2) return
  clearInterval(look)
  process.send!('ready')
}, 5)
process.on('disconnect', () => process.exit())
