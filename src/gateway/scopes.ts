/** The scopes that requests belong to, found by provider, key and model. */

import { type Charges, InvalidInput, type PolicyInput } from '../../machines/index.ts'
import type { LaneHost } from '../host/host.ts'
import { kernelOf } from '../host/internal.ts'
import { fingerprint, scopeName } from '../host/scope-name.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'
import type { FieldProblem } from './call-headers.ts'
import type { Upstream } from './upstreams.ts'

/** What a scope has of its upstream. */
export type ScopeUpstream = Pick<Upstream, 'provider' | 'charges'>

export interface ScopeFinder {
  /** Answers what is wrong when no scope can have this model's name, or that it would be one too many. */
  find(
    upstream: ScopeUpstream,
    key: string,
    model: string,
  ): ScopeRunner | ReadonlyArray<FieldProblem> | 'too-many'
}

export interface ScopeFinderOptions {
  /** Turns keys into fingerprints. */
  readonly secret: string
  /** A scope that is met for the first time takes the policy that the configuration has for it. */
  readonly policyOf: (scope: string) => PolicyInput | undefined
  /** Keys and models are the clients' to make up, and a scope is remembered: at most so many. */
  readonly scopesLimit: number
}

/** The policy with its upstream's charges, where it has none of its own. */
const charged = (policy: PolicyInput | undefined, charges: Charges | null): PolicyInput | undefined =>
  charges === null ? policy : { charges, ...policy }

export const makeScopeFinder = (
  host: LaneHost,
  { secret, policyOf, scopesLimit }: ScopeFinderOptions,
): ScopeFinder => {
  const met = new Map<string, ScopeRunner>()
  return {
    find: ({ provider, charges }, key, model) => {
      const credential = fingerprint(key, secret)
      const place = `${provider} ${credential} ${model}`
      const before = met.get(place)
      if (before !== undefined) return before
      try {
        const name = scopeName({ provider, credential, model })
        const { runners } = kernelOf(host)
        if (!runners.has(name) && runners.size >= scopesLimit) return 'too-many'
        const runner = kernelOf(host).scope(name, charged(policyOf(name), charges))
        met.set(place, runner)
        return runner
      } catch (error) {
        if (!(error instanceof InvalidInput)) throw error
        return error.problems.map((problem) => ({ ...problem, field: 'model' }))
      }
    },
  }
}
