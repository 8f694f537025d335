/** Opens a journal that another process may still hold: waits for it, rather than failing at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Journal, JournalLocked } from './journal.ts'
import { type JournalSpec, openJournal } from './open.ts'
import type { SqliteJournalOptions } from './sqlite.ts'

/** A holder that ends gives its lease back at once, so it is looked for more often than its lease ends. */
const longestLookMs = 1_000
const leastLookMs = 20

export interface Patience {
  /** How long to wait at most, ms; 0 rejects with `JournalLocked` at once. */
  readonly lockWaitMs: number
  /** Told once, before it waits. */
  readonly onLocked: (locked: JournalLocked) => void
}

/** As `openJournal`; rejects with `JournalLocked` only when the wait is over. */
export const openWhenFree = async (
  spec: JournalSpec,
  options: SqliteJournalOptions,
  { lockWaitMs, onLocked }: Patience,
): Promise<Journal> => {
  const untilMs = Date.now() + lockWaitMs
  for (let told = false; ; ) {
    try {
      return await openJournal(spec, options)
    } catch (error) {
      if (!(error instanceof JournalLocked) || Date.now() >= untilMs) throw error
      if (!told) onLocked(error)
      told = true
      const leaseMs = error.holder.expiresAtMs - Date.now()
      await sleep(Math.max(leastLookMs, Math.min(leaseMs, longestLookMs, untilMs - Date.now())))
    }
  }
}
