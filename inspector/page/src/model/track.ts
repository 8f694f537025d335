/** The loaded history of one scope, and the scope at any moment of it. */
import { type Arrow, advance, contextFrom, type ScopeContext } from '../../../../machines/index.ts'
import type { EntryFrame, HistoryAnswer } from '../../../protocol.ts'
import { CallBook } from './calls.ts'
import { DecisionLog } from './log.ts'
import { agrees, arrowsTaken, contextAfter } from './replica.ts'
import { Series } from './series.ts'

/** Entries between two kept contexts. Contexts share their unchanged parts, so they are cheap. */
const keptEvery = 32

export class Track {
  readonly scope: string
  /** Number of entries before the first loaded one. */
  readonly earlier: number
  readonly basePosition: number
  readonly entries: EntryFrame[] = []
  readonly calls: CallBook
  readonly log = new DecisionLog()
  readonly series = new Series()
  /** The context after the newest replayed entry. */
  #newest: ScopeContext
  /** The context before entry 0, 32, 64, ... */
  readonly #kept: ScopeContext[]
  #replayed = 0
  /** Entries whose replay decides otherwise than the record. */
  disagreements = 0

  constructor({ base, earlier }: HistoryAnswer) {
    this.scope = base.scope
    this.earlier = earlier
    this.basePosition = base.position
    this.#newest = contextFrom(base.scope, base.snapshot)
    this.#kept = [this.#newest]
    this.calls = new CallBook(this.#newest)
    if (base.snapshot !== null) this.series.add(this.#newest)
  }

  /** The journal holds nothing of this scope: no entry and no checkpoint. */
  get isEmpty(): boolean {
    return this.entries.length === 0 && this.basePosition === 0
  }

  get lastPosition(): number {
    return this.entries.at(-1)?.position ?? this.basePosition
  }

  get firstAt(): number | null {
    return this.entries[0]?.event.at ?? null
  }

  get lastAt(): number | null {
    return this.entries.at(-1)?.event.at ?? null
  }

  /** Share of the entries that are replayed, 0 to 1. */
  get progress(): number {
    return this.entries.length === 0 ? 1 : this.#replayed / this.entries.length
  }

  /** Adds entries; passes over those of other scopes and known ones. */
  add(entries: ReadonlyArray<EntryFrame>): void {
    for (const entry of entries) {
      if (entry.scope !== this.scope || entry.position <= this.lastPosition) continue
      this.entries.push(entry)
      this.calls.add(entry)
      this.log.add(entry, this.calls)
    }
  }

  /** Continues the replay while `mayGoOn` allows it. Returns whether the replay has reached the end. */
  replay(mayGoOn: () => boolean): boolean {
    while (this.#replayed < this.entries.length) {
      if (this.#replayed % 16 === 0 && !mayGoOn()) return false
      const { event, decisions } = this.entries[this.#replayed] as EntryFrame
      const context = advance(this.#newest, event)
      this.#newest = context
      this.#replayed += 1
      if (this.#replayed % keptEvery === 0) this.#kept.push(context)
      if (!agrees(decisions, context.decisions)) this.disagreements += 1
      this.series.add(context, event)
    }
    return true
  }

  /** Index of the newest entry up to `position`; -1 before the first. */
  indexAt(position: number): number {
    return this.#search((entry) => entry.position <= position)
  }

  /** Index of the newest entry up to a time, epoch milliseconds; -1 before the first. */
  indexAtTime(at: number): number {
    return this.#search(({ event }) => event.at <= at)
  }

  /** The context after the entry at `index`; -1 gives the one before the first. */
  contextAt(index: number): ScopeContext {
    const count = Math.min(index, this.entries.length - 1) + 1
    if (count === this.#replayed) return this.#newest
    const kept = Math.min(Math.floor(count / keptEvery), this.#kept.length - 1)
    const events = this.entries.slice(kept * keptEvery, count).map(({ event }) => event)
    return contextAfter(this.#kept[kept] as ScopeContext, events)
  }

  /** The arrows that the entry at `index` took. */
  arrowsAt(index: number): ReadonlyArray<Arrow> {
    const entry = this.entries[index]
    return entry === undefined ? [] : arrowsTaken(this.contextAt(index - 1), entry.event)
  }

  /** Index of the newest entry up to `index` that took an arrow, at most `reach` entries back; -1 when there is none. */
  lastMove(index: number, reach = 2_000): number {
    const entry = this.entries[index]
    const band = this.series.bands.findLast(({ from }) => entry !== undefined && from <= entry.event.at)
    if (entry === undefined || band === undefined) return -1
    const first = Math.max(0, index - reach, this.indexAtTime(band.from - 1) + 1)
    for (let candidate = first; candidate <= index; candidate += 1) {
      if ((this.entries[candidate] as EntryFrame).event.at > band.from) return -1
      if (this.arrowsAt(candidate).length > 0) return this.#newestMove(candidate, index)
    }
    return -1
  }

  /** Finds the newest entry with an arrow among entries of one millisecond. */
  #newestMove(first: number, index: number): number {
    const { at } = (this.entries[first] as EntryFrame).event
    let newest = first
    for (let next = first + 1; next <= index && this.entries[next]?.event.at === at; next += 1) {
      if (this.arrowsAt(next).length > 0) newest = next
    }
    return newest
  }

  #search(isBefore: (entry: EntryFrame) => boolean): number {
    let low = 0
    let high = this.entries.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (isBefore(this.entries[middle] as EntryFrame)) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}
