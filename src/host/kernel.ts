/** The host without a face: scopes and their runners over one journal. */

import {
  defaultPolicy,
  type Evidence,
  type PolicyInput,
  parsePolicy,
  policyPresets,
} from '../../machines/index.ts'
import { type Clock, steadyClock } from '../clock.ts'
import type { Journal, JournalFailure } from '../journal/journal.ts'
import { Checkpoints } from './checkpoints.ts'
import { inherited, reaches } from './holding.ts'
import { Observers } from './observers.ts'
import { Outbox } from './outbox.ts'
import { ProcessHold } from './process-hold.ts'
import { keepFollowed, Replayed, replayJournal } from './recovery.ts'
import { startScope } from './scope-actor.ts'
import type { Observation } from './scope-record.ts'
import { type RunnerPorts, ScopeRunner } from './scope-runner.ts'

/** Idle scopes kept in memory unless the host says otherwise. */
export const defaultScopesInMemory = 1_024
/** Share of them that may be exceeded before some leave: leaving looks at all. */
const restingSlack = 1 / 8

export interface KernelOptions {
  readonly journal: Journal
  /** For messages. */
  readonly journalPath: string
  readonly clock: Clock
  /** Scopes at rest beyond this many leave memory, least recently used first, and come back when asked for. Default 1,024. */
  readonly scopesInMemory?: number
}

export class Kernel {
  readonly #journal: Journal
  readonly #scopesInMemory: number
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #ports: RunnerPorts
  readonly #runners = new Map<string, ScopeRunner>()
  readonly #observers = new Observers()
  readonly #failureListeners: Array<(failure: JournalFailure) => void> = []
  readonly #scopeFailureListeners = new Set<(scope: string, cause: unknown) => void>()
  readonly #checkpoints: Checkpoints
  /** Scopes whose forgetting is not durable yet: their history in the journal is over. */
  readonly #forgetting = new Map<string, Promise<void>>()
  readonly #leaving = new Set<string>()
  #uses = 0
  #closing: Promise<void> | null = null

  private constructor(journal: Journal, clock: Clock, scopesInMemory: number) {
    this.#journal = journal
    this.#scopesInMemory = scopesInMemory
    this.#clock = clock
    this.#outbox = new Outbox(journal, (failure) => {
      for (const runner of this.#runners.values()) runner.fail(failure)
      for (const heard of this.#failureListeners.splice(0)) heard(failure)
    })
    this.#checkpoints = new Checkpoints(journal, this.#outbox, this.#runners)
    this.#ports = {
      clock,
      outbox: this.#outbox,
      hold: new ProcessHold(clock),
      isObserved: () => !this.#observers.isEmpty,
      observe: (observation) => this.#observers.tell(observation),
      written: (runner, episodeEnded) => {
        runner.usedAt = ++this.#uses
        this.#checkpoints.consider(runner, episodeEnded)
      },
      failed: ({ name }, cause) => {
        for (const heard of this.#scopeFailureListeners) this.#observers.guard(() => heard(name, cause))
      },
      spread: (from, evidence) => this.#spread(from, evidence),
    }
  }

  /**
   * Opens over a journal and takes up what is live in it; a scope at rest comes when it is asked for.
   * A scope whose history cannot be gone on from fails alone (`failures`). Rejects with the journal's
   * error where its rows cannot be read.
   */
  static async open(options: KernelOptions): Promise<Kernel> {
    const { journal, journalPath, clock, scopesInMemory = defaultScopesInMemory } = options
    if (!(scopesInMemory >= 1))
      throw new RangeError(`scopesInMemory must be at least 1, got ${scopesInMemory}`)
    const replayed = await replayJournal(journal, journalPath, scopesInMemory)
    let newestMs = 0
    for (const { context } of replayed.values()) newestMs = Math.max(newestMs, context.at)
    const kernel = new Kernel(journal, steadyClock(clock, newestMs), scopesInMemory)
    // Nothing is decided on top of a record that this version would have decided otherwise before a checkpoint stands for it.
    await Promise.all([...replayed.values()].map((scope) => keepFollowed(journal, scope)))
    for (const scope of replayed.values()) kernel.#takeUp(scope)
    return kernel
  }

