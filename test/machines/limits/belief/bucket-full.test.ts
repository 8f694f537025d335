/** A refusal of a bucket that seems full: either it holds less, or it refills more slowly than was guessed. */
import { expect, it } from 'vitest'
import { type Bucket, unknownBucket } from '../../../../machines/limits/belief/bucket.ts'
import { refusedBy } from '../../../../machines/limits/belief/bucket-answers.ts'

const atMs = 100_000
/** Full by the best guess; a call was accepted 20 s ago, and 40k tokens were sent since. */
const full = (rates: Pick<Bucket, 'rateLow' | 'rateHigh'>): Bucket => ({
  ...unknownBucket,
  beganAtMs: 1,
  atMs,
  middle: 120_000,
  high: 120_000,
  burst: 120_000,
  burstLow: 30_000,
  fullAtMs: atMs,
  accepted: [{ atMs: atMs - 20_000, level: 0, sentTokens: 0 }],
  ...rates,
})
const refusal = {
  tokens: 60_000,
  dispatchedAtMs: atMs,
  atMs,
  sentBefore: 40_000,
  sentAfter: 0,
  charges: [],
  late: false,
}

it('with a rate that is known holds less', () => {
  const rates = { rateLow: 10, rateHigh: 12 }
  const { burst, burstHigh, rateLow, rateHigh } = refusedBy(full(rates), refusal)
  expect({ burst, burstHigh }).toEqual({ burst: 58_800, burstHigh: 60_000 })
  expect({ rateLow, rateHigh }).toEqual(rates)
})

it('with a rate that is hardly known refills more slowly, and holds what it was believed to hold', () => {
  const { burst, burstHigh, rateHigh } = refusedBy(full({ rateLow: 1, rateHigh: 80 }), refusal)
  expect({ burst, burstHigh }).toEqual({ burst: 120_000, burstHigh: null })
  // 100k tokens in 20 s would have been too much for it.
  expect(rateHigh).toBe(5)
})
