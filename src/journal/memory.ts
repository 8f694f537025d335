/**
 * A journal in memory: for tests, simulations, and hosts that need no restart. It keeps the
 * contract of the durable one (positions at once, durability told later, in order, never inside
 * `append`), so a host cannot come to rely on anything that a disk would not give.
 */
import {
  type Checkpoint,
  type CheckpointQuery,
  checkEntry,
  type Journal,
  type JournalEntry,
  JournalFailure,
  type JournalListener,
  type JournalUsage,
  type KnownScope,
  knownScope,
  type ReadQuery,
  type StoredEntry,
} from './journal.ts'

/** What a journal holds: enough to open another one where this one ended. */
export interface JournalHistory {
  /** In position order. */
  readonly entries: ReadonlyArray<StoredEntry>
  readonly checkpoints: ReadonlyArray<Checkpoint>
}

export interface MemoryJournalOptions {
  /**
   * When a batch becomes durable: called once for each batch with the function that makes it so.
   * A simulator passes its own to delay, group or never run a sync. Default `queueMicrotask`.
   */
  readonly schedule?: (sync: () => void) => void
  /** What an earlier journal left (`survivors()`). Default: nothing. */
  readonly history?: JournalHistory
  /**
   * Entries that a checkpoint already stands for are dropped when there are more than this many,
   * so that a long-lived host does not grow for ever. Entries no checkpoint covers are always
   * kept. Default 100,000; `Infinity` keeps all.
   */
  readonly keepEntries?: number
}

export interface MemoryJournal extends Journal {
  /** What a power loss at this moment would leave: durable entries and checkpoints only. */
  readonly survivors: () => JournalHistory
  /** Fails the journal as a broken disk would. */
  readonly fail: (operation: string, cause: unknown) => void
}

const readBatchEntries = 1_000

/** Opens an empty (or restored) journal in memory. Never fails by itself; `fail` makes it. */
export const openMemoryJournal = (options: MemoryJournalOptions = {}): MemoryJournal => {
  return new InMemory(options)
}

class InMemory implements MemoryJournal {
  readonly #schedule: (sync: () => void) => void
  readonly #keepEntries: number
  #entries: Array<StoredEntry>
  readonly #checkpoints = new Map<string, Checkpoint>()
  #listener: JournalListener | undefined
  #last: number
  #durable: number
  #scheduled = false
  #failure: JournalFailure | undefined
  #isClosed = false
  #waiting: Array<{ through: number; resolve: () => void; reject: (error: JournalFailure) => void }> = []
  #compactAt: number

