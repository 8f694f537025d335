/**
 * Answers questions about the past from the journal alone, in the same way for live and recorded journals.
 */
import { Data } from 'effect'
import { encodeScope } from '../machines/snapshot/codec.ts'
import { explainFrom } from '../src/host/explain.ts'
import { readRecord } from '../src/host/read-record.ts'
import { Replayed } from '../src/host/recovery.ts'
import { scopeFacts } from '../src/host/scope-facts.ts'
import type { Checkpoint, Journal } from '../src/journal/journal.ts'
import { entryFrame } from './projection.ts'
import type {
  EntriesAnswer,
  EntryFrame,
  ExplainAnswer,
  HistoryAnswer,
  ScopeRow,
  StateAnswer,
} from './protocol.ts'

export type ReadableJournal = Pick<Journal, 'read' | 'checkpoints'>

/** The requested state lies before the entries that retention has kept. */
export class HistoryDropped extends Data.TaggedError('HistoryDropped')<{ readonly message: string }> {
  constructor(scope: string, position: number) {
    super({ message: `history of ${scope} at entry ${position} is no longer kept; ask for a later moment` })
  }
}

/** Entries between two marks of the index. */
const markEvery = 256

interface Extent {
  count: number
  lastPosition: number
  lastAt: number
  /** Position before every `markEvery`-th entry of the scope. */
  readonly marks: number[]
}

/** A moment: after the entry at `position`, or after all entries up to `at`, epoch milliseconds. */
export type Moment = { readonly position: number } | { readonly at: number }

export class History {
  readonly #journal: ReadableJournal
  readonly #path: string
  readonly #extents = new Map<string, Extent>()
  #indexedThrough = 0
  #newestAt = 0
  /**
   * Below this position, entries may be missing on purpose. Only a checkpoint above it can start a replay.
   */
  #gapThrough = 0
  #indexing: Promise<void> = Promise.resolve()

  constructor(journal: ReadableJournal, path: string) {
    this.#journal = journal
    this.#path = path
  }

