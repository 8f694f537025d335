/** When a scope's checkpoint is written, and up to where checkpoints stand for what the journal holds. */
import type { Journal } from '../journal/journal.ts'
import { snapshotSize, snapshotText } from './checkpointing.ts'
import type { Outbox } from './outbox.ts'
import { restsIn } from './scope-actor.ts'
import type { ScopeRunner } from './scope-runner.ts'

/** Entries after which a scope writes a checkpoint; more when there is more to write, so that the cost per event stays flat. */
const checkpointEntries = 4_096
const checkpointEntriesPerItem = 4
/** The end of an episode is a good moment for one, when there is something to save, and little to write for it. */
const checkpointEntriesAtEpisodeEnd = 256
/** After so many entries a scope that wrote few of them gets a checkpoint too, so that opening reads no further back. */
const coverEveryEntries = 16_384

export class Checkpoints {
  readonly #journal: Journal
  readonly #outbox: Outbox
  readonly #runners: ReadonlyMap<string, ScopeRunner>
  readonly #underWay = new Map<string, Promise<void>>()
  /** Settles when no snapshot is being made: one at a time, so that many scopes take no more turns than one. */
  #encoding: Promise<unknown> = Promise.resolve()
  #covered = 0
  #coverAt = 0

  /** Of the scopes in `runners`, a map that their host keeps. */
  constructor(journal: Journal, outbox: Outbox, runners: ReadonlyMap<string, ScopeRunner>) {
    this.#journal = journal
    this.#outbox = outbox
    this.#runners = runners
  }

  /** Settles when no checkpoint of the scope is under way. */
  settled(name: string): Promise<void> {
    return this.#underWay.get(name) ?? Promise.resolve()
  }

  /** Writes a checkpoint of `runner` as it is now; joins one that is under way. Never holds the event loop for long. */
  write(runner: ScopeRunner): Promise<void> {
    const running = this.#underWay.get(runner.name)
    if (running !== undefined) return running
    // The scope's memory and its history differ.
    if (runner.failure !== null) return Promise.resolve()
    runner.record.entriesSinceCheckpoint = 0
    const { context, name, position } = runner
    const rest = restsIn(context) ? { resting: true } : {}
    const encoded = this.#encoding.then(() => snapshotText(context))
    this.#encoding = encoded.catch(() => {})
    const written = encoded
      .then((snapshot) =>
        this.#journal.checkpoint({ scope: name, position, at: context.at, snapshot, ...rest }),
      )
      .then(() => {
        runner.record.uncoveredFrom = runner.record.position === position ? null : position + 1
      })
      // A journal that fails tells its listener; a checkpoint only shortens recovery.
      .catch(() => {})
      .finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, written)
    return written
  }

  /** Writes one after the scope's newest entry; one that is under way may not hold it. */
  async writeLast(runner: ScopeRunner): Promise<void> {
    await this.settled(runner.name)
    if (runner.record.entriesSinceCheckpoint > 0) await this.write(runner)
  }

  /** The scope has written: writes a checkpoint where it is time for one. */
  consider(runner: ScopeRunner, episodeEnded: boolean): void {
    if (this.#outbox.last - this.#coverAt >= coverEveryEntries) void this.#coverLagging()
    const entries = runner.record.entriesSinceCheckpoint
    if (entries < checkpointEntriesAtEpisodeEnd) return
    const size = snapshotSize(runner.context)
    const goodMoment = episodeEnded && entries >= size
    if (goodMoment || entries >= Math.max(checkpointEntries, checkpointEntriesPerItem * size))
      void this.write(runner)
  }

  /** Tells the journal up to where checkpoints stand for everything. */
  async cover(): Promise<void> {
    let through = this.#outbox.last
    for (const {
      record: { uncoveredFrom },
    } of this.#runners.values()) {
      if (uncoveredFrom !== null) through = Math.min(through, uncoveredFrom - 1)
    }
    if (through <= this.#covered) return
    this.#covered = through
    // A journal that fails tells its listener.
    await this.#journal.covered(through).catch(() => {})
  }

  /** Scopes that wrote little get a checkpoint as well, so that no entry of theirs stays the oldest for ever. */
  async #coverLagging(): Promise<void> {
    const { last } = this.#outbox
    this.#coverAt = last
    const lagging = [...this.#runners.values()].filter(
      ({ record: { uncoveredFrom }, failure }) =>
        failure === null && uncoveredFrom !== null && uncoveredFrom <= last - coverEveryEntries,
    )
    await Promise.all(lagging.map((runner) => this.write(runner)))
    await this.cover()
  }
}
