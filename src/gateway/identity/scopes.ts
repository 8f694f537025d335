/**
 * The scopes that requests belong to, found by provider, key and model. Keys and models are the
 * clients' to make up, and a scope is remembered: so one stays only when the provider has accepted its
 * key, and the least recently used gives way when there are too many.
 */
import { InvalidInput, type PolicyInput, type ScopeContext } from '../../../machines/index.ts'
import { longestStatedWait } from '../../../machines/limits/belief/stated-waits.ts'
import type { LaneHost } from '../../host/host.ts'
import { kernelOf } from '../../host/internal.ts'
import { scopeName } from '../../host/scope-name.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import type { FieldProblem } from '../problem/field-problem.ts'
import type { ScopeIdentity } from '../routing/scope-names.ts'

/** The parts of a scope's name. */
export type NamedScope = Pick<ScopeIdentity, 'provider' | 'credential' | 'model'>

export interface ScopeFinder {
  /** Returns the fault when the model's name cannot name a scope, or `too-many` when it would be one scope too many. */
  find(identity: NamedScope): ScopeRunner | ReadonlyArray<FieldProblem> | 'too-many'
  /** The provider answered a call of the scope otherwise than by refusing its key: the scope stays. */
  proven(scope: string): void
  /** A call of the scope has ended. One that no provider ever accepted goes with its last call. */
  ended(scope: string): void
  /**
   * Gives every scope its policy by the rule from now on: those in memory at once, those at rest when they are
   * next used.
   */
  usePolicies(policyOf: (scope: string) => PolicyInput | undefined): void
  /** Hears of every scope that is forgotten: what others keep by its name can go too. */
  whenForgotten(heard: (scope: string) => void): void
  readonly counts: ScopeCounts
}

export interface ScopeCounts {
  /** Scopes that are remembered. */
  readonly remembered: number
  /** Dropped to make room for others. */
  readonly dropped: number
  /** Dropped because the provider refused their keys, or never answered. */
  readonly refused: number
}

export interface ScopeFinderOptions {
  /** The policy that the configuration has for a scope; undefined leaves the scope the policy that it has. */
  readonly policyOf: (scope: string) => PolicyInput | undefined
  /** At most so many are remembered. */
  readonly scopesLimit: number
}

/** Of the least recently used, how many are looked at for one that may go. */
const mostLooks = 64

/** Statuses by which a provider says that it does not take the key. */
export const refusesKey = (status: number): boolean => status === 401 || status === 403

/** A wait or a backoff that is still to come, and would be forgotten with the scope. */
export const isWorthKeeping = (context: ScopeContext, nowMs: number): boolean =>
  (context.wait !== null && context.wait.untilMs > nowMs) ||
  longestStatedWait(context.belief, nowMs) !== null ||
  Object.values(context.pacing).some((pace) => pace !== undefined && pace.pausedUntilMs > nowMs)

export const makeScopeFinder = async (host: LaneHost, options: ScopeFinderOptions): Promise<ScopeFinder> => {
  // The journal says the time of each newest checkpoint: those that were used longest ago come first.
  const known = [...(await kernelOf(host).journal.scopes())].sort(
    (one, other) => (one.at ?? 0) - (other.at ?? 0),
  )
  return new RememberedScopes(host, options, [
    ...known.map(({ scope }) => scope),
    ...kernelOf(host).runners.keys(),
  ])
}

class RememberedScopes implements ScopeFinder {
  readonly #host: LaneHost
  readonly #options: ScopeFinderOptions
  /** Whether the provider has accepted the key, by scope; the least recently used comes first. */
  readonly #scopes = new Map<string, boolean>()
  #policyOf: (scope: string) => PolicyInput | undefined
  /** Scopes whose policy is by the present rule. */
  readonly #ruled = new Set<string>()
  #dropped = 0
  #refused = 0
  readonly #listeners: Array<(scope: string) => void> = []

  constructor(host: LaneHost, options: ScopeFinderOptions, known: ReadonlyArray<string>) {
    this.#host = host
    this.#options = options
    for (const name of known) this.#scopes.set(name, true)
    this.#policyOf = options.policyOf
    this.usePolicies(options.policyOf)
  }

  get counts(): ScopeCounts {
    return { remembered: this.#scopes.size, dropped: this.#dropped, refused: this.#refused }
  }

  find({ provider, credential, model }: NamedScope): ScopeRunner | ReadonlyArray<FieldProblem> | 'too-many' {
    const { scopesLimit } = this.#options
    try {
      const name = scopeName({ provider, credential, model })
      const before = this.#scopes.get(name)
      if (before === undefined && this.#scopes.size >= scopesLimit && !this.#makeRoom()) return 'too-many'
      this.#use(name, before ?? false)
      return this.#ruled.has(name) ? kernelOf(this.#host).scope(name) : this.#rule(name)
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      return error.problems.map((problem) => ({ ...problem, field: 'model' }))
    }
  }

  proven(scope: string): void {
    if (this.#scopes.get(scope) === false) this.#scopes.set(scope, true)
  }

  ended(scope: string): void {
    if (this.#scopes.get(scope) !== false || !this.#mayGo(scope)) return
    this.#refused += 1
    this.#forget(scope)
  }

  usePolicies(policyOf: (scope: string) => PolicyInput | undefined): void {
    this.#policyOf = policyOf
    this.#ruled.clear()
    // Their waiting calls go by the new policy before any other call comes.
    for (const [name, { failure }] of kernelOf(this.#host).runners) if (failure === null) this.#rule(name)
  }

  #rule(name: string): ScopeRunner {
    const runner = kernelOf(this.#host).scope(name, this.#policyOf(name))
    this.#ruled.add(name)
    return runner
  }

  whenForgotten(heard: (scope: string) => void): void {
    this.#listeners.push(heard)
  }

  #use(name: string, isProven: boolean): void {
    this.#scopes.delete(name)
    this.#scopes.set(name, isProven)
  }

  /** Drops the least recently used scope that nothing would be lost with; false when there is none. */
  #makeRoom(): boolean {
    let looks = 0
    for (const name of this.#scopes.keys()) {
      if (looks >= mostLooks) return false
      looks += 1
      if (!this.#mayGo(name)) continue
      this.#dropped += 1
      this.#forget(name)
      return true
    }
    return false
  }

  #mayGo(name: string): boolean {
    const kernel = kernelOf(this.#host)
    const runner = kernel.scope(name)
    return runner.isResting && !isWorthKeeping(runner.context, kernel.clock.now())
  }

  #forget(name: string): void {
    this.#scopes.delete(name)
    this.#ruled.delete(name)
    for (const heard of this.#listeners) heard(name)
    kernelOf(this.#host)
      .forget(name)
      .then(
        (isForgotten) => {
          // Somebody uses it again.
          if (!isForgotten && !this.#scopes.has(name)) this.#scopes.set(name, false)
        },
        // A journal that fails tells its listener.
        () => {},
      )
  }
}
