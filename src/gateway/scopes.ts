/** The scopes that requests belong to, found by provider, key and model. */
import { InvalidInput, type PolicyInput } from '../../machines/index.ts'
import type { LaneHost } from '../host/host.ts'
import { fingerprint, scopeName } from '../host/scope-name.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'
import type { FieldProblem } from './field-problem.ts'

export interface ScopeFinder {
  /** Answers what is wrong when no scope can have this model's name, or that it would be one too many. */
  find(provider: string, key: string, model: string): ScopeRunner | ReadonlyArray<FieldProblem> | 'too-many'
}

export interface ScopeFinderOptions {
  /** Turns keys into fingerprints. */
  readonly secret: string
  /** A scope that is met for the first time takes the policy that the configuration has for it. */
  readonly policyOf: (scope: string) => PolicyInput | undefined
  /** Keys and models are the clients' to make up, and a scope is remembered: at most so many. */
  readonly scopesLimit: number
}

export const makeScopeFinder = (
  host: LaneHost,
  { secret, policyOf, scopesLimit }: ScopeFinderOptions,
): ScopeFinder => {
  const met = new Map<string, ScopeRunner>()
  return {
    find: (provider, key, model) => {
      const credential = fingerprint(key, secret)
      const place = `${provider} ${credential} ${model}`
      const before = met.get(place)
      if (before !== undefined) return before
      try {
        const name = scopeName({ provider, credential, model })
        const { runners } = host.kernel
        if (!runners.has(name) && runners.size >= scopesLimit) return 'too-many'
        const runner = host.kernel.scope(name, policyOf(name))
        met.set(place, runner)
        return runner
      } catch (error) {
        if (!(error instanceof InvalidInput)) throw error
        return error.problems.map((problem) => ({ ...problem, field: 'model' }))
      }
    },
  }
}