  get clock(): Clock {
    return this.#clock
  }

  get journal(): Journal {
    return this.#journal
  }

  /** Why nothing is decided any more; null while the journal works. */
  get failure(): JournalFailure | null {
    return this.#outbox.failure
  }

  /** Hears once that the journal has failed; at once when it has already. */
  whenFailed(heard: (failure: JournalFailure) => void): void {
    if (this.#outbox.failure !== null) heard(this.#outbox.failure)
    else this.#failureListeners.push(heard)
  }

  /** Hears of every scope that stops, and why. Returns how to stop. */
  whenScopeFails(heard: (scope: string, cause: unknown) => void): () => void {
    this.#scopeFailureListeners.add(heard)
    return () => this.#scopeFailureListeners.delete(heard)
  }

  get runners(): ReadonlyMap<string, ScopeRunner> {
    return this.#runners
  }

  /** Scopes that have stopped, and why, by name. Those of the journal's own failure are not among them. */
  get failures(): ReadonlyMap<string, unknown> {
    const failed = [...this.#runners.values()].filter(
      ({ failure }) => failure !== null && failure !== this.failure,
    )
    return new Map(failed.map(({ name, failure }) => [name, failure]))
  }

  /**
   * The runner of a scope, made when it is new: then with the default preset. A policy that differs from the one in force
   * replaces it. Fields that it leaves out are those of the preset with which the scope was opened.
   */
  scope(name: string, policy?: PolicyInput): ScopeRunner {
    const runner = this.#runners.get(name) ?? this.#begin(name, policy)
    runner.usedAt = ++this.#uses
    if (policy !== undefined) use(runner, policy)
    return runner
  }

  /** Whether the scope is in memory, or at rest in the journal. */
  knows(name: string): boolean {
    if (this.#runners.has(name)) return true
    return !this.#forgetting.has(name) && this.#journal.recall(name) !== null
  }

  /**
   * Drops a scope from memory, snapshot and journal; what comes under its name later begins anew.
   * Answers false, and changes nothing, while anything in it waits, runs, is due or is held; one that has failed goes at once. Rejects
   * with the journal's failure.
   */
  async forget(name: string): Promise<boolean> {
    const runner = this.#runners.get(name)
    if (runner !== undefined && !runner.isResting && runner.failure === null) return false
    // A checkpoint that is under way would come after the forgetting.
    await this.#checkpoints.settled(name)
    if (
      this.#runners.get(name) !== runner ||
      (runner !== undefined && !runner.isResting && runner.failure === null)
    )
      return false
    runner?.rest(() => this.scope(name))
    this.#runners.delete(name)
    const forgotten = this.#journal.forget(name).finally(() => this.#forgetting.delete(name))
    this.#forgetting.set(name, forgotten)
    await forgotten
    return true
  }

  /** Hears of every event that any scope is told from now on, once it is durable, and of the end. Answers how to stop. */
  observe(observer: (observation: Observation) => void, ended: () => void = () => {}): () => void {
    return this.#observers.add(observer, ended)
  }

  /** What observers threw: it harms neither scopes nor other observers. */
  get observerFailures(): number {
    return this.#observers.failures
  }

  /** Writes a checkpoint of `runner` as it is now; joins one that is under way. Never holds the event loop for long. */
  checkpoint(runner: ScopeRunner): Promise<void> {
    return this.#checkpoints.write(runner)
  }

  /**
   * Releases every waiter and ends; waiting calls keep their places in the journal. Waits at most
   * `graceMs` for permits that are out; what is not settled by then is unknown to the next host.
   */
  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs)
    return this.#closing
  }

