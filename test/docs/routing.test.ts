/** docs/routing.md says what the tables are: every row, every field, every preset, and examples that are taken. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parseConfig } from '../../src/gateway/config/config.ts'
import {
  ClassifyRuleSchema,
  classifyPresets,
  RouteSchema,
  ScopeRuleSchema,
  scopePresets,
  WhenSchema,
} from '../../src/gateway/routing/schema.ts'
import { page, withRows } from './routing-page.ts'

const text = readFileSync(page, 'utf8')

it('has every row of the route table: `node test/docs/routing-page.ts` writes them', () => {
  expect(withRows(text)).toBe(text)
})

it('has every field of each table, and every preset', () => {
  const names = (schema: { readonly fields: object }): ReadonlyArray<string> => Object.keys(schema.fields)
  const schemas = [RouteSchema, WhenSchema, ClassifyRuleSchema, ScopeRuleSchema]
  for (const name of [...schemas.flatMap(names), ...classifyPresets, ...scopePresets, 'preset'])
    expect(text, name).toContain(`\`${name}\``)
})

it('has examples that the configuration takes', () => {
  const examples = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(([, example]) =>
    JSON.parse(example ?? ''),
  )
  expect(examples.length).toBe(3)
  for (const example of examples) expect(parseConfig(example)).toMatchObject(example)
})
