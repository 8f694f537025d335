/** More seeds of the soak than a short run has time for; they begin where its own end. */
import { expect, it } from 'vitest'
import { replayCommand, soakSeed } from '../../src/simulation/soak/seed.ts'

const [from, seeds] = [201, 2_000]

it(`the host keeps I1 to I10 in ${seeds} more seeds`, async () => {
  for (let seed = from; seed < from + seeds; seed += 1) {
    await soakSeed(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed} (replay it: ${replayCommand(seed)})`, { cause: error })
    })
  }
  expect(replayCommand(from)).toContain(String(from))
})