  async #close(graceMs: number): Promise<void> {
    for (const runner of this.#runners.values()) runner.refuseWaiters()
    if (graceMs > 0) await this.#permitsSettled(graceMs)
    for (const runner of this.#runners.values()) runner.close()
    if (this.#outbox.failure === null) {
      const sound = [...this.#runners.values()].filter(({ failure }) => failure === null)
      await Promise.all(sound.map((runner) => this.#checkpoints.writeLast(runner)))
      await this.#checkpoints.cover()
    }
    try {
      await this.#journal.close()
    } finally {
      this.#observers.end()
    }
  }

  #permitsSettled(graceMs: number): Promise<void> {
    const open = () => [...this.#runners.values()].some(({ openPermits }) => openPermits > 0)
    if (!open()) return Promise.resolve()
    return new Promise((resolve) => {
      const { hold } = this.#ports
      hold.take()
      const done = () => {
        stop()
        cancel()
        hold.drop()
        resolve()
      }
      const stop = this.observe(() => open() || done())
      const cancel = this.#clock.after(graceMs, done)
    })
  }

  #takeUp({ scope, context, position, entries, uncoveredFrom, failure }: Replayed): ScopeRunner {
    const runner = new ScopeRunner(scope, startScope(scope, context), this.#ports)
    runner.record.position = position
    runner.record.entriesSinceCheckpoint = entries
    runner.record.uncoveredFrom = uncoveredFrom
    this.#runners.set(scope, runner)
    if (failure !== null) runner.fail(failure)
    else if (runner.liveCalls > 0) runner.tell({ type: 'host.recovered' })
    return runner
  }

  /** A scope that is not in memory: as its newest checkpoint has it, or new. */
  #begin(name: string, policy: PolicyInput = {}): ScopeRunner {
    const runner = this.#recall(name)
    runner.usedAt = ++this.#uses
    const isOver = this.#outbox.failure !== null || this.#closing !== null
    // Its journal says which policy it was opened with: a later version may have another default.
    if (runner.position === 0 && !isOver) use(runner, policy, defaultPolicy)
    this.#inherit(runner)
    if (this.#outbox.failure !== null) runner.fail(this.#outbox.failure)
    if (this.#closing !== null) runner.close()
    if (this.#runners.size > this.#scopesInMemory * (1 + restingSlack)) this.#letRest()
    return runner
  }

  #recall(name: string): ScopeRunner {
    const isOver = this.#forgetting.has(name)
    return this.#takeUp(Replayed.from(name, () => (isOver ? null : this.#journal.recall(name))))
  }

  /** The least recently used of the scopes at rest leave memory. */
  #letRest(): void {
    const resting = [...this.#runners.values()]
      .filter((runner) => runner.isResting && !this.#leaving.has(runner.name))
      .sort((one, other) => one.usedAt - other.usedAt)
    const surplus = this.#runners.size - this.#leaving.size - this.#scopesInMemory
    for (const runner of resting.slice(0, Math.max(0, surplus))) {
      this.#leaving.add(runner.name)
      void this.#leave(runner).finally(() => this.#leaving.delete(runner.name))
    }
  }

  /** It leaves once its checkpoint is durable, unless somebody uses it meanwhile. */
  async #leave(runner: ScopeRunner): Promise<void> {
    await this.#checkpoints.writeLast(runner)
    if (runner.record.uncoveredFrom !== null || !runner.isResting) return
    if (this.#closing !== null || this.#runners.get(runner.name) !== runner) return
    runner.rest(() => this.scope(runner.name))
    this.#runners.delete(runner.name)
  }

  /** A scope that is met while its credential or its provider's host is held is held as long. */
  #inherit(runner: ScopeRunner): void {
    const nowMs = this.#clock.now()
    for (const other of this.#runners.values()) {
      if (other === runner) continue
      const evidence = inherited(other.context.wait, nowMs)
      if (evidence !== null && reaches(evidence.scope, other.name, runner.name)) runner.hear(evidence)
    }
  }

  /** What holds the whole credential, or the provider's host, holds the sibling scopes too. */
  #spread(from: ScopeRunner, evidence: Evidence): void {
    for (const runner of this.#runners.values()) {
      if (runner !== from && reaches(evidence.scope, from.name, runner.name)) runner.hear(evidence)
    }
  }
}

/** Puts a policy in force. What it leaves out is as in `base`. Throws `InvalidInput`. */
const use = (
  runner: ScopeRunner,
  policy: PolicyInput,
  base = policyPresets[runner.context.policy.preset],
): void => {
  const next = parsePolicy(policy, base)
  if (JSON.stringify(next) !== JSON.stringify(runner.context.policy)) runner.changePolicy(next)
}
