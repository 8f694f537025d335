/** A provider that takes `max_tokens` at admission, on its scenario: told how it charges, we are hardly ever refused. */
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { adaptivePolicy } from '../../machines/index.ts'
import { rightofway } from '../../src/simulation/arena/contenders.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { measure } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { laneScheduler } from '../../src/simulation/schedulers.ts'

const path = fileURLToPath(
  new URL('../../src/simulation/scenarios/max-tokens-reserved.json', import.meta.url),
)

it('told of the charges it is refused seldom; not told of them, a call in four or more is', () => {
  const { scenario } = loadScenario(path)
  const told = measure(runPolicy(scenario, rightofway(adaptivePolicy)))
  const untold = measure(runPolicy(scenario, ({ world }) => laneScheduler(world, adaptivePolicy)))
  const shown = ({ refusalsPerAccepted, meanPrimaryWaitMs, auxiliaryTokensServed }: typeof told) =>
    `${refusalsPerAccepted.toFixed(3)} refusals per accepted, ${Math.round(meanPrimaryWaitMs)} ms, ${auxiliaryTokensServed}`
  console.info(`told ${shown(told)}; untold ${shown(untold)}`)
  expect(told.primariesUnserved).toBe(0)
  expect(told.refusalsPerAccepted).toBeLessThan(0.1)
  expect(untold.refusalsPerAccepted).toBeGreaterThan(0.25)
  expect(told.meanPrimaryWaitMs).toBeLessThanOrEqual(untold.meanPrimaryWaitMs)
})
