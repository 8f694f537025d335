import { expect, it } from 'vitest'
import { fuzz } from './fuzz.ts'

/** The longer run: `npm run fuzz:gateway -- --minutes 10 --seed 1`. */
it('random requests, upstreams, preemptions and vanishing clients leave nothing behind', async () => {
  const seed = Number(process.env['RIGHTOFWAY_FUZZ_SEED'] ?? 20_261)
  const { requests, counters, faults, left } = await fuzz(seed, 4_000)
  expect(requests).toBeGreaterThan(100)
  const { calls, absorbedRefusals, preemptions, clientAborts, upstreamFailures } = counters
  for (const count of [calls, absorbedRefusals, preemptions, clientAborts, upstreamFailures])
    expect(count).toBeGreaterThan(0)
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
})
