/** The configuration of a verb: its flags win over the file of `--config`, which wins over the defaults. */
import { readFileSync } from 'node:fs'
import { InvalidInput } from '../../machines/index.ts'
import { type GatewayConfig, parseConfig } from '../gateway/config/config.ts'
import { CliFailure, lineOf } from './failure.ts'

export interface Stated {
  /** Stated on the command line; they win over the file. */
  readonly flags: Readonly<Record<string, unknown>>
  readonly configPath: string | null
}

/** Throws `InvalidInput` that names the flag, or the file and the field. */
export const readConfig = ({ flags, configPath }: Stated): GatewayConfig => {
  const fromFile = fileOf(configPath)
  named('--', () => parseConfig(flags))
  const isObject = typeof fromFile === 'object' && fromFile !== null && !Array.isArray(fromFile)
  return named(`${configPath ?? ''}: `, () => parseConfig(isObject ? { ...fromFile, ...flags } : fromFile))
}

/** The source of a setting, in the words of `config print`. */
export const sourceOf = ({ flags, configPath }: Stated, field: string): string => {
  if (Object.hasOwn(flags, field)) return 'flag'
  const fromFile = fileOf(configPath)
  return typeof fromFile === 'object' && fromFile !== null && Object.hasOwn(fromFile, field)
    ? (configPath as string)
    : 'default'
}

const fileOf = (path: string | null): unknown => {
  if (path === null) return {}
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const problem = error instanceof SyntaxError ? `is not JSON: ${lineOf(error)}` : lineOf(error)
    throw new CliFailure({ message: `config file ${path}: ${problem}` })
  }
}

/** Adds to an error the place where the faulty field was stated. */
const named = <A>(place: string, parse: () => A): A => {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const field = (path: string) => place + path.replace(/^config\./, '')
    throw new InvalidInput(error.problems.map((problem) => ({ ...problem, field: field(problem.field) })))
  }
}
