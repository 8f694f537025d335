/**
 * The embedded journal: SQLite in one worker thread. On the caller's thread `append` only pushes
 * to a list; lists go to the worker, which commits many entries with one sync.
 */
import { resolve } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { checkpointParts } from './checkpoints.ts'
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
  type ReadQuery,
  type StoredEntry,
} from './journal.ts'
import { type OpenTables, openTables } from './reader.ts'
import { type SqliteJournalOptions, startWorker } from './sqlite-start.ts'
import {
  type Answer,
  type CompactionResult,
  fromWire,
  packEntries,
  type ReadAnswer,
  type Reply,
  type Request,
  unpackEntries,
} from './wire.ts'

export type { SqliteJournalOptions } from './sqlite-start.ts'

export interface SqliteJournal extends Journal {
  /** Drops what `keepEntriesMs` allows now, in slices between commits. Resolves when done. */
  readonly compact: () => Promise<CompactionResult>
}

/** Entries in one message: bounds how long packing one holds the caller's thread. */
const batchEntries = 1_024
/** A second batch travels while the first is being synced, so that the worker never waits for the caller. */
const batchesUnderWay = 2
/** So many entries go before the caller's turn ends: the worker commits them while the caller goes on deciding. */
const earlyEntries = 64

/**
 * Opens or creates the journal in `file`. Rejects with `JournalLocked`, `JournalTooNew`,
 * `JournalUnavailable`, `JournalCorrupt` or `JournalFailure`; nothing stays open then.
 */
export const openSqliteJournal = async (
  file: string,
  options: SqliteJournalOptions = {},
): Promise<SqliteJournal> => {
  const path = resolve(file)
  const { worker, last } = await startWorker(path, options)
  return new WorkerJournal(path, worker, last)
}

interface Waiter {
  readonly through: number
  readonly resolve: () => void
  readonly reject: (error: JournalFailure) => void
}

interface Caller {
  readonly resolve: (value: Answer) => void
  readonly reject: (error: Error) => void
}

class WorkerJournal implements SqliteJournal {
  readonly #path: string
  readonly #worker: Worker
  #listener: JournalListener | undefined
  #last: number
  #durable: number
  #pending: Array<StoredEntry> = []
  #isFlushDue = false
  /** Last position of each batch the worker has and has not acknowledged. */
  readonly #underWay: Array<number> = []
  readonly #callers = new Map<number, Caller>()
  #requests = 0
  #waiters: Array<Waiter> = []
  #failure: JournalFailure | undefined
  #closed: Promise<void> | undefined
  #isReferenced = true
  #isEnding = false
  #hasExited = false
  /** For `recall`; opened when it is first needed. */
  #tables: OpenTables | undefined

