/** The scenario format as JSON Schema, for editors and other tools; `parseScenario` decides in the end. */
import { Schema } from 'effect'
import { ScenarioFormat } from './format.ts'

/** The text of `scenario.schema.json`. */
export const scenarioJsonSchema = (): string => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(ScenarioFormat, { onExcessProperty: 'error' })
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'rightofway scenario',
    ...schema,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
