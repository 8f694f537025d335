/** The decisions of a scope as rows, and the rows that pass a filter. */
import type { Decision, Lane } from '../../../../machines/index.ts'
import type { EntryFrame } from '../../../protocol.ts'
import type { CallBook } from './calls.ts'
import type { LogFilter } from './log-filter.ts'

export interface LogRow extends Decision {
  readonly position: number
  /** Null when the call began before the loaded entries. */
  readonly lane: Lane | null
  readonly principal: string | null
}

export const passes = (row: LogRow, { lane, verdict, reason, principal, text }: LogFilter): boolean => {
  if (lane !== '' && row.lane !== lane) return false
  if (verdict !== '' && row.verdict !== verdict) return false
  if (reason !== '' && row.reason !== reason) return false
  if (principal !== '' && row.principal !== principal) return false
  if (text === '') return true
  const wanted = text.toLowerCase()
  return (
    row.callId.toLowerCase().includes(wanted) ||
    row.reason.includes(wanted) ||
    row.verdict.includes(wanted) ||
    row.state.toLowerCase().includes(wanted) ||
    (row.principal?.toLowerCase().includes(wanted) ?? false)
  )
}

export class DecisionLog {
  readonly rows: LogRow[] = []
  readonly principals = new Set<string>()
  readonly reasons = new Set<string>()

  /** `calls` has already processed the entry. */
  add({ position, decisions }: EntryFrame, calls: CallBook): void {
    for (const decision of decisions) {
      const call = calls.get(decision.callId)?.call
      const principal = call?.principal ?? null
      if (principal !== null) this.principals.add(principal)
      this.reasons.add(decision.reason)
      this.rows.push({ ...decision, position, lane: call?.lane ?? null, principal })
    }
  }

  /** Number of rows up to a position. */
  countUntil(position: number): number {
    let low = 0
    let high = this.rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.rows[middle] as LogRow).position <= position) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Indices of the rows that pass one filter. Each update looks only at new rows. */
export class FilteredLog {
  readonly #log: DecisionLog
  readonly #filter: LogFilter
  readonly #indices: number[] = []
  #seen = 0

  constructor(log: DecisionLog, filter: LogFilter) {
    this.#log = log
    this.#filter = filter
  }

  /** Indices within the first `count` rows, oldest first. Callers must not change them. */
  until(count: number): { readonly indices: ReadonlyArray<number>; readonly length: number } {
    const { rows } = this.#log
    for (; this.#seen < rows.length; this.#seen += 1) {
      if (passes(rows[this.#seen] as LogRow, this.#filter)) this.#indices.push(this.#seen)
    }
    let low = 0
    let high = this.#indices.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#indices[middle] as number) < count) low = middle + 1
      else high = middle
    }
    return { indices: this.#indices, length: low }
  }
}
