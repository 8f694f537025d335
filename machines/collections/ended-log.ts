/**
 * How ended calls ended, so that a call that is submitted again can be told. The log only grows: all its versions
 * share one table, and each version sees the rows up to its own length. A new row costs O(1), and an old version
 * stays as it was. When a second row is added to the same old version, that version copies its rows first.
 */
import type { Outcome } from '../model/event.ts'

/** How an ended call ended. */
export type Ending = Outcome | 'withdrawn' | 'rejected' | 'expired'

/** In the order in which the calls ended. Columns, so that a row that is kept for long costs no object of its own. */
interface Table {
  readonly callIds: string[]
  readonly endings: Ending[]
  /** Index of the row before it of the same call, or -1. */
  readonly before: number[]
  /** Index of a call's newest row. */
  readonly newest: Map<string, number>
}

export interface Log {
  readonly table: Table
  readonly length: number
}

/** Two generations: the older one is dropped when the newer one is full. */
export interface Endings {
  /** Epoch milliseconds since which `newer` is kept. */
  readonly sinceMs: number
  readonly newer: Log
  readonly older: Log
}

const emptyLog = (): Log => ({
  table: { callIds: [], endings: [], before: [], newest: new Map() },
  length: 0,
})

export const noEndings = (sinceMs = 0): Endings => ({ sinceMs, newer: emptyLog(), older: emptyLog() })

export type EndingRow = readonly [callId: string, ending: Ending]

const logOf = (rows: Iterable<EndingRow>): Log => {
  let log = emptyLog()
  for (const [callId, ending] of rows) log = noted(log, callId, ending)
  return log
}

/** Two generations from the rows that `rowsOf` gave of each. */
export const endingsOf = (newer: Iterable<EndingRow>, older: Iterable<EndingRow>, sinceMs = 0): Endings => ({
  sinceMs,
  newer: logOf(newer),
  older: logOf(older),
})

/** The rows in the order in which the calls ended. A call that ended twice has two rows. */
export function* rowsOf({ table, length }: Log): Generator<EndingRow> {
  for (let index = 0; index < length; index += 1) yield [table.callIds[index]!, table.endings[index]!]
}

const noted = (log: Log, callId: string, ending: Ending): Log => {
  // A row was added to this version before: the table holds a later row that this version must not see.
  const { table } = log.table.callIds.length === log.length ? log : logOf(rowsOf(log))
  const { newest } = table
  table.before.push(newest.get(callId) ?? -1)
  table.endings.push(ending)
  const length = table.callIds.push(callId)
  newest.set(callId, length - 1)
  return { table, length }
}

const endingIn = ({ table, length }: Log, callId: string): Ending | undefined => {
  let index = table.newest.get(callId) ?? -1
  while (index >= length) index = table.before[index]!
  return index < 0 ? undefined : table.endings[index]
}

/** The most endings of one generation: they are in memory and in every snapshot. */
const mostOfGeneration = 1_000_000

export interface Retention {
  /** Endings that are remembered at least. */
  readonly count: number
  /** Each of them at least for so long, ms. */
  readonly ms: number
}

/** Remembers how a call ended: as many and as long as `retention` says at least, twice that at most. */
export const remember = (
  { sinceMs, newer, older }: Endings,
  callId: string,
  ending: Ending,
  atMs: number,
  { count, ms }: Retention,
): Endings => {
  const log = noted(newer, callId, ending)
  const isFull = (log.length > count && atMs - sinceMs >= ms) || log.length > mostOfGeneration
  return isFull ? { sinceMs: atMs, newer: emptyLog(), older: log } : { sinceMs, newer: log, older }
}

/** How a call ended, while it is remembered. */
export const endingOf = ({ ended }: { readonly ended: Endings }, callId: string): Ending | undefined =>
  endingIn(ended.newer, callId) ?? endingIn(ended.older, callId)