  /** Every scope that the journal names. */
  async scopes(): Promise<ReadonlyArray<string>> {
    await this.#index()
    const checkpoints = await this.#journal.checkpoints()
    return [...new Set([...this.#extents.keys(), ...checkpoints.map(({ scope }) => scope)])].sort()
  }

  /** Position of the newest entry; 0 in an empty journal. */
  async lastPosition(): Promise<number> {
    await this.#index()
    return this.#indexedThrough
  }

  /** Time of the newest indexed entry of any scope, epoch milliseconds; 0 before the first. */
  get newestAt(): number {
    return this.#newestAt
  }

  /** Entries in order, at most `limit`; only those of one scope when it is named. */
  async entries(query: {
    readonly scope?: string
    readonly after: number
    readonly limit: number
  }): Promise<EntriesAnswer> {
    const { scope, after, limit } = query
    const entries: EntryFrame[] = []
    let through = after
    for await (const batch of this.#journal.read(scope === undefined ? { after } : { scope, after })) {
      for (const entry of batch) {
        if (entries.length >= limit) return { entries, through, done: false }
        through = entry.position
        const { event, decisions } = readRecord(this.#path, entry)
        const frame = entryFrame({ scope: entry.scope, position: entry.position, event, decisions })
        if (frame !== null) entries.push(frame)
      }
    }
    return { entries, through, done: true }
  }

  /** The scope at a moment, by replay. Rejects with `HistoryDropped`. */
  async stateAt(scope: string, moment: Moment): Promise<StateAnswer> {
    const replayed = await this.#replay(scope, moment)
    const context = replayed.context
    return {
      scope,
      position: replayed.position,
      at: context.at,
      snapshot: replayed.position === 0 ? null : encodeScope(context),
    }
  }

  /** Every scope's row at a moment. */
  async rowsAt(moment: Moment): Promise<ReadonlyArray<ScopeRow>> {
    const rows: ScopeRow[] = []
    for (const scope of await this.scopes()) {
      const replayed = await this.#replay(scope, moment).catch((error: unknown) => {
        if (error instanceof HistoryDropped) return null
        throw error
      })
      if (replayed === null || replayed.position === 0) continue
      rows.push({ position: replayed.position, facts: scopeFacts(replayed.context) })
    }
    return rows
  }

  /**
   * A position after which about `limit` entries of the scope follow. Counts only entries before `before`.
   */
  async window(scope: string, limit: number, before = Number.POSITIVE_INFINITY): Promise<HistoryAnswer> {
    await this.#index()
    const extent = this.#extents.get(scope)
    const marks = extent?.marks.filter((mark) => mark < before) ?? []
    const count = before === Number.POSITIVE_INFINITY ? (extent?.count ?? 0) : marks.length * markEvery
    const wanted = Math.max(0, Math.floor((count - limit) / markEvery))
    for (let index = wanted; index < marks.length; index += 1) {
      const base = await this.#stateOrNull(scope, marks[index] as number)
      const earlier = index * markEvery
      if (base !== null) return { base, earlier, later: (extent?.count ?? 0) - earlier }
    }
    const base = await this.stateAt(scope, { position: extent?.lastPosition ?? 0 })
    return { base, earlier: extent?.count ?? 0, later: 0 }
  }

  /** Why a call waits or how it ended, in the words of `rightofway explain`; null when no entry names it. */
  explain(
    callId: string,
    { nowMs, untilAt }: { readonly nowMs: number; readonly untilAt?: number },
  ): Promise<ExplainAnswer | null> {
    const read: Journal['read'] = (query) =>
      this.#journal.read(untilAt === undefined ? query : { ...query, untilAt })
    // The state comes from a replay and writes no entry.
    const stateOf = async (scope: string) => (await this.#replay(scope, { at: nowMs })).context
    return explainFrom({ read }, this.#path, callId, { stateOf, nowMs })
  }

  async #stateOrNull(scope: string, position: number): Promise<StateAnswer | null> {
    if (position === 0 && this.#gapThrough === 0) return { scope, position: 0, at: 0, snapshot: null }
    try {
      return await this.stateAt(scope, { position })
    } catch (error) {
      if (error instanceof HistoryDropped) return null
      throw error
    }
  }

  async #replay(scope: string, moment: Moment): Promise<Replayed> {
    await this.#index()
    const untilPosition = 'position' in moment ? moment.position : Number.POSITIVE_INFINITY
    const untilAt = 'at' in moment ? moment.at : Number.POSITIVE_INFINITY
    const checkpoint = await this.#checkpointFor(scope, untilPosition, untilAt)
    if (this.#gapThrough > (checkpoint?.position ?? 0)) throw new HistoryDropped(scope, this.#gapThrough)
    const replayed = new Replayed(scope, checkpoint)
    const query = Number.isFinite(untilAt) ? { scope, untilAt } : { scope }
    for await (const batch of this.#journal.read({ ...query, after: replayed.position })) {
      for (const entry of batch) {
        if (entry.position > untilPosition) return replayed
        replayed.feed(readRecord(this.#path, entry), entry.position)
      }
    }
    return replayed
  }

  async #checkpointFor(scope: string, position: number, at: number): Promise<Checkpoint | undefined> {
    let untilAt = at
    for (;;) {
      const query = Number.isFinite(untilAt) ? { untilAt } : {}
      const found = (await this.#journal.checkpoints(query)).find((one) => one.scope === scope)
      if (found === undefined || found.position <= position) return found
      untilAt = found.at - 1
    }
  }

  /** Reads the entries that were written since the last look. One look at a time. */
  #index(): Promise<void> {
    this.#indexing = this.#indexing.catch(() => {}).then(() => this.#readOn())
    return this.#indexing
  }

  async #readOn(): Promise<void> {
    for await (const batch of this.#journal.read({ after: this.#indexedThrough })) {
      for (const { scope, position, at } of batch) {
        if (position > this.#indexedThrough + 1) this.#gapThrough = position - 1
        this.#indexedThrough = position
        this.#newestAt = Math.max(this.#newestAt, at)
        const extent = this.#extents.get(scope) ?? { count: 0, lastPosition: 0, lastAt: 0, marks: [] }
        this.#extents.set(scope, extent)
        if (extent.count % markEvery === 0) extent.marks.push(extent.lastPosition)
        extent.count += 1
        extent.lastPosition = position
        extent.lastAt = at
      }
    }
  }
}
