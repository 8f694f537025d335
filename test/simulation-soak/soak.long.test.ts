/** More seeds of the soak than a short run has time for; they begin where its own end. */
import { expect, it } from 'vitest'
import { type Coverage, summed, unmet } from '../../src/simulation/soak/coverage.ts'
import { replayCommand, soakSeed } from '../../src/simulation/soak/seed.ts'

const [from, seeds] = [201, 2_000]

it(`the host keeps I1 to I10 in ${seeds} more seeds, which meet all that should be met sometimes`, async () => {
  const coverages: Coverage[] = []
  const broken: string[] = []
  for (let seed = from; seed < from + seeds && broken.length < 3; seed += 1) {
    try {
      coverages.push((await soakSeed(seed)).coverage)
    } catch (error) {
      broken.push(`${error instanceof Error ? error.message : error} (replay it: ${replayCommand(seed)})`)
    }
  }
  expect(broken).toEqual([])
  expect(unmet(summed(coverages))).toEqual([])
})