  constructor(path: string, worker: Worker, last: number) {
    this.#path = path
    this.#worker = worker
    this.#last = last
    this.#durable = last
    worker.on('message', (reply: Reply) => this.#receive(reply))
    worker.on('error', (error) => this.#fail(new JournalFailure(path, 'worker', error)))
    worker.on('exit', () => this.#exited())
    this.#holdProcess()
  }

  readonly listen = (listener: JournalListener): void => {
    this.#listener = listener
  }

  readonly append = (entry: JournalEntry): number => {
    if (this.#failure !== undefined || this.#closed !== undefined) throw this.#ended('append')
    checkEntry(entry)
    const { scope, at, record } = entry
    const position = ++this.#last
    this.#pending.push({ position, scope, at, record })
    if (this.#underWay.length >= batchesUnderWay) return position
    if (this.#pending.length >= earlyEntries) this.#flush()
    else if (!this.#isFlushDue) {
      this.#isFlushDue = true
      queueMicrotask(() => this.#flush())
    }
    return position
  }

  readonly checkpoint = async (checkpoint: Checkpoint): Promise<void> => {
    if (this.#failure !== undefined || this.#closed !== undefined) throw this.#ended('checkpoint')
    if (!(checkpoint.position <= this.#last)) {
      throw new RangeError(`checkpoint at ${checkpoint.position}, but the last entry is ${this.#last}`)
    }
    await this.#durableThrough(checkpoint.position)
    for (const part of checkpointParts(checkpoint)) {
      await this.#request((id) => ({ kind: 'checkpoint', id, part }))
    }
  }

  readonly checkpoints = async (query: CheckpointQuery = {}): Promise<ReadonlyArray<Checkpoint>> => {
    return (await this.#request((id) => ({ kind: 'checkpoints', id, query }))) as ReadonlyArray<Checkpoint>
  }

  readonly recall = (scope: string): Checkpoint | null => {
    // Read here, not in the thread: whoever asks for a scope gets it at once.
    this.#tables ??= openTables(this.#path)
    const { checkpoints } = this.#tables
    const newest = checkpoints.newestRow(scope)
    return newest === undefined ? null : checkpoints.load(newest)
  }

  readonly forget = async (scope: string): Promise<void> => {
    if (this.#failure !== undefined || this.#closed !== undefined) throw this.#ended('forget')
    const through = this.#last
    await this.#durableThrough(through)
    await this.#request((id) => ({ kind: 'forget', id, scope, through }))
  }

  readonly covered = async (through: number): Promise<void> => {
    await this.#request((id) => ({ kind: 'covered', id, through }))
  }

  readonly usage = async (): Promise<JournalUsage> =>
    (await this.#request((id) => ({ kind: 'usage', id }))) as JournalUsage

  readonly scopes = async (): Promise<ReadonlyArray<KnownScope>> =>
    (await this.#request((id) => ({ kind: 'scopes', id }))) as ReadonlyArray<KnownScope>

  readonly read = (query: ReadQuery = {}): AsyncIterable<ReadonlyArray<StoredEntry>> => this.#read(query)

  readonly compact = async (): Promise<CompactionResult> =>
    (await this.#request((id) => ({ kind: 'compact', id }))) as CompactionResult

  readonly close = (): Promise<void> => {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async *#read({ after = 0, ...filter }: ReadQuery): AsyncGenerator<ReadonlyArray<StoredEntry>> {
    if (this.#failure === undefined) await this.#durableThrough(this.#last)
    const ask = async (from: number, first: boolean): Promise<ReadAnswer> => {
      const slice = { ...filter, after: from, first }
      return (await this.#request((id) => ({ kind: 'read', id, slice }))) as ReadAnswer
    }
    let slice = ask(after, true)
    for (;;) {
      const { entries, through, done } = await slice
      if (!done) {
        // The worker reads on while the caller works; if the caller stops, nobody asks how that went.
        slice = ask(through, false)
        slice.catch(() => {})
      }
      const unpacked = unpackEntries(entries)
      if (unpacked.length > 0) yield unpacked
      if (done) return
    }
  }

  async #close(): Promise<void> {
    const exited = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()))
    const failedBefore = this.#failure
    this.#isEnding = true
    this.#holdProcess()
    try {
      if (this.#failure === undefined) await this.#durableThrough(this.#last).catch(() => {})
      // Before the writer, which removes the WAL when it is the last.
      this.#tables?.db.close()
      this.#tables = undefined
      // Also after a failure: the worker gives the lease back if it still can.
      await this.#request((id) => ({ kind: 'close', id }))
    } catch {
      await this.#worker.terminate()
    }
    if (!this.#hasExited) await exited
    // A failure that came before was told before; one that came now means that not all is durable.
    if (this.#failure !== undefined && failedBefore === undefined) throw this.#failure
  }

  #exited(): void {
    this.#hasExited = true
    const ended = new JournalFailure(this.#path, 'worker', new Error('the thread ended'))
    if (!this.#isEnding) this.#fail(ended)
    for (const { reject } of this.#callers.values()) reject(ended)
    this.#callers.clear()
    this.#isEnding = false
    this.#holdProcess()
  }

  #flush(): void {
    this.#isFlushDue = false
    while (this.#pending.length > 0 && this.#underWay.length < batchesUnderWay) {
      if (this.#failure !== undefined) return
      const entries =
        this.#pending.length <= batchEntries ? this.#pending : this.#pending.slice(0, batchEntries)
      this.#pending = entries === this.#pending ? [] : this.#pending.slice(batchEntries)
      this.#underWay.push(entries.at(-1)!.position)
      this.#post({ kind: 'append', entries: packEntries(entries) })
    }
  }

  #receive(reply: Reply): void {
    if (typeof reply === 'number') {
      this.#acknowledge(reply)
    } else if (reply.kind === 'failed') {
      const error = fromWire(reply.error)
      this.#fail(error instanceof JournalFailure ? error : new JournalFailure(this.#path, 'commit', error))
    } else if (reply.kind !== 'opened') {
      const caller = this.#callers.get(reply.id)
      this.#callers.delete(reply.id)
      this.#holdProcess()
      if (reply.kind === 'answer') caller?.resolve(reply.value)
      else caller?.reject(fromWire(reply.error))
    }
  }

  #acknowledge(through: number): void {
    if (this.#failure !== undefined) return
    while (this.#underWay.length > 0 && this.#underWay[0]! <= through) this.#underWay.shift()
    this.#durable = through
    this.#flush()
    this.#holdProcess()
    if (this.#waiters.length > 0) {
      const reached = this.#waiters.filter((waiter) => waiter.through <= through)
      this.#waiters = this.#waiters.filter((waiter) => waiter.through > through)
      for (const { resolve } of reached) resolve()
    }
    this.#listener?.durable(through)
  }

  #fail(failure: JournalFailure): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.#pending = []
    this.#underWay.length = 0
    for (const { reject } of this.#waiters.splice(0)) reject(failure)
    for (const { reject } of this.#callers.values()) reject(failure)
    this.#callers.clear()
    this.#holdProcess()
    this.#listener?.failed(failure)
  }

  #durableThrough(through: number): Promise<void> {
    if (through <= this.#durable) return Promise.resolve()
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiters.push({ through, resolve, reject })
    })
  }

  #request(make: (id: number) => Request): Promise<Answer> {
    if (this.#hasExited) return Promise.reject(this.#ended('request'))
    return new Promise((resolve, reject) => {
      const id = ++this.#requests
      this.#callers.set(id, { resolve, reject })
      this.#post(make(id))
    })
  }

  #post(request: Request): void {
    this.#holdProcess()
    this.#worker.postMessage(request)
  }

  /** The thread keeps the process alive only while someone waits for it. */
  #holdProcess(): void {
    const isNeeded = this.#isEnding || this.#underWay.length > 0 || this.#callers.size > 0
    if (isNeeded === this.#isReferenced) return
    this.#isReferenced = isNeeded
    if (isNeeded) this.#worker.ref()
    else this.#worker.unref()
  }

  #ended(operation: string): JournalFailure {
    return this.#failure ?? new JournalFailure(this.#path, operation, new Error('the journal is closed'))
  }
}
