/** A provider that takes `max_tokens` at admission, on its scenario, judged with the limit declared. */
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { adaptivePolicy, type PolicyInput } from '../../machines/index.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { measure } from '../../src/simulation/arena/metrics.ts'
import { pageOf } from '../../src/simulation/arena/provider-page.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { laneScheduler } from '../../src/simulation/schedulers.ts'

const path = fileURLToPath(
  new URL('../../src/simulation/scenarios/max-tokens-reserved.json', import.meta.url),
)

/** The limit as its page names it; nothing in its answers says how much of it is left. */
const limits = { inputTokensPerMinute: 240_000 }

it('of which only the page tells, refuses nothing where its charges are known, and else a call in twenty or more', () => {
  const { scenario: loud } = loadScenario(path)
  const rules = loud.provider.rules.map((rule) => ({ ...rule, states: 'none' as const }))
  const scenario = { ...loud, provider: { ...loud.provider, rules } }
  const { charges } = pageOf(scenario)
  const run = (policy: PolicyInput) =>
    measure(runPolicy(scenario, ({ world }) => laneScheduler(world, policy)))
  const told = run({ ...adaptivePolicy, limits, charges: charges! })
  const untold = run({ ...adaptivePolicy, limits })
  const shown = ({ refusalsPerAccepted, meanPrimaryWaitMs, auxiliaryTokensServed }: typeof told) =>
    `${refusalsPerAccepted.toFixed(3)} refusals per accepted, ${Math.round(meanPrimaryWaitMs)} ms, ${auxiliaryTokensServed}`
  console.info(`told ${shown(told)}; untold ${shown(untold)}`)
  expect(told.primariesUnserved).toBe(0)
  expect(told.refusalsPerAccepted).toBe(0)
  expect(untold.refusalsPerAccepted).toBeGreaterThan(0.05)
})
