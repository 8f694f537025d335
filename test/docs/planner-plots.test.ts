/** The plots of the planner's page are those of the code of today. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { plotOf, plotPath, plotted } from '../../scripts/planner-plots.ts'

const machines = join(import.meta.dirname, '../../machines')
const page = readFileSync(join(import.meta.dirname, '../../docs/planner.md'), 'utf8')

it.each(plotted)('%s is drawn as it runs, and shown', (name) => {
  expect(readFileSync(plotPath(name), 'utf8')).toBe(plotOf(name))
  expect(page).toContain(`(planner/${name}.svg)`)
})

it('each name of the page in code letters is a name of the code', () => {
  const code = [
    ...readdirSync(join(machines, 'limits/belief')).map((file) => `limits/belief/${file}`),
    ...['scheduling/planner.ts', 'scheduling/worst-case.ts', 'model/policy.ts'],
  ]
    .map((file) => readFileSync(join(machines, file), 'utf8'))
    .join('\n')
  const names = [...page.matchAll(/`([A-Za-z]{5,})[`(]/g)].map(([, name]) => name as string)
  expect(names.length).toBeGreaterThan(15)
  for (const name of names) expect(code, name).toMatch(new RegExp(`\\b${name}\\b`))
})
