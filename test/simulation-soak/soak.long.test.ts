/** More seeds of the soak than a short run has time for; they begin where its own end. */
import { expect, it } from 'vitest'
import { replayCommand, soakSeed } from '../../src/simulation/soak/seed.ts'

const [from, seeds] = [201, 2_000]

it(`the host keeps I1 to I10 in ${seeds} more seeds`, async () => {
  const broken: string[] = []
  for (let seed = from; seed < from + seeds && broken.length < 3; seed += 1) {
    await soakSeed(seed).catch((error: unknown) => {
      broken.push(`${error instanceof Error ? error.message : error} (replay it: ${replayCommand(seed)})`)
    })
  }
  expect(broken).toEqual([])
})
