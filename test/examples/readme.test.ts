/** The README's code runs here. The README and the pages of docs/ name only things that exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { startEmulator } from '../../src/emulator/index.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { quickstart } from './quickstart.ts'

const root = join(import.meta.dirname, '../..')
const pages = new Map(
  ['README.md', ...readdirSync(join(root, 'docs')).map((name) => join('docs', name))]
    .filter((path) => path.endsWith('.md'))
    .map((path) => [path, readFileSync(join(root, path), 'utf8')] as const),
)
const readme = pages.get('README.md') as string
const everything = [...pages.values()].join('\n')

/** The lines between the markers, without their indentation. */
const shown = (file: string): string => {
  const source = readFileSync(join(import.meta.dirname, file), 'utf8')
  const [, region] = source.split(/ *\/\/ README: embed\n| *\/\/ README: end\n/)
  return region!.replaceAll(/^ {2}/gm, '').trim()
}

it('the quickstart runs against a provider that enforces its limits, and the README shows it as it is', async () => {
  const emulator = await startEmulator({ rules: [{ rule: 'token-bucket', inputTokensPerMinute: 210_000 }] })
  try {
    expect(await quickstart('sk-example', emulator.url)).toMatch(/\w+/)
    expect(emulator.log().map(({ kind }) => kind)).toEqual(['accepted', 'completed'])
  } finally {
    await emulator.close()
  }
  expect(readme).toContain(shown('quickstart.ts'))
})

it('every configuration that the pages show is one', () => {
  const blocks = [...everything.matchAll(/```json\n([^`]*)```/g)].map(([, block]) => block!)
  expect(blocks.length).toBeGreaterThan(0)
  for (const block of blocks) expect(() => parseConfig(JSON.parse(block))).not.toThrow()
})

it('every npm script and verb that the pages name exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const named = [...everything.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!)
  expect(named.filter((name) => !(name in scripts))).toEqual([])
  const main = readFileSync(join(root, 'src/cli/verbs.ts'), 'utf8')
  const verbs = [...everything.matchAll(/npx rightofway (\w+)/g)].map(([, verb]) => verb!)
  expect(verbs.filter((verb) => !main.includes(`${verb}Verb`))).toEqual([])
})

it('every link between the pages, and into the code, leads somewhere', () => {
  const broken = [...pages].flatMap(([path, page]) =>
    [...page.matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, target]) => join(dirname(path), target as string))
      .filter((target) => !existsSync(join(root, target)))
      .map((target) => `${path} links to ${target}`),
  )
  expect(broken).toEqual([])
})

it('the README can be read at once: 150 lines at most', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(150)
})
