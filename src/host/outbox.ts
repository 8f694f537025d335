import type { Journal, JournalEntry, JournalFailure } from '../journal/journal.ts'

interface Effect {
  readonly position: number
  readonly carryOut: () => void
  readonly lost: ((failure: JournalFailure) => void) | undefined
}

/**
 * Write ahead: what a decision does to the world waits here until the journal says that the
 * decision is durable. One outbox per journal; effects leave in the order of their entries.
 */
export class Outbox {
  readonly #journal: Journal
  #effects: Array<Effect> = []
  #next = 0
  #durable = 0
  #last = 0
  #failure: JournalFailure | null = null
  readonly #onFailure: (failure: JournalFailure) => void

  constructor(journal: Journal, onFailure: (failure: JournalFailure) => void) {
    this.#journal = journal
    this.#onFailure = onFailure
    journal.listen({ durable: (through) => this.#flush(through), failed: (failure) => this.#fail(failure) })
  }

  get failure(): JournalFailure | null {
    return this.#failure
  }

  /** Writes an entry; answers its position. Throws the journal's failure. */
  write(entry: JournalEntry): number {
    if (this.#failure !== null) throw this.#failure
    this.#last = this.#journal.append(entry)
    return this.#last
  }

  /** Position of the newest entry written here; 0 before the first. */
  get last(): number {
    return this.#last
  }

  /** Does `carryOut` once everything up to `position` is durable; `lost` instead, when the journal fails before. */
  after(position: number, carryOut: () => void, lost?: (failure: JournalFailure) => void): void {
    if (position <= this.#durable) carryOut()
    else if (this.#failure !== null) lost?.(this.#failure)
    else this.#effects.push({ position, carryOut, lost })
  }

  #flush(through: number): void {
    this.#durable = through
    while (this.#next < this.#effects.length && this.#effects[this.#next]!.position <= through) {
      const { carryOut } = this.#effects[this.#next]!
      this.#next += 1
      carryOut()
    }
    // What was carried out holds on to its calls.
    if (this.#next > 32 && this.#next * 2 > this.#effects.length) {
      this.#effects = this.#effects.slice(this.#next)
      this.#next = 0
    }
  }

  #fail(failure: JournalFailure): void {
    this.#failure = failure
    const effects = this.#effects.slice(this.#next)
    this.#effects = []
    this.#next = 0
    this.#onFailure(failure)
    for (const { lost } of effects) lost?.(failure)
  }
}
