/**
 * How calls ended that are no longer live, so that a call asked for again is told. A log that only
 * grows: all its versions share one table, and each sees of it what was noted up to its own length.
 * Noting costs O(1), an old version stays as it was; only one that is gone on from a second time
 * copies what it has.
 */
import type { Outcome } from '../model/event.ts'

/** How a call that is no longer live ended. */
export type Ending = Outcome | 'withdrawn' | 'rejected' | 'expired'

interface Note {
  readonly callId: string
  readonly ending: Ending
  /** Index of the note before it of the same call, or -1. */
  readonly before: number
}

interface Table {
  /** In the order in which the calls ended. */
  readonly notes: Note[]
  /** Index of a call's newest note. */
  readonly newest: Map<string, number>
}

export interface Log {
  readonly table: Table
  readonly length: number
}

/** Two generations: the older one is dropped when the newer one is full. */
export interface Endings {
  readonly newer: Log
  readonly older: Log
}

const emptyLog = (): Log => ({ table: { notes: [], newest: new Map() }, length: 0 })

export const noEndings = (): Endings => ({ newer: emptyLog(), older: emptyLog() })

export type EndingRow = readonly [callId: string, ending: Ending]

const logOf = (rows: Iterable<EndingRow>): Log => {
  let log = emptyLog()
  for (const [callId, ending] of rows) log = noted(log, callId, ending)
  return log
}

/** What `rowsOf` gave of each generation. */
export const endingsOf = (newer: Iterable<EndingRow>, older: Iterable<EndingRow>): Endings => ({
  newer: logOf(newer),
  older: logOf(older),
})

/** In the order in which the calls ended; one that ended twice stands there twice. */
export function* rowsOf({ table, length }: Log): Generator<EndingRow> {
  for (let index = 0; index < length; index += 1) {
    const { callId, ending } = table.notes[index]!
    yield [callId, ending]
  }
}

const noted = (log: Log, callId: string, ending: Ending): Log => {
  // Somebody else has gone on from this version before.
  const { table } = log.table.notes.length === log.length ? log : logOf(rowsOf(log))
  const length = table.notes.push({ callId, ending, before: table.newest.get(callId) ?? -1 })
  table.newest.set(callId, length - 1)
  return { table, length }
}

const endingIn = ({ table, length }: Log, callId: string): Ending | undefined => {
  let index = table.newest.get(callId) ?? -1
  while (index >= length) index = table.notes[index]!.before
  return table.notes[index]?.ending
}

/** Remembers how a call ended: `retention` endings at least, twice as many at most. */
export const remember = (
  { newer, older }: Endings,
  callId: string,
  ending: Ending,
  retention: number,
): Endings => {
  const log = noted(newer, callId, ending)
  return log.length > retention ? { newer: emptyLog(), older: log } : { newer: log, older }
}

/** How a call ended, while it is remembered. */
export const endingOf = ({ ended }: { readonly ended: Endings }, callId: string): Ending | undefined =>
  endingIn(ended.newer, callId) ?? endingIn(ended.older, callId)
