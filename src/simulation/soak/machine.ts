/** A machine: virtual time, a clock that can be set, and a disk that outlives the processes on it. */
import type { Clock } from '../../clock.ts'
import type { Journal, JournalListener } from '../../journal/journal.ts'
import { type JournalHistory, type MemoryJournal, openMemoryJournal } from '../../journal/memory.ts'
import { Timeline } from '../timeline.ts'
import type { Ledger } from './ledger.ts'

/** The start of every simulation, epoch milliseconds. */
export const startMs = 1_700_000_000_000

/** One process. After its death it does and receives nothing, though its promises may still run. */
export class Life {
  alive = true
  /** Entries, or acknowledgements, until the process dies in the middle of one. */
  dyingIn: { readonly within: 'append' | 'durable'; left: number } | null = null
  readonly died: () => void

  constructor(died: () => void) {
    this.died = died
  }

  /** Counts one step towards the death; true when this step was the last. */
  diesNow(within: 'append' | 'durable'): boolean {
    if (!this.alive || this.dyingIn?.within !== within) return false
    this.dyingIn.left -= 1
    if (this.dyingIn.left > 0) return false
    this.alive = false
    this.died()
    return true
  }
}

export class Machine {
  readonly timeline = new Timeline(startMs)
  readonly #ledger: Ledger
  readonly #syncEveryMs: number
  readonly #keepEntries: number
  #offsetMs = 0
  #slowUntilMs = 0
  #disk: MemoryJournal | null = null
  #history: JournalHistory = { entries: [], checkpoints: [] }

  constructor(ledger: Ledger, { syncEveryMs, keepEntries }: { syncEveryMs: number; keepEntries: number }) {
    this.#ledger = ledger
    this.#syncEveryMs = syncEveryMs
    this.#keepEntries = keepEntries
  }

  /** The time on the machine's clock. */
  now(): number {
    return Math.floor(this.timeline.now()) + this.#offsetMs
  }

  /** Calls `fn` in `ms` milliseconds, on a whole one: only acknowledgements come between whole ones. */
  after(ms: number, fn: () => void): void {
    this.timeline.at(Math.ceil(this.timeline.now()) + ms, fn)
  }

  /** Sets the clock. A machine that sleeps sees the same jump. */
  jump(byMs: number): void {
    this.#offsetMs += byMs
  }

  slowDown(forMs: number): void {
    this.#slowUntilMs = this.timeline.now() + forMs
  }

  /** The clock as one process sees it: its timers end with it. */
  clockOf(life: Life): Clock {
    return {
      now: () => this.now(),
      elapsed: () => this.timeline.now(),
      after: (ms, fn) =>
        this.timeline.at(Math.floor(this.timeline.now()) + Math.max(0, ms), () => {
          if (life.alive) fn()
        }),
    }
  }

  /** The journal as one process opens it. */
  openJournal(life: Life): Journal {
    const disk = openMemoryJournal({
      history: this.#history,
      keepEntries: this.#keepEntries,
      schedule: (sync) => {
        this.timeline.at(this.#nextSyncMs(), () => {
          if (life.alive) sync()
        })
      },
    })
    this.#disk = disk
    return {
      ...disk,
      append: (entry) => {
        if (!life.alive) throw new Error('the process is dead')
        const position = disk.append(entry)
        this.#ledger.append({ ...entry, position })
        if (life.diesNow('append')) throw new Error('the process died')
        return position
      },
      listen: (listener) => disk.listen(this.#heard(life, listener)),
    }
  }

  /** EIO: entries since the last sync are not durable, and no later entry will be. */
  failDisk(): void {
    this.#disk?.fail('commit', new Error('EIO: i/o error'))
  }

  /** Ends the process. The first `extra` of the entries that were not synced had reached the disk. */
  crash(extra: number): void {
    const survivors = this.#disk?.survivors() ?? this.#history
    const through = Math.min(this.#ledger.last, this.#ledger.durable + extra)
    const more = this.#ledger.between(this.#ledger.durable, through)
    this.#history = { entries: [...survivors.entries, ...more], checkpoints: survivors.checkpoints }
    this.#ledger.crashed(through)
    for (const { snapshot } of survivors.checkpoints) this.#ledger.keepsSecrets('a checkpoint', snapshot)
    this.#disk = null
  }

  /** A time between two milliseconds, so that a sync keeps its order for any number of writers. */
  #nextSyncMs(): number {
    const fromMs = Math.max(this.timeline.now(), this.#slowUntilMs)
    return (Math.floor((fromMs - 0.5) / this.#syncEveryMs) + 1) * this.#syncEveryMs + 0.5
  }

  #heard(life: Life, listener: JournalListener): JournalListener {
    return {
      durable: (through) => {
        if (!life.alive) return
        this.#ledger.synced(through)
        if (!life.diesNow('durable')) listener.durable(through)
      },
      failed: (failure) => {
        if (life.alive) listener.failed(failure)
      },
    }
  }
}
