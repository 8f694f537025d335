/** The longest deferral of any auxiliary stays within the bound that the policy promises. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { runSeeds } from '../bench/arena-runs.ts'
import { deferral } from '../bench/arena-table.ts'

it.each(['seed-incident', 'ceiling-shrinks-silently', 'spend-cap'])('in %s', (name) => {
  const path = join(import.meta.dirname, `../../src/simulation/scenarios/${name}.json`)
  const loaded = loadScenario(path, null)
  const ours = runSeeds(loaded, ['rightofway-adaptive'], 1).get('rightofway-adaptive')
  const [longest, promised] = deferral(loaded.scenario, ours).split(' of ').map(Number)
  expect(longest).toBeGreaterThan(0)
  expect(longest).toBeLessThanOrEqual(promised as number)
})
