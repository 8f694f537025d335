/** Writes the published JSON Schema anew: `node test/simulation/write-schema.ts`. */
import { writeFileSync } from 'node:fs'
import { scenarioJsonSchema } from '../../src/simulation/arena/json-schema.ts'

writeFileSync(
  new URL('../../src/simulation/scenarios/scenario.schema.json', import.meta.url),
  scenarioJsonSchema(),
)
