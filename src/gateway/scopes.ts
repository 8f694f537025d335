/** The scopes that requests belong to, found by provider, key and model. */
import { InvalidInput, type PolicyInput } from '../../machines/index.ts'
import type { LaneHost } from '../host/host.ts'
import { fingerprint, scopeName } from '../host/scope-name.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'
import type { FieldProblem } from './call-headers.ts'

export interface ScopeFinder {
  /** Answers what is wrong when no scope can have this model's name. */
  find(provider: string, key: string, model: string): ScopeRunner | ReadonlyArray<FieldProblem>
}

/** A scope that is met for the first time takes the policy that the configuration has for it. */
export const makeScopeFinder = (
  host: LaneHost,
  secret: string,
  policyOf: (scope: string) => PolicyInput | undefined,
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
