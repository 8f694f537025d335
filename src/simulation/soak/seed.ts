/** The run of one seed. */
import { InvariantBroken } from '../witness.ts'
import { planOf } from './plan.ts'
import { Soak, type SoakResult } from './soak.ts'

/**
 * Runs the seed's simulation. When its scopes share only the disk, also runs each of them alone. Rejects with
 * the broken invariant.
 */
export const soakSeed = async (seed: number): Promise<SoakResult> => {
  const plan = planOf(seed)
  const together = await new Soak(plan).run()
  if (plan.isolated) {
    for (const index of plan.scopes.keys()) same(together, await new Soak(plan, index).run())
  }
  return together
}

/** I9: a scope decides as if it were alone. */
const same = (together: SoakResult, alone: SoakResult): void => {
  for (const [scope, records] of alone.records) {
    const beside = together.records.get(scope) ?? []
    // One of the runs may have ended sooner: a run ends when none of its scopes has work left.
    const common = Math.min(records.length, beside.length)
    const at = records.findIndex((record, index) => index < common && record !== beside[index])
    if (at === -1) continue
    throw new InvariantBroken(
      'I9',
      `event ${at + 1} of ${scope} is ${beside[at]} beside others, ${records[at]} alone`,
    )
  }
}

/** The command that replays a seed. */
export const replayCommand = (seed: number): string => `npm run simulate:soak -- --seed ${seed}`
