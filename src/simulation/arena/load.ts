/** Scenario files. */

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Data } from 'effect'
import { parseScenario, type Scenario } from './scenario.ts'
import { readTraces, type Traces } from './trace.ts'

/** A scenario file that is missing or is not JSON. */
export class ScenarioUnreadable extends Data.TaggedError('ScenarioUnreadable')<{ readonly message: string }> {
  constructor(path: string, problem: string) {
    super({ message: `scenario file ${path}: ${problem}` })
  }
}

export interface Loaded {
  readonly scenario: Scenario
  readonly traces: Traces
}

/**
 * Reads a scenario and the traces that it names. A trace that is not beside the scenario is looked for in
 * `tracesDir`. Throws `ScenarioUnreadable`, `InvalidInput`, `TraceMissing` and `TraceUnreadable`.
 */
export const loadScenario = (path: string, tracesDir: string | null = null): Loaded => {
  const scenario = parseScenario(readJson(path))
  return { scenario, traces: readTraces(scenario, { scenarioDir: dirname(resolve(path)), tracesDir }) }
}

const readJson = (path: string): unknown => {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ScenarioUnreadable(path, error instanceof Error ? error.message : String(error))
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ScenarioUnreadable(
      path,
      `is not JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}
