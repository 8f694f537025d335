/** Principals whose streams are equal are served equally, in every scenario of the project from its beginning to its end. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { contenders } from '../../src/simulation/arena/contenders.ts'
import { loadScenario } from '../../src/simulation/arena/load.ts'
import { measure } from '../../src/simulation/arena/metrics.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'

const dir = fileURLToPath(new URL('../../src/simulation/scenarios/', import.meta.url))
/** Those with a trace have one principal, and their trace may be missing. */
const files = readdirSync(dir).filter(
  (file) =>
    file.endsWith('.json') &&
    file !== 'scenario.schema.json' &&
    !readFileSync(dir + file, 'utf8').includes('"file"'),
)

let groups = 0

test.each(files)("Jain's index between equals is at least 0.97 in %s", { timeout: 600_000 }, (file) => {
  const { scenario, traces } = loadScenario(dir + file)
  const { jainOfEquals } = measure(runPolicy(scenario, contenders['rightofway-adaptive'], { traces }))
  if (jainOfEquals === null) return
  groups += 1
  expect(jainOfEquals).toBeGreaterThanOrEqual(0.97)
})

test('several scenarios have equals', () => {
  expect(groups).toBeGreaterThanOrEqual(4)
})
