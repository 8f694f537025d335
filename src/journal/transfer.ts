/** `rightofway journal export | import`: a journal as lines of JSON, for moving, keeping and looking at. */

import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { Data } from 'effect'
import { type Checkpoint, JournalUnavailable, type StoredEntry } from './journal.ts'
import { explainOpening, messageOf } from './opening.ts'
import { openTables } from './reader.ts'
import { replaceJournal } from './repair.ts'
import { JournalWriter, type WriterOptions } from './writer.ts'

/** The export's first line. */
interface Header {
  readonly journal: 'rightofway'
  readonly version: number
  /** Positions up to here may skip, because retention has dropped entries. */
  readonly retainedAfter: number
}

/** Version of the lines, not of the tables. */
const exportVersion = 1
const commitEntries = 1_000
/** An import sends no heartbeats; if it dies, its lease is taken over at once on this host. */
const writerOptions: WriterOptions = { leaseMs: 3_600_000, keepEntriesMs: 0, faults: [] }

/** A line of an import that cannot be taken. Nothing of the import was kept. */
export class JournalImportError extends Data.TaggedError('JournalImportError')<{
  readonly path: string
  /** Number of the line, from 1. */
  readonly line: number
  readonly message: string
}> {
  constructor(path: string, line: number, problem: string) {
    super({
      path,
      line,
      message: `import into journal ${path}: line ${line}: ${problem}; nothing was imported`,
    })
  }
}

/**
 * The journal as NDJSON: a header, checkpoints, entries, and a last line with the counts (so that
 * a cut export is noticed). Each line ends with a newline: `pipeline(exportJournal(file), out)`.
 * One state of the journal, also while a writer is at work. Throws `JournalCorrupt` at the row.
 */
export async function* exportJournal(file: string): AsyncGenerator<string> {
  const { db, entries, checkpoints } = openTables(file)
  try {
    db.exec('begin')
    const { through: retainedAfter } = entries.retention()
    yield line({ journal: 'rightofway', version: exportVersion, retainedAfter })
    let checkpointCount = 0
    for (const row of checkpoints.allRows()) {
      checkpointCount++
      yield line({ checkpoint: checkpoints.load(row) })
    }
    let entryCount = 0
    for (let after = 0, first = true; ; first = false) {
      const slice = entries.slice({ after, first })
      entryCount += slice.entries.length
      for (const entry of slice.entries) yield line({ entry })
      if (slice.done) break
      after = slice.through
    }
    yield line({ end: { checkpoints: checkpointCount, entries: entryCount } })
  } finally {
    db.close()
  }
}

/**
 * Makes `file` the journal that `lines` (of `exportJournal`, with or without their newlines) tell
 * of, whole or not at all. Rejects with `JournalImportError` that names the line,
 * `JournalUnavailable` when the journal there is not empty, `JournalLocked` when it is in use.
 */
