/** The host without a face: scopes and their runners over one journal. */

import { type Evidence, type PolicyInput, parsePolicy } from '../../machines/index.ts'
import { type Clock, steadyClock } from '../clock.ts'
import type { Journal, JournalFailure } from '../journal/journal.ts'
import { snapshotSize, snapshotText } from './checkpointing.ts'
import { inherited } from './holding.ts'
import { Outbox } from './outbox.ts'
import { ProcessHold } from './process-hold.ts'
import { type Replayed, replayJournal } from './recovery.ts'
import { scopeParts } from './scope-name.ts'
import { type Observation, type RunnerPorts, ScopeRunner, startScope } from './scope-runner.ts'

/** Entries after which a scope writes a checkpoint; more when there is more to write, so that the cost per event stays flat. */
const checkpointEntries = 4_096
const checkpointEntriesPerItem = 4
/** The end of an episode is a good moment for one, when there is something to save, and little to write for it. */
const checkpointEntriesAtEpisodeEnd = 256

export interface KernelOptions {
  readonly journal: Journal
  /** For messages. */
  readonly journalPath: string
  readonly clock: Clock
}

export class Kernel {
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #ports: RunnerPorts
  readonly #runners = new Map<string, ScopeRunner>()
  /** With what they hear when the host has closed. */
  readonly #observers = new Map<(observation: Observation) => void, () => void>()
  #observerFailures = 0
  readonly #checkpoints = new Map<string, Promise<void>>()
  /** Settles when no snapshot is being made: one at a time, so that many scopes take no more turns than one. */
  #encoding: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | null = null
  #hasClosed = false

  private constructor(journal: Journal, clock: Clock) {
    this.#journal = journal
    this.#clock = clock
    this.#outbox = new Outbox(journal, (failure) => {
      for (const runner of this.#runners.values()) runner.fail(failure)
    })
    this.#ports = {
      clock,
      outbox: this.#outbox,
      hold: new ProcessHold(clock),
      isObserved: () => this.#observers.size > 0,
      observe: (observation) => {
        for (const observer of this.#observers.keys()) this.#tell(() => observer(observation))
      },
      written: (runner, episodeEnded) => this.#considerCheckpoint(runner, episodeEnded),
      spread: (from, evidence) => this.#spread(from, evidence),
    }
  }

  /** Opens over a journal and takes up every scope in it. Fails closed on history that it cannot read. */
  static async open({ journal, journalPath, clock }: KernelOptions): Promise<Kernel> {
    const replayed = await replayJournal(journal, journalPath)
    const newestMs = Math.max(0, ...[...replayed.values()].map(({ context }) => context.at))
    const kernel = new Kernel(journal, steadyClock(clock, newestMs))
    for (const scope of replayed.values()) kernel.#takeUp(scope)
    return kernel
  }

  get clock(): Clock {
    return this.#clock
  }

  get journal(): Journal {
    return this.#journal
  }

  /** Why nothing is decided any more; null while the journal keeps what it is given. */
  get failure(): JournalFailure | null {
    return this.#outbox.failure
  }

  get runners(): ReadonlyMap<string, ScopeRunner> {
    return this.#runners
  }

  /** The runner of a scope, made when it is new. A policy that differs from the one in force replaces it. */
  scope(name: string, policy?: PolicyInput): ScopeRunner {
    let runner = this.#runners.get(name)
    if (runner === undefined) {
      runner = new ScopeRunner(name, startScope(name), this.#ports)
      this.#runners.set(name, runner)
      this.#inherit(runner)
      if (this.#outbox.failure !== null) runner.fail(this.#outbox.failure)
      if (this.#closing !== null) runner.close()
    }
    if (policy !== undefined) {
      const next = parsePolicy(policy)
      if (JSON.stringify(next) !== JSON.stringify(runner.context.policy)) runner.changePolicy(next)
    }
    return runner
  }

  /** Hears of every event that any scope is told from now on, once it is durable, and of the end. Answers how to stop. */
  observe(observer: (observation: Observation) => void, ended: () => void = () => {}): () => void {
    // Its own key, so that one function may observe twice.
    const told = (observation: Observation) => observer(observation)
    if (this.#hasClosed) ended()
    else this.#observers.set(told, ended)
    return () => this.#observers.delete(told)
  }

  /** What observers threw: it harms neither scopes nor other observers. */
  get observerFailures(): number {
    return this.#observerFailures
  }

  #tell(tell: () => void): void {
    try {
      tell()
    } catch {
      this.#observerFailures += 1
    }
  }

  /** Writes a checkpoint of `runner` as it is now; joins one that is under way. Never holds the event loop for long. */
  checkpoint(runner: ScopeRunner): Promise<void> {
    const running = this.#checkpoints.get(runner.name)
    if (running !== undefined) return running
    runner.entriesSinceCheckpoint = 0
    const { context, name, position } = runner
    const encoded = this.#encoding.then(() => snapshotText(context))
    this.#encoding = encoded.catch(() => {})
    const written = encoded
      .then((snapshot) => this.#journal.checkpoint({ scope: name, position, at: context.at, snapshot }))
      // A journal that fails tells its listener; a checkpoint only shortens recovery.
      .catch(() => {})
      .finally(() => this.#checkpoints.delete(name))
    this.#checkpoints.set(name, written)
    return written
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
      await Promise.all([...this.#runners.values()].map((runner) => this.#lastCheckpoint(runner)))
    }
    try {
      await this.#journal.close()
    } finally {
      this.#hasClosed = true
      for (const ended of this.#observers.values()) this.#tell(ended)
      this.#observers.clear()
    }
  }

  /** One that is under way may not hold the newest entries. */
  async #lastCheckpoint(runner: ScopeRunner): Promise<void> {
    await this.#checkpoints.get(runner.name)
    if (runner.entriesSinceCheckpoint > 0) await this.checkpoint(runner)
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

  #takeUp({ scope, context, position, entries }: Replayed): void {
    const runner = new ScopeRunner(scope, startScope(scope, context), this.#ports)
    runner.position = position
    runner.entriesSinceCheckpoint = entries
    this.#runners.set(scope, runner)
    if (runner.liveCalls > 0) runner.tell({ type: 'host.recovered' })
  }

  #considerCheckpoint(runner: ScopeRunner, episodeEnded: boolean): void {
    const entries = runner.entriesSinceCheckpoint
    if (entries < checkpointEntriesAtEpisodeEnd) return
    const size = snapshotSize(runner.context)
    const goodMoment = episodeEnded && entries >= size
    if (goodMoment || entries >= Math.max(checkpointEntries, checkpointEntriesPerItem * size)) {
      void this.checkpoint(runner)
    }
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

/** Whether evidence of this scope, met under the one name, speaks of the other. A free name stands alone. */
const reaches = (scope: Evidence['scope'], from: string, to: string): boolean => {
  const [source, other] = [scopeParts(from), scopeParts(to)]
  if (source === null || other === null || other.provider !== source.provider) return false
  return scope === 'provider' || (scope === 'credential' && other.credential === source.credential)
}
