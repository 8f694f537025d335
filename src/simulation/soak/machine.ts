/** A machine: virtual time, a clock that can be set, and a disk that outlives the processes on it. */
import type { Clock } from '../../clock.ts'
import type { Journal, JournalListener } from '../../journal/journal.ts'
import { type JournalHistory, type MemoryJournal, openMemoryJournal } from '../../journal/memory.ts'
import { Timeline } from '../timeline.ts'
import type { Ledger } from './ledger.ts'

/** Where every simulation begins, epoch milliseconds. */
export const startMs = 1_700_000_000_000

/** One process. Dead, it does and hears nothing more, though its promises may still run. */
export class Life {
  alive = true
  /** Entries, or acknowledgements, until it dies in the middle of one. */
  dyingIn: { readonly within: 'append' | 'durable'; left: number } | null = null
  readonly died: () => void

  constructor(died: () => void) {
    this.died = died
  }

  /** Counts towards its death; true when this was it. */
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

  /** What the machine's clock shows. */
  now(): number {
    return Math.floor(this.timeline.now()) + this.#offsetMs
  }

  /** Calls `fn` in so many milliseconds, on a whole one: only acknowledgements come between them. */
  after(ms: number, fn: () => void): void {
    this.timeline.at(Math.ceil(this.timeline.now()) + ms, fn)
  }

  /** The clock is set; a machine that sleeps sees the same. */
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

  /** EIO: what the journal was given since the last sync is not durable, and nothing more will be. */
  failDisk(): void {
    this.#disk?.fail('commit', new Error('EIO: i/o error'))
  }

  /** The process is gone. Of what was not synced, the first `extra` entries had reached the disk. */
  crash(extra: number): void {
    const survivors = this.#disk?.survivors() ?? this.#history
    const through = Math.min(this.#ledger.last, this.#ledger.durable + extra)
    const more = this.#ledger.between(this.#ledger.durable, through)
    this.#history = { entries: [...survivors.entries, ...more], checkpoints: survivors.checkpoints }
    this.#ledger.crashed(through)
    for (const { snapshot } of survivors.checkpoints) this.#ledger.keepsSecrets('a checkpoint', snapshot)
    this.#disk = null
  }

  /** Between two milliseconds, so that its order with everything else is the same whoever else writes. */
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
