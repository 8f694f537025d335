/**
 * What travels between the caller's thread and the journal's worker thread. Entries go as one
 * number array and one joined string: structured cloning of one object per entry costs the
 * caller's thread more than all the rest of an append.
 */
import {
  type Checkpoint,
  type CheckpointQuery,
  JournalCorrupt,
  JournalFailure,
  JournalLocked,
  JournalTooNew,
  JournalUnavailable,
  type JournalUsage,
  type KnownScope,
  type LeaseHolder,
  type StoredEntry,
} from './journal.ts'

/** Entries in a form that is cheap to clone. */
export interface PackedEntries {
  /** Four numbers per entry: position, time (epoch ms), index into `scopes`, record length in UTF-16 units. */
  readonly cells: Float64Array
  readonly scopes: ReadonlyArray<string>
  /** All records, joined without a separator. */
  readonly text: string
}

const cellsPerEntry = 4

export const packEntries = (entries: ReadonlyArray<StoredEntry>): PackedEntries => {
  const cells = new Float64Array(entries.length * cellsPerEntry)
  const scopes: Array<string> = []
  const indexes = new Map<string, number>()
  const records: Array<string> = new Array(entries.length)
  let cell = 0
  for (let n = 0; n < entries.length; n++) {
    const { position, at, scope, record } = entries[n]!
    let index = indexes.get(scope)
    if (index === undefined) {
      index = scopes.push(scope) - 1
      indexes.set(scope, index)
    }
    cells[cell++] = position
    cells[cell++] = at
    cells[cell++] = index
    cells[cell++] = record.length
    records[n] = record
  }
  return { cells, scopes, text: records.join('') }
}

export const unpackEntries = ({ cells, scopes, text }: PackedEntries): Array<StoredEntry> => {
  const entries: Array<StoredEntry> = []
  let offset = 0
  for (let cell = 0; cell < cells.length; cell += cellsPerEntry) {
    const end = offset + cells[cell + 3]!
    entries.push({
      position: cells[cell]!,
      at: cells[cell + 1]!,
      scope: scopes[cells[cell + 2]!]!,
      record: text.slice(offset, end),
    })
    offset = end
  }
  return entries
}

/** One slice of a read. */
export interface ReadSlice {
  readonly after: number
  /** The first slice of a read. Entries that retention left are counted once for each read from the start. */
  readonly first: boolean
  readonly scope?: string
  readonly untilAt?: number
  readonly uncovered?: boolean
  readonly naming?: { readonly text: string; readonly through: number }
}

export interface ReadAnswer {
  readonly entries: PackedEntries
  /** Where the next slice starts: everything up to here was looked at. */
  readonly through: number
  readonly done: boolean
}

/** A piece of a checkpoint: a snapshot of any size never holds up a commit for longer than one piece does. */
export interface CheckpointPart {
  readonly scope: string
  readonly position: number
  /** 0, 1, 2, ... */
  readonly part: number
  readonly text: string
  /** Present on the last part, which makes the checkpoint complete. */
  readonly complete?: { readonly at: number; readonly parts: number; readonly resting: boolean }
}

/** Caller to worker. `id` joins a request to its answer. */
export type Request =
  | { readonly kind: 'append'; readonly entries: PackedEntries }
  | { readonly kind: 'checkpoint'; readonly id: number; readonly part: CheckpointPart }
  | { readonly kind: 'checkpoints'; readonly id: number; readonly query: CheckpointQuery }
  | { readonly kind: 'forget'; readonly id: number; readonly scope: string; readonly through: number }
  | { readonly kind: 'covered'; readonly id: number; readonly through: number }
  | { readonly kind: 'scopes' | 'usage'; readonly id: number }
  | { readonly kind: 'read'; readonly id: number; readonly slice: ReadSlice }
  | { readonly kind: 'compact'; readonly id: number }
  | { readonly kind: 'close'; readonly id: number }

/** Worker to caller. A bare number says that every entry up to that position is durable. */
export type Reply =
  | number
  | { readonly kind: 'opened'; readonly last: number }
  | { readonly kind: 'answer'; readonly id: number; readonly value: Answer }
  | { readonly kind: 'refused'; readonly id: number; readonly error: WireError }
  | { readonly kind: 'failed'; readonly error: WireError }

export type Answer =
  | ReadAnswer
  | ReadonlyArray<Checkpoint>
  | ReadonlyArray<KnownScope>
  | JournalUsage
  | CompactionResult
  | null

export interface CompactionResult {
  /** Entries that were dropped. */
  readonly dropped: number
}

/** An error as plain data: structured cloning loses the class and its fields. */
export interface WireError {
  readonly tag: string
  readonly path: string
  /** Operation, row, or problem, by class. */
  readonly detail: string
  readonly remedy?: string
  readonly cause?: { readonly message: string; readonly code?: string }
  readonly holder?: LeaseHolder
  readonly versions?: readonly [found: number, supported: number]
}

/** Any error of the worker as data; what is not one of the journal's own errors becomes a `JournalFailure` of `operation`. */
export const toWire = (error: unknown, path: string, operation: string): WireError => {
  if (error instanceof JournalCorrupt) {
    return { tag: error._tag, path: error.path, detail: error.row, remedy: error.problem }
  }
  if (error instanceof JournalLocked) {
    return { tag: error._tag, path: error.path, detail: '', holder: error.holder }
  }
  if (error instanceof JournalTooNew) {
    return { tag: error._tag, path: error.path, detail: '', versions: [error.found, error.supported] }
  }
  if (error instanceof JournalUnavailable) {
    return {
      tag: error._tag,
      path: error.path,
      detail: error.problem,
      remedy: error.remedy,
      cause: plainCause(error.cause),
    }
  }
  if (error instanceof JournalFailure) {
    return {
      tag: error._tag,
      path: error.path,
      detail: error.operation,
      cause: plainCause(error.cause),
    }
  }
  return { tag: 'JournalFailure', path, detail: operation, cause: plainCause(error) }
}

export const fromWire = (error: WireError): Error => {
  const { path, detail, remedy = '' } = error
  switch (error.tag) {
    case 'JournalCorrupt':
      return new JournalCorrupt(path, detail, remedy)
    case 'JournalLocked':
      return new JournalLocked(path, error.holder!)
    case 'JournalTooNew':
      return new JournalTooNew(path, ...error.versions!)
    case 'JournalUnavailable':
      return new JournalUnavailable(path, detail, remedy, systemError(error))
    default:
      return new JournalFailure(path, detail, systemError(error))
  }
}

const plainCause = (cause: unknown): { message: string; code?: string } => {
  if (!(cause instanceof Error)) return { message: String(cause) }
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  return code === undefined ? { message: cause.message } : { message: cause.message, code }
}

const systemError = ({ cause }: WireError): Error => {
  const error = new Error(cause?.message ?? 'unknown')
  return cause?.code === undefined ? error : Object.assign(error, { code: cause.code })
}
