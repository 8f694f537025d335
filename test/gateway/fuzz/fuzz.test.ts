import { expect, it } from 'vitest'
import { fuzz } from './fuzz.ts'

const kinds = ['calls', 'absorbedRefusals', 'preemptions', 'clientAborts', 'upstreamFailures'] as const
/** A slow machine gets through less in the same time: another round, until each kind of event was met. */
const mostRounds = 4

/** The longer run: `npm run fuzz:gateway -- --minutes 10 --seed 1`. */
it('random requests, upstreams, preemptions and vanishing clients leave nothing behind', async () => {
  const firstSeed = Number(process.env['RIGHTOFWAY_FUZZ_SEED'] ?? 20_261)
  const met = new Set<string>()
  let sent = 0
  for (let round = 0; round < mostRounds && (met.size < kinds.length || sent <= 100); round += 1) {
    const seed = firstSeed + round
    const { requests, counters, faults, left } = await fuzz(seed, 4_000)
    sent += requests
    for (const kind of kinds) if (counters[kind] > 0) met.add(kind)
    expect({ seed, faults, ...left }).toEqual({
      seed,
      faults: 0,
      heldBytes: 0,
      keptPlaces: 0,
      liveCalls: 0,
      inFlight: 0,
      waiting: 0,
      permits: 0,
    })
  }
  expect([...met].sort()).toEqual([...kinds].sort())
  expect(sent).toBeGreaterThan(100)
}, 120_000)
