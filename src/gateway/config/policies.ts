/**
 * The configured policies: the policy of each scope, and the source of each of its values. A scope that no
 * pattern matches has its preset as it is, so that a pattern that was removed no longer counts.
 */
import {
  type Charges,
  type Policy,
  type PolicyInput,
  parsePolicy,
  policyDifferences,
  policyPresets,
} from '../../../machines/index.ts'
import { matcherOf } from './pattern.ts'
import type { Upstream } from './upstreams.ts'

/** A policy in force, as it is shown. */
export interface ShownPolicy {
  /** The preset that gives every value that `values` does not name. */
  readonly preset: string
  /** The pattern of the configuration that the scope's name fits; null when none fits. */
  readonly pattern: string | null
  /** The values that differ from the preset, each with its source. */
  readonly values: Readonly<Record<string, { readonly value: unknown; readonly from: string }>>
}

interface Matcher {
  readonly pattern: string
  readonly input: PolicyInput
  readonly letters: number
  readonly matches: (scope: string) => boolean
}

type Configured = Readonly<Record<string, PolicyInput>>
type Routed = Pick<Upstream, 'name' | 'provider' | 'charges'>

/** Source of a value that the configuration does not have. */
const changedSince = 'changed while it runs'

export class PolicyBook {
  readonly #matchers: ReadonlyArray<Matcher>
  readonly #upstreams: ReadonlyArray<Routed>

  constructor(policies: Configured, upstreams: ReadonlyArray<Routed>) {
    this.#upstreams = upstreams
    const letters = (pattern: string): number => pattern.replaceAll('*', '').length
    // The most letters first; the later of two.
    this.#matchers = Object.entries(policies)
      .map(([pattern, input]) => ({ pattern, input, letters: letters(pattern), matches: matcherOf(pattern) }))
      .reverse()
      .sort((one, other) => other.letters - one.letters)
  }

  /**
   * What the configuration states of the scope's policy; undefined for a scope of no upstream that no pattern
   * fits, such as a pool of a program's own. The rest is given by the preset with which the scope was opened.
   */
  of(scope: string): PolicyInput | undefined {
    const isOurs = this.#upstreams.some(({ provider }) => scope.startsWith(`${provider}/`))
    return isOurs || this.#matcher(scope) !== undefined ? this.#input(scope) : undefined
  }

  /** `inForce`, the scope's present policy, with the source of each value that differs from its preset. */
  shown(scope: string, inForce: Policy = parsePolicy(this.#input(scope))): ShownPolicy {
    const matcher = this.#matcher(scope)
    const { preset } = inForce
    const base = policyPresets[preset]
    const changed = policyDifferences(inForce, parsePolicy(this.of(scope) ?? {}, base))
    const stated = (matcher?.input ?? {}) as Readonly<Record<string, unknown>>
    const sourceOf = (field: string): string => {
      if (Object.hasOwn(changed, field)) return changedSince
      if (Object.hasOwn(stated, field)) return `policies["${matcher?.pattern}"]`
      return `upstreams["${this.#charging(scope)?.name}"].charges`
    }
    const values = Object.entries(policyDifferences(inForce, base)).map(
      ([field, value]) => [field, { value, from: sourceOf(field) }] as const,
    )
    return {
      preset,
      pattern: matcher?.pattern ?? null,
      values: Object.fromEntries(values),
    }
  }

  /** A sentence for each pattern that fits no scope of any upstream. */
  get warnings(): ReadonlyArray<string> {
    const providers = [...new Set(this.#upstreams.map(({ provider }) => provider))]
    return this.#matchers
      .filter(({ pattern }) => !providers.some((provider) => mayFit(pattern, provider)))
      .map(
        ({ pattern }) =>
          `policies["${pattern}"] fits no scope: the names of scopes begin with ${providers.map((name) => `${name}/`).join(', ')}`,
      )
      .reverse()
  }

  #matcher(scope: string): Matcher | undefined {
    return this.#matchers.find(({ matches }) => matches(scope))
  }

  #input(scope: string): PolicyInput {
    const charges: Charges | null = this.#charging(scope)?.charges ?? null
    const { input = {} } = this.#matcher(scope) ?? {}
    return charges === null ? input : { charges, ...input }
  }

  /** The upstream whose charges count for the scope. */
  #charging(scope: string): Routed | undefined {
    const [provider] = scope.split('/')
    return this.#upstreams.find((upstream) => upstream.provider === provider && upstream.charges !== null)
  }
}

/** Whether some scope of the provider can fit the pattern: their common part must agree. */
const mayFit = (pattern: string, provider: string): boolean => {
  const [literal = '', ...rest] = pattern.split('*')
  const start = `${provider}/`
  return rest.length === 0 || literal.length >= start.length
    ? literal.startsWith(start)
    : start.startsWith(literal)
}
