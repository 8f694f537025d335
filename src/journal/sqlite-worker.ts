/**
 * The journal's thread: takes batches from the caller's thread, commits whatever has arrived
 * since the last commit in one sync, and does the slow chores (moving the WAL, retention,
 * heartbeats) between commits.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { JournalCorrupt } from './journal.ts'
import { explainOpening } from './opening.ts'
import { CompactionRun } from './retention.ts'
import { type Answer, packEntries, type Reply, type Request, toWire, unpackEntries } from './wire.ts'
import { JournalWriter, type WriterOptions } from './writer.ts'

/** What the caller's thread hands over at the start. */
export interface WorkerStart {
  readonly path: string
  readonly writer: WriterOptions
  /** Retention runs this often, ms; 0 for never by itself. */
  readonly compactEveryMs: number
}

/** The WAL is moved into the main file when it is this big and nothing has come for a moment, */
const walIdleBytes = 1024 * 1024
const lullMs = 20
/** and at this size even under load: a bigger WAL makes each move, and each recovery, longer. */
const walBusyBytes = 8 * 1024 * 1024

/** Entries of forgotten scopes stand among all others: looking for them means looking at every entry. */
const dropForgottenEveryMs = 3_600_000

class JournalThread {
  readonly #port: MessagePort
  readonly #start: WorkerStart
  readonly #writer: JournalWriter
  #failed = false
  #lull: NodeJS.Timeout | undefined
  readonly #timers: Array<NodeJS.Timeout> = []
  #compaction: CompactionRun | undefined
  #forgottenDroppedMs = Date.now()
  #keepShare = 1

