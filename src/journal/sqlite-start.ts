/** Starts the journal's worker thread and waits until it has opened the file. */
import { existsSync } from 'node:fs'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import type { Fault } from './faults.ts'
import { JournalFailure, JournalUnavailable } from './journal.ts'
import { nodeSqlite } from './node-sqlite.ts'
import type { WorkerStart } from './sqlite-worker.ts'
import { fromWire, type Reply } from './wire.ts'

export interface SqliteJournalOptions {
  /**
   * Entries that a checkpoint stands for, and older checkpoints, are kept this long, ms: how far
   * back `replay` and `explain` reach. Entries without a checkpoint are always kept. Default 24 h.
   */
  readonly keepEntriesMs?: number
  /**
   * Size, bytes, above which the oldest of these go sooner, at least 1 MiB: what the file's pages in use may
   * take. Entries without a checkpoint are kept all the same. Default: no bound.
   */
  readonly keepBytes?: number
  /** How often retention runs by itself, ms; 0 for never. Default 60,000. */
  readonly compactEveryMs?: number
  /**
   * How long a holder that cannot be seen to be dead (another host, suspended) keeps the journal
   * from others, ms. A dead process on this host is taken over at once. Default 15,000, at least 100.
   */
  readonly leaseMs?: number
  /** Faults to meet, for tests. */
  readonly faults?: ReadonlyArray<Fault>
}

/** Throws RangeError for a bad option; rejects with what `explainOpening` says of the path. */
export const startWorker = async (
  path: string,
  options: SqliteJournalOptions,
): Promise<{ readonly worker: Worker; readonly last: number }> => {
  const start: WorkerStart = {
    path,
    writer: {
      leaseMs: atLeast('leaseMs', options.leaseMs ?? 15_000, 100),
      keepEntriesMs: atLeast('keepEntriesMs', options.keepEntriesMs ?? 24 * 3_600_000, 0),
      keepBytes: atLeast('keepBytes', options.keepBytes ?? Number.MAX_SAFE_INTEGER, 1024 * 1024),
      faults: options.faults ?? [],
    },
    compactEveryMs: atLeast('compactEveryMs', options.compactEveryMs ?? 60_000, 0),
  }
  nodeSqlite(path)
  const worker = makeWorker(path, {
    workerData: start,
    name: 'rightofway journal',
    // On Node 22 node:sqlite still warns that it is experimental. The flags of the user's process are not ours.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  return { worker, last: await opened(worker, path) }
}

/** Ending of this file's address where the sources run by themselves. */
const source = /sqlite-start\.ts$/

/** Throws `JournalUnavailable` in a bundle that lacks the worker's file. */
const makeWorker = (path: string, options: WorkerOptions): Worker => {
  const { url } = import.meta
  if (source.test(url)) return new Worker(new URL(url.replace(source, 'sqlite-worker.ts')), options)
  // A bundle of CommonJS has no address of its own; one without the worker's file has none beside it.
  const isThere = typeof url === 'string' && existsSync(new URL('./sqlite-worker.js', url))
  if (!isThere)
    throw new JournalUnavailable(
      path,
      'needs sqlite-worker.js beside the bundle, which is not there',
      "make 'rightofway/sqlite-worker' an entry of that name in an ESM bundle, or keep 'rightofway' external",
    )
  // Bundlers find the file by this very expression.
  return new Worker(new URL('./sqlite-worker.js', import.meta.url), options)
}

/**
 * The first message says how opening went. Its listeners are removed one by one:
 * `removeAllListeners` would also remove Node's own, and no message would come any more.
 */
const opened = (worker: Worker, path: string): Promise<number> => {
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void) => {
      worker.off('message', onMessage)
      worker.off('error', onError)
      worker.off('exit', onExit)
      outcome()
    }
    const onMessage = (reply: Reply) =>
      settle(() => {
        if (typeof reply === 'object' && reply.kind === 'opened') resolve(reply.last)
        else if (typeof reply === 'object' && reply.kind === 'failed') reject(fromWire(reply.error))
      })
    const onError = (error: unknown) => settle(() => reject(new JournalFailure(path, 'open', error)))
    const onExit = () => onError(new Error('the thread ended'))
    worker.on('message', onMessage)
    worker.on('error', onError)
    worker.on('exit', onExit)
  })
}

const atLeast = (name: string, value: number, least: number): number => {
  if (value >= least) return value
  throw new RangeError(`${name} must be at least ${least}, got ${value}`)
}
