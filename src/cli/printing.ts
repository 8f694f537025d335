/** The work of `config print`, apart from its flags. */
import { type PolicyInput, parsePolicy } from '../../machines/index.ts'
import type { GatewayConfig } from '../gateway/config/config.ts'
import { PolicyBook, type ShownPolicy } from '../gateway/config/policies.ts'
import { emulatorUpstreams } from '../gateway/config/upstreams.ts'
import type { ScopeStatus } from '../host/status.ts'
import { readConfig, sourceOf } from './configuration.ts'

export interface PrintRequest {
  readonly configPath: string | null
  /** Null: the settings, and each pattern of the policies. */
  readonly scope: string | null
  readonly json: boolean
}

interface Setting {
  readonly name: string
  readonly value: unknown
  readonly from: string
}

/** Settings that are printed by themselves. */
const apart: ReadonlySet<string> = new Set(['policies'])

const bookOf = (config: GatewayConfig): PolicyBook =>
  new PolicyBook(config.policies, [...config.upstreams, ...emulatorUpstreams('http://127.0.0.1')])

/** How the config file explains the policy in force of a scope. */
export const sourcesBy = (configPath: string): ((status: ScopeStatus) => ShownPolicy) => {
  const book = bookOf(readConfig({ flags: {}, configPath }))
  return ({ scope, policy }) => book.shown(scope, parsePolicy(policy as PolicyInput))
}

export const printed = ({ configPath, scope, json }: PrintRequest): string => {
  const stated = { flags: {}, configPath }
  const config = readConfig(stated)
  const book = bookOf(config)
  if (scope !== null) {
    const values = policyValues(book.shown(scope), parsePolicy(book.of(scope)))
    return json ? JSON.stringify({ scope, ...book.shown(scope) }) : table(values)
  }
  const settings = Object.entries(config)
    .filter(([name]) => !apart.has(name))
    .map(([name, value]) => ({ name, value, from: sourceOf(stated, name) }))
  const { policies } = config
  const { warnings } = book
  if (json) return JSON.stringify({ settings, policies, warnings })
  const patterns = Object.entries(policies).map(([pattern, value]) => ({
    name: `policies["${pattern}"]`,
    value,
    from: configPath as string,
  }))
  return [table([...settings, ...patterns]), ...warnings.map((warning) => `warning: ${warning}`)].join('\n')
}

const policyValues = ({ preset, values }: ShownPolicy, policy: object): ReadonlyArray<Setting> =>
  Object.entries(policy).map(([name, value]) => ({
    name,
    value,
    from: values[name]?.from ?? `preset ${preset}`,
  }))

const table = (settings: ReadonlyArray<Setting>): string => {
  const width = Math.max(...settings.map(({ name }) => name.length))
  return settings
    .map(({ name, value, from }) => `${name.padEnd(width)}  ${JSON.stringify(value)}  (${from})`)
    .join('\n')
}