  constructor(port: MessagePort, start: WorkerStart) {
    this.#port = port
    this.#start = start
    this.#writer = new JournalWriter(start.path, start.writer)
    this.#tell({ kind: 'opened', last: this.#writer.entries.lastPosition() })
    port.on('message', (request: Request) => this.#receive(request))
    this.#every(start.writer.leaseMs / 3, () => {
      this.#guarded('lease', () => this.#writer.renewLease())
      this.#tidyWal()
    })
    if (start.compactEveryMs > 0) this.#every(start.compactEveryMs, () => this.#compact())
  }

  #receive(request: Request): void {
    let next: Request | undefined = request
    while (next !== undefined) next = next.kind === 'append' ? this.#append(next) : this.#serve(next)
    this.#tidyWal()
  }

  /** Commits this batch and all that wait behind it together. Answers the request that is no batch, if one was met. */
  #append(first: Extract<Request, { kind: 'append' }>): Request | undefined {
    const batches = [unpackEntries(first.entries)]
    let next: Request | undefined
    for (;;) {
      next = receiveMessageOnPort(this.#port)?.message as Request | undefined
      if (next?.kind !== 'append') break
      batches.push(unpackEntries(next.entries))
    }
    this.#guarded('commit', () => {
      this.#writer.append(batches)
      this.#port.postMessage(batches.at(-1)!.at(-1)!.position)
    })
    return next
  }

  #serve(request: Exclude<Request, { kind: 'append' }>): undefined {
    switch (request.kind) {
      case 'checkpoint':
        return this.#change(request.id, 'checkpoint', () => this.#writer.putCheckpoint(request.part))
      case 'checkpoints':
        return this.#answer(request.id, 'read', () => this.#writer.checkpoints.newest(request.query))
      case 'forget':
        return this.#change(request.id, 'forget', () => this.#writer.forget(request.scope, request.through))
      case 'covered':
        return this.#change(request.id, 'covered', () => this.#writer.cover(request.through))
      case 'usage':
        return this.#answer(request.id, 'read', () => this.#writer.usage())
      case 'scopes':
        return this.#answer(request.id, 'read', () => this.#writer.entries.scopes(this.#writer.checkpoints))
      case 'read':
        return this.#answer(request.id, 'read', () => {
          const { entries, through, done } = this.#writer.entries.slice(request.slice)
          return { entries: packEntries(entries), through, done }
        })
      case 'compact':
        return this.#compact(request.id)
      case 'close':
        return this.#close(request.id)
    }
  }

  /** What cannot be written fails the journal as an entry would. */
  #change(id: number, operation: string, work: () => void): undefined {
    const isDone = this.#guarded(operation, () => {
      work()
      return true
    })
    this.#answer(id, operation, () => {
      if (isDone === undefined) throw new Error('the journal has failed')
      return null
    })
  }

  #compact(id?: number): undefined {
    const isNew = this.#compaction === undefined
    this.#compaction ??= this.#newCompaction(id !== undefined)
    if (id !== undefined) this.#compaction.callers.push(id)
    if (isNew) this.#compactSlice(this.#compaction)
  }

  #newCompaction(isAskedFor: boolean): CompactionRun {
    const nowMs = Date.now()
    const dropsForgotten = isAskedFor || nowMs - this.#forgottenDroppedMs >= dropForgottenEveryMs
    if (dropsForgotten) this.#forgottenDroppedMs = nowMs
    return new CompactionRun(nowMs - this.#keepMs(), dropsForgotten)
  }

  /** A shorter time than asked for while the file is larger than it may be: the oldest entries go. */
  #keepMs(): number {
    const { keepEntriesMs, keepBytes = Number.MAX_SAFE_INTEGER } = this.#start.writer
    const usedBytes = this.#writer.usedBytes()
    if (usedBytes <= keepBytes) {
      this.#keepShare = Math.min(1, this.#keepShare * 1.5)
      return keepEntriesMs * this.#keepShare
    }
    this.#keepShare *= 0.9 * (keepBytes / usedBytes)
    return keepEntriesMs * this.#keepShare
  }

  /** One slice for each turn of the loop: batches that arrived meanwhile are committed in between. */
  #compactSlice(run: CompactionRun): void {
    if (this.#compaction !== run) return
    let damage: JournalCorrupt | undefined
    const isDone = this.#guarded('compact', () => {
      try {
        return run.slice(this.#writer)
      } catch (error) {
        if (!(error instanceof JournalCorrupt)) throw error
        // Old damage is no reason to stop taking new entries, only to drop nothing more.
        damage = error
        return true
      }
    })
    this.#tidyWal()
    if (isDone === false) {
      setImmediate(() => this.#compactSlice(run))
      return
    }
    this.#compaction = undefined
    for (const id of run.callers) {
      this.#answer(id, 'compact', () => {
        if (damage !== undefined) throw damage
        if (isDone === undefined) throw new Error('the journal has failed')
        return { dropped: run.dropped }
      })
    }
  }

  #close(id: number): undefined {
    for (const timer of this.#timers) clearInterval(timer)
    clearTimeout(this.#lull)
    this.#compaction = undefined
    this.#answer(id, 'close', () => {
      this.#writer.close()
      return null
    })
    this.#port.close()
  }

  #answer(id: number, operation: string, work: () => Answer): undefined {
    try {
      this.#tell({ kind: 'answer', id, value: work() })
    } catch (error) {
      this.#tell({ kind: 'refused', id, error: toWire(error, this.#start.path, operation) })
    }
  }

  /** Fail-stop: after the first failed write the file's content is not known, so nothing more is written. */
  #guarded<A>(operation: string, work: () => A): A | undefined {
    if (this.#failed) return undefined
    try {
      return work()
    } catch (error) {
      this.#failed = true
      this.#tell({ kind: 'failed', error: toWire(error, this.#start.path, operation) })
      return undefined
    }
  }

  #tidyWal(): void {
    const { walBytes } = this.#writer
    if (walBytes < walIdleBytes || this.#failed) return
    if (walBytes >= walBusyBytes) {
      this.#guarded('checkpoint', () => this.#writer.moveWal())
    } else if (this.#lull === undefined) {
      this.#lull = setTimeout(() => {
        this.#lull = undefined
        this.#guarded('checkpoint', () => this.#writer.moveWal())
      }, lullMs).unref()
    } else {
      this.#lull.refresh()
    }
  }

  #every(ms: number, work: () => void): void {
    this.#timers.push(setInterval(work, ms).unref())
  }

  #tell(reply: Reply): void {
    this.#port.postMessage(reply)
  }
}

const start = workerData as WorkerStart
try {
  new JournalThread(parentPort!, start)
} catch (error) {
  const failed = toWire(explainOpening(start.path, error), start.path, 'open')
  parentPort!.postMessage({ kind: 'failed', error: failed } satisfies Reply)
}
