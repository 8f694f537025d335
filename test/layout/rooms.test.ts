/** The layout is the architecture: every import of the core runs downwards, and nothing runs in a circle. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The rooms of `machines/`, lowest floor first: a file may import from its own room and from those before it. */
const floors = [
  'machines/model',
  'machines/collections',
  'machines/limits/belief',
  'machines/limits',
  'machines/state',
  'machines/scheduling',
  'machines/events',
  'machines/snapshot',
  'machines/statechart',
  'machines',
]

const sourcesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules'))

const importPattern = /(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)'(\.{1,2}\/[^']+)'/gm

const importsOf = (path: string): ReadonlyArray<string> =>
  [...readFileSync(join(root, path), 'utf8').matchAll(importPattern)].map(([, target]) =>
    join(dirname(path), target as string),
  )

const graph = new Map(
  ['machines', 'src', 'inspector'].flatMap(sourcesBelow).map((path) => [path, importsOf(path)] as const),
)

const floorOf = (path: string): number => floors.indexOf(dirname(path))

/** Files from `path` back to itself; null when no import leads back. */
const circleThrough = (path: string): ReadonlyArray<string> | null => {
  const seen = new Set<string>()
  const walk = (from: string, way: ReadonlyArray<string>): ReadonlyArray<string> | null => {
    for (const target of graph.get(from) ?? []) {
      if (target === path) return [...way, target]
      if (seen.has(target) || !graph.has(target)) continue
      seen.add(target)
      const found = walk(target, [...way, target])
      if (found !== null) return found
    }
    return null
  }
  return walk(path, [path])
}

describe('the rooms', () => {
  const core = [...graph.keys()].filter((path) => path.startsWith('machines/'))

  it('are found, with their imports', () => {
    expect(core.length).toBeGreaterThan(40)
    expect([...graph.values()].flat().length).toBeGreaterThan(300)
    expect(graph.get('machines/statechart/walker.ts')).toContain('machines/statechart/guards.ts')
  })

  it('of machines/ are all on a floor', () => {
    expect(core.filter((path) => floorOf(path) < 0)).toEqual([])
  })

  it('of machines/ import only what stands below them, and nothing from src/', () => {
    const upwards = core.flatMap((path) =>
      importsOf(path)
        .filter((target) => floorOf(target) < 0 || floorOf(target) > floorOf(path))
        .map((target) => `${path} imports ${target}`),
    )
    expect(upwards).toEqual([])
  })

  it('have no file that imports itself through others', () => {
    const circles = [...graph.keys()].flatMap((path) => {
      const circle = circleThrough(path)
      return circle === null ? [] : [circle.join(' -> ')]
    })
    expect(circles).toEqual([])
  })
})
