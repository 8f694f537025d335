/** Where a behaviour of the Resource-Priority Edict is shown to be ours: a test, by its file and its title. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Shown {
  /** The behaviour, in the words of the Edict's own tests; or our improvement on it. */
  readonly behaviour: string
  /** Below `test/`. */
  readonly file: string
  /** The title of a test, or of a group of tests, as it stands in the file. */
  readonly test: string
}

const tests = join(import.meta.dirname, '..')

/** The code before a title: `it(`, `describe(` and the like, or the `)(` after a table. */
const title = /(?:\b(?:it|test|describe)(?:\.\w+)*|\))\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1\s*,/g

const known = new Map<string, ReadonlySet<string>>()

const titlesIn = (file: string): ReadonlySet<string> => {
  const read = known.get(file)
  if (read !== undefined) return read
  const code = readFileSync(join(tests, file), 'utf8').replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  const titles = new Set([...code.matchAll(title)].map((match) => match[2]!.replace(/\\(.)/g, '$1')))
  known.set(file, titles)
  return titles
}

/** Whether the file has a test, or a group of tests, of exactly this title. */
export const isShown = ({ file, test }: Shown): boolean => titlesIn(file).has(test)
