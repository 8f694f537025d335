/** Who follows what the scopes of a host decide. One that throws harms neither a scope nor another observer. */
import type { Observation } from './scope-record.ts'

export class Observers {
  /** Each observer with the function that it hears at the end. */
  readonly #observers = new Map<(observation: Observation) => void, () => void>()
  #failures = 0
  #hasEnded = false

  get isEmpty(): boolean {
    return this.#observers.size === 0
  }

  /** How many times an observer threw. */
  get failures(): number {
    return this.#failures
  }

  /** Hears every observation from now on, and the end. Answers how to stop. */
  add(observer: (observation: Observation) => void, ended: () => void): () => void {
    // Its own key, so that one function may observe twice.
    const told = (observation: Observation) => observer(observation)
    if (this.#hasEnded) ended()
    else this.#observers.set(told, ended)
    return () => this.#observers.delete(told)
  }

  tell(observation: Observation): void {
    for (const observer of this.#observers.keys()) this.guard(() => observer(observation))
  }

  /** Runs what a user wrote; counts what it throws. */
  guard(run: () => void): void {
    try {
      run()
    } catch {
      this.#failures += 1
    }
  }

  end(): void {
    this.#hasEnded = true
    for (const ended of this.#observers.values()) this.guard(ended)
    this.#observers.clear()
  }
}
