/** docs/architecture.md is true: its chart is the machine's, its files and folders exist. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stateDiagram } from './state-diagram.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

describe('the page on architecture', () => {
  it('draws the statechart as it is', () => {
    const [, drawn] = page.split(/<!-- chart -->\n|\n<!-- chart end -->/)
    expect(drawn).toBe(stateDiagram())
    expect(drawn).toContain('primaryPending --> quietRamp: auxiliariesClear')
  })

  it('names files and folders that exist', () => {
    const named = [...page.matchAll(/`((?:machines|src|test|inspector)\/[^`]*)`/g)].map(([, path]) => path!)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('lists every room of the core', () => {
    const rooms = [
      'model',
      'collections',
      'limits',
      'state',
      'scheduling',
      'events',
      'snapshot',
      'statechart',
    ]
    for (const room of rooms) expect(page).toContain(`\`machines/${room}/\``)
  })

  it('tells of I1 to I10, each once', () => {
    const told = [...page.matchAll(/^\| (I\d+) \|/gm)].map(([, name]) => name)
    expect(told).toEqual(Array.from({ length: 10 }, (_, index) => `I${index + 1}`))
  })
})