export const importJournal = async (
  file: string,
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<{ readonly entries: number; readonly checkpoints: number }> => {
  const path = resolve(file)
  const target = openEmpty(path)
  const fresh = `${path}.importing-${process.pid}`
  let isComplete = false
  try {
    const incoming = new Import(path, fresh)
    try {
      for await (const text of lines) incoming.take(text)
      incoming.end()
      isComplete = true
    } finally {
      incoming.close()
    }
    return { entries: incoming.entries, checkpoints: incoming.checkpoints }
  } finally {
    // Closed with its lease, so that no writer opens the empty file in the moment before it is replaced.
    target.close({ keepLease: isComplete })
    if (isComplete) replaceJournal(path, fresh)
    else for (const suffix of ['', '-wal', '-shm']) rmSync(fresh + suffix, { force: true })
  }
}

const openEmpty = (path: string): JournalWriter => {
  let writer: JournalWriter | undefined
  try {
    writer = new JournalWriter(path, writerOptions)
    const last = writer.entries.lastPosition()
    if (last === 0) return writer
    throw new JournalUnavailable(
      path,
      `is not empty (its last entry is ${last})`,
      'import into a new path; an import never mixes two histories',
    )
  } catch (error) {
    writer?.close()
    throw explainOpening(path, error)
  }
}

/** One import under way: checks each line as it comes. */
class Import {
  entries = 0
  checkpoints = 0
  readonly #path: string
  readonly #writer: JournalWriter
  #line = 0
  #retainedAfter: number | undefined
  #last = 0
  #covered = 0
  #batch: Array<StoredEntry> = []
  #isEnded = false

  constructor(path: string, fresh: string) {
    this.#path = path
    this.#writer = new JournalWriter(fresh, writerOptions)
  }

  take(text: string): void {
    this.#line++
    if (text.trim() === '') return
    const value = this.#parse(text)
    if (this.#isEnded) throw this.#error('comes after the last line of the export')
    if (this.#retainedAfter === undefined) this.#takeHeader(value)
    else if ('checkpoint' in value) this.#takeCheckpoint(value['checkpoint'])
    else if ('entry' in value) this.#takeEntry(value['entry'])
    else if ('end' in value) this.#takeEnd(value['end'])
    else throw this.#error('is neither a checkpoint, an entry, nor the end')
  }

  /** After the last line. */
  end(): void {
    if (!this.#isEnded) throw this.#error('the export ends here without its last line; it was cut')
    this.#writer.restoreRetention(this.#retainedAfter ?? 0)
  }

  close(): void {
    this.#writer.close()
  }

  #parse(text: string): Record<string, unknown> {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      throw this.#error(`is not JSON (${messageOf(error)})`)
    }
    if (!isObject(value)) throw this.#error('is not an object')
    return value
  }

  #takeHeader({ journal, version, retainedAfter }: Record<string, unknown>): void {
    if (journal !== 'rightofway') throw this.#error('is not the first line of a journal export')
    if (version !== exportVersion) {
      throw this.#error(`has export version ${String(version)}, this release reads ${exportVersion}`)
    }
    if (!isPosition(retainedAfter)) throw this.#error('retainedAfter must be a position')
    this.#retainedAfter = retainedAfter
  }

  #takeCheckpoint(value: unknown): void {
    if (!isObject(value)) throw this.#error('checkpoint must be an object')
    const { scope, position, at, snapshot, resting = false } = value
    if (
      typeof scope !== 'string' ||
      !isPosition(position) ||
      !Number.isFinite(at) ||
      typeof snapshot !== 'string' ||
      typeof resting !== 'boolean'
    ) {
      throw this.#error('checkpoint must have scope, position, at, snapshot')
    }
    this.#writer.restoreCheckpoint({ scope, position, at: at as number, snapshot, resting })
    this.#covered = Math.max(this.#covered, position)
    this.checkpoints++
  }

  #takeEntry(value: unknown): void {
    if (!isObject(value)) throw this.#error('entry must be an object')
    const { scope, position, at, record } = value
    if (
      typeof scope !== 'string' ||
      !isPosition(position) ||
      !Number.isFinite(at) ||
      typeof record !== 'string'
    ) {
      throw this.#error('entry must have scope, position, at, record')
    }
    const contiguousFrom = Math.max(this.#last, this.#retainedAfter ?? 0)
    if (position <= this.#last || position > contiguousFrom + 1) {
      throw this.#error(`entry ${position} does not follow entry ${this.#last}`)
    }
    this.#last = position
    this.entries++
    if (this.#batch.push({ scope, position, at: at as number, record }) === commitEntries) this.#flush()
  }

  #takeEnd(value: unknown): void {
    this.#flush()
    const isWhole =
      isObject(value) && value['entries'] === this.entries && value['checkpoints'] === this.checkpoints
    if (!isWhole) {
      const counted = `${this.entries} entries and ${this.checkpoints} checkpoints`
      throw this.#error(`the export says ${JSON.stringify(value)}, ${counted} came`)
    }
    if (this.#covered > Math.max(this.#last, this.#retainedAfter ?? 0)) {
      throw this.#error(`a checkpoint stands for entries up to ${this.#covered}, the last is ${this.#last}`)
    }
    this.#isEnded = true
  }

  #flush(): void {
    if (this.#batch.length > 0) this.#writer.append([this.#batch])
    this.#batch = []
  }

  #error(problem: string): JournalImportError {
    return new JournalImportError(this.#path, this.#line, problem)
  }
}

type Line =
  | Header
  | { readonly checkpoint: Checkpoint }
  | { readonly entry: StoredEntry }
  | { readonly end: { readonly checkpoints: number; readonly entries: number } }

const line = (value: Line): string => {
  return `${JSON.stringify(value)}\n`
}

const isObject = (value: unknown): value is Record<string, unknown> => {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const isPosition = (value: unknown): value is number => {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