  constructor(options: MemoryJournalOptions) {
    this.#schedule = options.schedule ?? queueMicrotask
    this.#keepEntries = options.keepEntries ?? 100_000
    this.#compactAt = 2 * this.#keepEntries
    this.#entries = [...(options.history?.entries ?? [])]
    for (const checkpoint of options.history?.checkpoints ?? []) this.#keepNewest(checkpoint)
    this.#last = this.#entries.at(-1)?.position ?? 0
    for (const { position } of this.#checkpoints.values()) this.#last = Math.max(this.#last, position)
    this.#durable = this.#last
  }

  readonly listen = (listener: JournalListener): void => {
    this.#listener = listener
  }

  readonly append = (entry: JournalEntry): number => {
    this.#checkOpen('append')
    checkEntry(entry)
    const position = ++this.#last
    this.#entries.push({ position, scope: entry.scope, at: entry.at, record: entry.record })
    this.#sync()
    return position
  }

  readonly checkpoint = async (checkpoint: Checkpoint): Promise<void> => {
    this.#checkOpen('checkpoint')
    if (!(checkpoint.position <= this.#last)) {
      throw new RangeError(`checkpoint at ${checkpoint.position}, but the last entry is ${this.#last}`)
    }
    await this.#durableThrough(checkpoint.position)
    this.#keepNewest(checkpoint)
    this.#dropCovered()
  }

  readonly checkpoints = async (query: CheckpointQuery = {}): Promise<ReadonlyArray<Checkpoint>> => {
    const { untilAt = Infinity, scope, mostResting = Infinity } = query
    const found = [...this.#checkpoints.values()].filter(
      (one) => one.at <= untilAt && (scope === undefined || one.scope === scope),
    )
    const awake = found.filter(({ resting }) => resting !== true)
    const resting = found.filter((one) => one.resting === true).sort((a, b) => b.position - a.position)
    return [...awake, ...resting.slice(0, mostResting)].sort((a, b) => (a.scope < b.scope ? -1 : 1))
  }

  readonly recall = (scope: string): Checkpoint | null => this.#checkpoints.get(scope) ?? null

  readonly forget = async (scope: string): Promise<void> => {
    this.#checkOpen('forget')
    const through = this.#last
    await this.#durableThrough(through)
    this.#entries = this.#entries.filter((entry) => entry.scope !== scope || entry.position > through)
    if ((this.#checkpoints.get(scope)?.position ?? Infinity) <= through) this.#checkpoints.delete(scope)
  }

  // It reads from memory, where what is covered costs nothing to pass over.
  readonly covered = async (): Promise<void> => this.#checkOpen('covered')

  readonly usage = async (): Promise<JournalUsage> => {
    let bytes = 0
    for (const { record, scope } of this.#entries) bytes += record.length + scope.length
    const oldestAt = this.#entries[0]?.at ?? null
    return { bytes, walBytes: 0, walPinned: false, entries: this.#entries.length, oldestAt }
  }

  readonly scopes = async (): Promise<ReadonlyArray<KnownScope>> => {
    const names = new Set([...this.#checkpoints.keys(), ...this.#entries.map(({ scope }) => scope)])
    return [...names].sort().map((scope) => knownScope(scope, this.#checkpoints.get(scope)))
  }

  readonly read = (query: ReadQuery = {}): AsyncIterable<ReadonlyArray<StoredEntry>> => this.#read(query)

  readonly close = async (): Promise<void> => {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#failure === undefined) await this.#durableThrough(this.#last)
  }

  readonly survivors = (): JournalHistory => ({
    entries: this.#entries.filter(({ position }) => position <= this.#durable),
    checkpoints: [...this.#checkpoints.values()],
  })

  readonly fail = (operation: string, cause: unknown): void => {
    if (this.#failure !== undefined) return
    const failure = new JournalFailure(':memory:', operation, cause)
    this.#failure = failure
    for (const { reject } of this.#waiting.splice(0)) reject(failure)
    this.#listener?.failed(failure)
  }

  #checkOpen(operation: string): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#isClosed) throw new JournalFailure(':memory:', operation, new Error('the journal is closed'))
  }

  #sync(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#schedule(() => {
      this.#scheduled = false
      if (this.#failure !== undefined || this.#durable === this.#last) return
      this.#durable = this.#last
      const reached = this.#waiting.filter(({ through }) => through <= this.#durable)
      this.#waiting = this.#waiting.filter(({ through }) => through > this.#durable)
      for (const { resolve } of reached) resolve()
      this.#listener?.durable(this.#durable)
    })
  }

  #durableThrough(through: number): Promise<void> {
    if (through <= this.#durable) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#waiting.push({ through, resolve, reject })
    })
  }

  async *#read(query: ReadQuery): AsyncGenerator<ReadonlyArray<StoredEntry>> {
    const { scope, after = 0, untilAt = Infinity, uncovered = false, naming } = query
    if (this.#failure === undefined) await this.#durableThrough(this.#last)
    const found = this.#entries.filter(
      (entry) =>
        entry.position > after &&
        entry.position <= this.#durable &&
        entry.at <= untilAt &&
        (naming === undefined || (entry.position <= naming.through && entry.record.includes(naming.text))) &&
        (!uncovered || entry.position > (this.#checkpoints.get(entry.scope)?.position ?? 0)) &&
        (scope === undefined || entry.scope === scope),
    )
    for (let from = 0; from < found.length; from += readBatchEntries) {
      yield found.slice(from, from + readBatchEntries)
    }
  }

  #keepNewest(checkpoint: Checkpoint): void {
    const known = this.#checkpoints.get(checkpoint.scope)
    if (known === undefined || known.position <= checkpoint.position) {
      this.#checkpoints.set(checkpoint.scope, checkpoint)
    }
  }

  #dropCovered(): void {
    if (this.#entries.length <= this.#compactAt) return
    const oldestKept = this.#last - this.#keepEntries
    this.#entries = this.#entries.filter(
      ({ position, scope }) =>
        position > oldestKept || position > (this.#checkpoints.get(scope)?.position ?? 0),
    )
    // The next pass waits for as many new entries as this one left, so that passes stay amortized.
    this.#compactAt = Math.max(2 * this.#keepEntries, 2 * this.#entries.length)
  }
}
