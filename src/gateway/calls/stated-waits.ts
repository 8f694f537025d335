/**
 * Tells waiting calls that a provider's stated wait has changed, at once and not at their next look.
 * A change costs more than a comparison only where the new wait outlasts some call's patience.
 */
import type { ScopeContext } from '../../../machines/index.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import { scopeWaitUntil } from './patience.ts'

/** A call that may be waiting. */
export interface PatientCall {
  /** The last moment at which it may still be waiting, epoch milliseconds. */
  readonly waitsUntilMs: number
  /** The stated wait may outlast it now. */
  waitChanged(): void
}

/** The end of the longest wait that is stated for calls of any size, epoch milliseconds; 0 without one. */
const longestStated = (context: ScopeContext): number =>
  context.belief.statedWaits.reduce(
    (longest, { untilMs }) => Math.max(longest, untilMs),
    scopeWaitUntil(context),
  )

class WatchedScope {
  readonly #runner: ScopeRunner
  readonly #calls = new Set<PatientCall>()
  readonly #subscription: { unsubscribe(): void }
  #longestMs: number
  #policy: ScopeContext['policy']
  /** No call's patience ends before, epoch milliseconds. */
  #leastPatienceMs = Number.POSITIVE_INFINITY

  constructor(runner: ScopeRunner) {
    this.#runner = runner
    this.#longestMs = longestStated(runner.context)
    this.#policy = runner.context.policy
    // A scope that stops tells its waiters itself.
    this.#subscription = runner.record.actor.subscribe({ next: () => this.#compare(), error: () => {} })
  }

  add(call: PatientCall): void {
    this.#calls.add(call)
    this.#leastPatienceMs = Math.min(this.#leastPatienceMs, call.waitsUntilMs)
  }

  /** False when no call is left. */
  remove(call: PatientCall): boolean {
    this.#calls.delete(call)
    if (this.#calls.size === 0) this.#subscription.unsubscribe()
    return this.#calls.size > 0
  }

  #compare(): void {
    const { context } = this.#runner
    const longestMs = longestStated(context)
    const isNew = longestMs > this.#longestMs || context.policy !== this.#policy
    this.#longestMs = longestMs
    if (!isNew) return
    const isPolicyNew = context.policy !== this.#policy
    this.#policy = context.policy
    if (!isPolicyNew && longestMs <= this.#leastPatienceMs) return
    // Outside the scope's own work: a call that leaves sends it an event.
    queueMicrotask(() => this.#tell())
  }

  #tell(): void {
    let leastMs = Number.POSITIVE_INFINITY
    for (const call of [...this.#calls]) {
      call.waitChanged()
      if (this.#calls.has(call)) leastMs = Math.min(leastMs, call.waitsUntilMs)
    }
    this.#leastPatienceMs = leastMs
  }
}

export class StatedWaits {
  readonly #scopes = new Map<ScopeRunner, WatchedScope>()

  /** Watches for one call; the returned function ends it. */
  watch(runner: ScopeRunner, call: PatientCall): () => void {
    let scope = this.#scopes.get(runner)
    if (scope === undefined) {
      scope = new WatchedScope(runner)
      this.#scopes.set(runner, scope)
    }
    const watched = scope
    watched.add(call)
    return () => {
      if (!watched.remove(call) && this.#scopes.get(runner) === watched) this.#scopes.delete(runner)
    }
  }
}
