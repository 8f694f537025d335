/** Where a behaviour of the Resource-Priority Edict is shown to be ours: a test, by its file and its words. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Shown {
  /** The behaviour, in the words of the Edict's own tests; or what we do better. */
  readonly behaviour: string
  /** Below `test/`. */
  readonly file: string
  /** The words of the test, as they stand in its file. */
  readonly test: string
}

const tests = join(import.meta.dirname, '..')

/** The words are those of a test in the file, not of a comment. */
export const isShown = ({ file, test }: Shown): boolean =>
  readFileSync(join(tests, file), 'utf8')
    .split('\n')
    .some((line) => line.includes(test) && /['"`]/.test(line) && !/^\s*(?:\/\/|\/?\*)/.test(line))
